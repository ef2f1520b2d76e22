"""The one-row-per-word tables: a stated set of layers each, and what the opened rows say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle.trace import Trace
from validation.headline import LABELS, Summary, layer_numbers, summarise
from validation.report.document import Column, Table
from validation.table import WEIGHTINGS

__all__ = ["PROTOCOL", "Link", "WordTable"]

PROTOCOL = (
    "A word's row is that of its pieces together, with the sink hidden and the rest renormalised; its link "
    "is the largest displayed value on another word, and among the heads of the stated layers the one with "
    "the strongest link opens (ties: the lowest layer, head, key).",
    "The sink share is that of the whole row, under every weighting read on the head that attention opens.",
)

Array = NDArray[Any]


class Link(NamedTuple):
    """One displayed link: where it opened, its value on the screen and in the whole row, the row's sink."""

    text: int  # counted from 1
    layer: int
    head: int
    word: str
    link: str
    shown: float
    of_row: float
    sink_share: float


@dataclass
class WordTable:
    """Opens one row per word and stated set of layers, text by text; a set is a tuple of layer numbers."""

    sets: Sequence[tuple[int, ...]]
    punctuation: str = "neither"  # what oracle.group_words takes it for
    _opened: dict[tuple[int, ...], list[tuple[int, oracle.OpenedRows]]] = field(default_factory=dict)
    _lengths: set[int] = field(default_factory=set)

    def add(self, text: int, trace: Trace) -> None:
        """Take in one text; weights are merged into words layer by layer, so that little is held at once."""
        layers = sorted({layer for chosen in self.sets for layer in chosen})
        units = oracle.group_words(trace, punctuation=self.punctuation)
        groups = [unit.tokens for unit in units]
        shape = (len(layers), trace.attention.shape[1], len(units), len(units))
        dtype = np.result_type(trace.attention.dtype, np.float64)
        whole = {name: np.empty(shape, dtype) for name in WEIGHTINGS}  # (layer, head, word, word)
        for name, (place, layer) in itertools.product(WEIGHTINGS, enumerate(layers)):
            whole[name][place] = self._merged(trace, name, layer, groups)
        for chosen in self.sets:
            first, last = layers.index(chosen[0]), layers.index(chosen[-1])
            places = [layers.index(layer) for layer in chosen]
            run = last - first + 1 == len(places)  # a run of layers is a view, anything else a copy
            rows = {name: every[first : last + 1] if run else every[places] for name, every in whole.items()}
            self._opened.setdefault(chosen, []).append((text, oracle.open_merged_rows(rows, units, chosen)))
        self._lengths.add(int(trace.mask.sum()))

    @property
    def lengths(self) -> list[int]:
        """The distinct T of the texts, sorted."""
        return sorted(self._lengths)

    def shares(self, name: str, *sets: tuple[int, ...]) -> Array:
        """Sink shares under `name` of the opened rows of these sets together, (word,)."""
        return self._joined([opened.shares[name] for chosen in sets for _, opened in self._opened_in(chosen)])

    def summary(self, name: str, *sets: tuple[int, ...]) -> Summary:
        """Summary of these sets' rows together; a row is worse when its share grew, which is r > 1."""
        shares, before = self.shares(name, *sets), self.shares("attention", *sets)
        if name == "attention":
            return summarise(shares)
        with_r = ~np.isnan(shares) & (before > 0)  # a row that opens has content; r needs sink mass too
        return summarise(shares)._replace(worse=int((shares > before).sum()), with_r=int(with_r.sum()))

    def same_head(self, name: str, chosen: tuple[int, ...]) -> int:
        """On how many words `name` opens the head that attention opens."""
        return sum(
            int((opened.heads[name] == opened.heads["attention"]).all(axis=1).sum())
            for _, opened in self._opened_in(chosen)
        )

    def undefined(self, chosen: tuple[int, ...]) -> int:
        """Words without a row: no other word in the text, or no content mass in any head."""
        return sum(opened.undefined for _, opened in self._opened_in(chosen))

    def links(self, chosen: tuple[int, ...]) -> list[Link]:
        """Every displayed link of one stated set, in the order of the texts."""
        return [
            Link(
                text + 1,
                int(opened.heads["attention"][row, 0]),
                int(opened.heads["attention"][row, 1]),
                opened.words[row],
                opened.links[row],
                float(opened.link_weight[row]),
                float(opened.link_mass[row]),
                float(opened.shares["attention"][row]),
            )
            for text, opened in self._opened_in(chosen)
            for row in range(len(opened.words))
        ]

    def table(self, name: str, title: str, notes: Sequence[str] = (), intro: tuple[str, ...] = ()) -> Table:
        """One row per stated set for one weighting."""
        columns = [
            Column("layers", "layers"),
            Column("words", "words", ",d"),
            Column("median", "median", ".1%"),
            Column("worst", "worst", ".1%"),
            Column("above_half", ">50%", ",d"),
            Column("above_ninety", ">90%", ",d"),
        ]
        against = name != "attention"  # what follows compares a weighting with attention
        if against:
            columns += [
                Column("worse", "r>1", ",d"),
                Column("same_head", "same head", ",d"),
                Column("share_same_head", "part", ".1%"),
            ]
        columns.append(Column("undefined", "undef.", ",d"))
        rows = []
        for chosen in self.sets:
            found = self.summary(name, chosen)
            cells: list[Any] = [found.rows, found.median, found.worst, found.above_half, found.above_ninety]
            if against:
                same = self.same_head(name, chosen)
                cells += [found.worse, same, found.part(same)]
            rows.append((layer_numbers(chosen), *cells, self.undefined(chosen)))
        full = f"{title}: {LABELS[name]}"
        return Table(f"words_{name}", full, tuple(columns), tuple(rows), tuple(notes), intro)

    def _opened_in(self, chosen: tuple[int, ...]) -> list[tuple[int, oracle.OpenedRows]]:
        return self._opened.get(chosen, [])

    @staticmethod
    def _merged(trace: Trace, name: str, layer: int, groups: Sequence[Sequence[int]]) -> Array:
        norm = None if name == "attention" else getattr(trace, name)[layer]
        weights = oracle.weighted_rows(trace.attention[layer], norm, trace.visible_in(layer))
        return oracle.merge_words(weights, groups)

    @staticmethod
    def _joined(parts: list[Array]) -> Array:
        return np.concatenate(parts) if parts else np.empty(0)
