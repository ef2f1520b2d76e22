"""One pass per text and length, the rows of a layer at a time: shares, undeclared sinks, what was said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import oracle
from oracle._checks import InputError, reject
from oracle.inputs import Tokens, cut_tokens, read_tokens
from oracle.model import Model
from oracle.trace import Trace
from validation.choices import parse_layers
from validation.engines import load_engine
from validation.gathering import told_notes
from validation.progress import Progress, silent
from validation.sink_report import SinkReport, is_token, lacks_token, refuse_token
from validation.table import MIN_CONTENT_KEYS, WEIGHTINGS, RowTable, join_tables, tabulate

__all__ = ["Lengths", "Undeclared", "measure_lengths", "parse_three"]


class Undeclared(NamedTuple):
    """A key outside the sink set that acts like a sink in one layer; see `oracle.undeclared_sinks`."""

    layer: int
    key: int
    token: str
    weight: float


@dataclass(frozen=True)
class Lengths:
    """What was measured: the rows of every length, in the order of the lengths, and what stood out.

    `text` of a row counts pieces: piece p is text p % n of n texts, cut at length p // n.
    """

    tables: dict[int, RowTable]
    undeclared: dict[int, list[Undeclared]]
    whole: tuple[int, ...]  # tokens of each text before it was cut
    sinks: SinkReport
    causal: bool
    row_bytes: int  # of one layer's rows at the largest length
    min_content_keys: int
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Piece:
    """Gathers one text at one length, layer by layer."""

    number: int
    chosen: frozenset[int]
    weightings: Sequence[str]
    sinks: SinkReport
    settings: dict[str, Any]
    tables: list[RowTable] = field(default_factory=list)
    undeclared: list[Undeclared] = field(default_factory=list)

    def add(self, layer: int, trace: Trace) -> None:
        """Take in a layer; its arrays may be overwritten after that."""
        if not layer:
            words: dict[str, Any] = {"tokens": trace.tokens, "token_ids": trace.token_ids.tolist()}
            seen = trace.visible_in(0)
            self.sinks.add(trace.attention, None, trace.sink_mask, seen, text=self.number, layers=(), **words)
        if layer not in self.chosen:
            return
        norms = {name: getattr(trace, name) for name in self.weightings if name != "attention"}
        found = tabulate(
            trace.attention, trace.sink_mask, trace.visible, norms, text=self.number, **self.settings
        )
        self.tables.append(replace(found, layer=np.full_like(found.layer, layer)))
        self.undeclared += [
            Undeclared(layer, key, trace.tokens[key], weight)
            for _, key, weight in oracle.undeclared_sinks(
                trace.attention, trace.sink_mask, trace.visible_in(0)
            )
        ]


def parse_three(weightings: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of the weightings of single heads, in their usual order; None or "all": all three."""
    if weightings is None or weightings == "all":
        return WEIGHTINGS
    asked = [name.strip() for name in weightings.split(",")] if isinstance(weightings, str) else weightings
    if not asked or not set(asked) <= set(WEIGHTINGS):
        reject(
            "weighting",
            expected=f"with lengths, names from {', '.join(WEIGHTINGS)}",
            found=", ".join(map(repr, asked)) or "none",
            todo="Leave out the others; head_summed_norm is measured without lengths.",
        )
    return tuple(name for name in WEIGHTINGS if name in asked)


def measure_lengths(
    model: Model,
    texts: str | Sequence[str],
    lengths: Sequence[int],
    *,
    sink: Any = "special",
    weightings: str | Sequence[str] | None = None,
    layers: str | Sequence[int] | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
    engine: str = "fastpath",
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> Lengths:
    """Measure every text at every length: its first tokens, those that the tokenizer adds included.

    A piece is run by itself, so that a model that is not causal sees nothing of the rest. The rows of one
    layer are held at a time. Weightings are attention, value_norm and transformed_norm; the other arguments
    are read as `validation.measuring.measure` does. Raises InputError for no lengths, for a length beyond a
    text or the positions of the model (before anything is run), and for one that leaves no row.
    """
    measures = load_engine(engine, on_compile)
    names, chosen = parse_three(weightings), frozenset(parse_layers(layers, model.config.n_layers))
    listed, asked = ([texts] if isinstance(texts, str) else list(texts)), sorted(set(lengths))
    if not asked or not listed:
        reject("lengths", expected="a length and a text", found="none", todo="Give at least one.")
    pieces = [
        (length, _cut(model, text, length, place, len(listed)))
        for length in asked
        for place, text in enumerate(listed)
    ]
    causal = model.config.causal
    report = SinkReport("first" if causal and sink == "special" else sink)
    settings = {"queries": queries, "min_content_keys": min_content_keys, "measures": measures}
    tables: dict[int, list[RowTable]] = {length: [] for length in asked}
    undeclared: dict[int, list[Undeclared]] = {length: [] for length in asked}
    said: list[tuple[int, str]] = []
    for number, (length, read) in enumerate(pieces):
        progress(f"{length:,} tokens", number, len(pieces))
        piece = _Piece(number, chosen, names, report, settings)
        present = "none" if lacks_token(sink, read.tokens) else sink
        keep = ("attention", *(name for name in names if name != "attention"))
        trace = oracle.forward(model, read, sink=present, keep=keep, each=piece.add)
        tables[length] += piece.tables
        undeclared[length] += piece.undeclared
        said += [(number % len(listed) + 1, note) for note in trace.notes if length == asked[-1]]
    progress("lengths", len(pieces), len(pieces))
    if not report.names and is_token(sink):
        refuse_token(sink, len(pieces))
    joined = {length: join_tables(parts) for length, parts in tables.items()}
    for length, table in joined.items():
        if not len(table):
            reject(
                "lengths",
                expected=f"lengths with rows that count (causal ones have {min_content_keys} content "
                "keys at least)",
                found=f"none at {length:,} tokens",
                todo="Cut at more tokens.",
            )
    loud, calm = told_notes(said, len(listed))
    whole = tuple(len(read_tokens(model, text, False).ids) for text in listed)
    row_bytes = model.config.n_heads * asked[-1] ** 2 * model.dtype.itemsize
    return Lengths(
        joined, undeclared, whole, report, causal, row_bytes, min_content_keys, tuple(loud), tuple(calm)
    )


def _cut(model: Model, text: str, length: int, place: int, count: int) -> Tokens:
    try:
        return cut_tokens(model, text, length)
    except InputError as error:
        raise InputError(f"text {place + 1} of {count}: {error}" if count > 1 else str(error)) from None
