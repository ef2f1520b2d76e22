"""What the sink keys themselves look like: who they are, how short their values, and who acts like one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle._checks import reject
from oracle.measures import UNDECLARED_ROWS, UNDECLARED_WEIGHT
from validation.report.document import Column, Note, Part, Table
from validation.table import visible_in
from validation.wording import counted

__all__ = ["SinkReport", "as_read", "is_token", "lacks_token", "refuse_token"]

Array = NDArray[Any]

_SHOWN = 10
_TOKEN = "token:"


def is_token(sink: Any) -> bool:
    """Whether `sink` names tokens by their spelling ("token:TEXT")."""
    return isinstance(sink, str) and sink.startswith(_TOKEN)


def as_read(sink: Any, causal: bool) -> Any:
    """`sink` as a forward pass reads it: the special sinks of a causal model are its first token."""
    return "first" if causal and isinstance(sink, str) and sink == "special" else sink


def lacks_token(sink: Any, tokens: Sequence[str]) -> bool:
    """Whether `sink` is "token:TEXT" and this text has no such token: it has no visible sink then."""
    return is_token(sink) and sink.removeprefix(_TOKEN) not in tokens


def refuse_token(sink: str, texts: int) -> NoReturn:
    """Raise InputError about a token that no text has."""
    reject(
        "sink",
        expected="a token that a text has",
        found=f"no token spelled {sink.removeprefix(_TOKEN)!r} in {counted(texts, 'text')}",
        todo="Choose special, first, none, token:TEXT (as the tokenizer spells it) or positions.",
    )


@dataclass
class SinkReport:
    """Gathers the sinks of one text after the other; `sink` is the choice as the user wrote it."""

    sink: Any
    names: dict[str, None] = field(default_factory=dict)  # in the order of their first appearance
    ratios: list[tuple[str, int, Array]] = field(default_factory=list)  # label, layer, (head,)
    undeclared: list[tuple[int, int, int, str, float]] = field(default_factory=list)
    texts: int = 0
    testable: int = 0
    without: int = 0
    content: int = 0  # the most content keys that a row sees

    def add(
        self,
        attention: Array,
        value_norm: Array | None,
        sink_mask: NDArray[np.bool_],
        visible: NDArray[np.bool_],
        *,
        text: int,
        layers: Sequence[int],
        tokens: Sequence[str],
        token_ids: Sequence[int] | None = None,
    ) -> None:
        """Take in one text: attention (layer, head, query, key), value norms (layer, head, key) or None."""
        seen: NDArray[np.bool_] = np.any(visible, axis=tuple(range(visible.ndim - 1)))
        keys = np.flatnonzero(sink_mask & seen).tolist()
        for key in keys:
            what = f" (id {token_ids[key]})" if token_ids is not None else ""
            self.names.setdefault(f"{self._label(key, tokens)}{what}")
        self.texts += 1
        self.without += not keys
        self.content = max(self.content, int((visible & ~sink_mask).sum(axis=-1).max(initial=0)))
        if value_norm is not None:
            for layer in layers:
                values = oracle.value_norm_ratio(value_norm[layer], sink_mask, seen)  # (head, sink)
                self.ratios += [
                    (self._label(key, tokens), layer, values[:, index]) for index, key in enumerate(keys)
                ]
        content = np.flatnonzero(seen & ~sink_mask)
        if not len(content) or seen[content[0] + 1 :].sum() < UNDECLARED_ROWS:
            return
        self.testable += 1
        for layer in layers:  # one at a time, because the measure widens what it gets to float64
            here = visible_in(visible, layer)
            found = oracle.undeclared_sinks(attention[layer : layer + 1], sink_mask, here)
            self.undeclared += [(text, layer, key, tokens[key], weight) for _, key, weight in found]

    def parts(self) -> tuple[Part, ...]:
        """The value-norm ratios by sink key and layer, and the undeclared sinks."""
        return (*self.ratio_tables(), self.undeclared_part())

    def note(self) -> Note:
        """The sink set in words and, where known, token ids."""
        if isinstance(self.sink, str) and self.sink == "none":
            said = "Sink set (none): no key, by choice, so every share is 0. All visible keys are content."
            return Note("sinks", said)
        asked = self.sink if isinstance(self.sink, str) else "given positions"
        listed = _grouped(self.names)
        more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
        who = ", ".join(listed[:8]) + more if listed else "no key at all"
        without = ""
        if self.without and listed:
            of = f"{self.without} of {counted(self.texts, 'text')}"
            without = f" In {of} no sink is visible (share 0, no r)."
        return Note("sinks", f"Sink set ({asked}): {who}.{without} Content is every other visible key.")

    def ratio_tables(self) -> tuple[Table, ...]:
        """‖v‖ of each sink key over the mean of the content in its text and head; nothing without norms."""
        if not self.ratios:
            return ()
        labels = list(dict.fromkeys(label for label, _, _ in self.ratios))
        layers = sorted({layer for _, layer, _ in self.ratios})
        rows = [self._ratio_row(label, None) for label in labels] if len(layers) > 1 else []
        rows += [self._ratio_row(label, layer) for layer in layers for label in labels]
        columns = (
            Column("layer", "layer"),
            Column("token", "token"),
            Column("n", "n", ",d"),
            Column("median", "median", ".3f"),
            Column("below_one", "below 1", ",d"),
            Column("share_below_one", "part", ".1%"),
        )
        lost = sum(int(np.isnan(values).sum()) for _, _, values in self.ratios)
        notes = (f"{counted(lost, 'value')} of texts without content left out as undefined",) if lost else ()
        title = "Value norm of a sink key over the mean content key, by text and head"
        return (Table("value_norm_ratio", title, columns, tuple(rows), notes),)

    def ratio_values(self, label: str) -> Array:
        """All defined ratios of one sink token, over texts, layers and heads."""
        values = [ratio for name, _, ratio in self.ratios if name == label]
        together = np.concatenate(values) if values else np.empty(0)
        return together[~np.isnan(together)]

    def undeclared_part(self) -> Part:
        """The keys that act like a sink and are none by choice; a Note where there is none or no test."""
        need = f"at least {UNDECLARED_ROWS} later rows"
        if not self.testable:
            return Note("undeclared", f"Undeclared sinks: not tested, no text has a key with {need}.")
        if not self.undeclared:
            text = (
                f"Undeclared sinks: none in the {self.testable} of {counted(self.texts, 'text')} with {need}."
            )
            return Note("undeclared", text)
        heaviest = sorted(self.undeclared, key=lambda item: -item[-1])
        columns = (
            Column("text", "text", "d"),
            Column("layer", "layer", "d"),
            Column("position", "position", "d"),
            Column("token", "token"),
            Column("weight", "weight", ".3f"),
        )
        title = f"Undeclared sinks: mean weight over all later rows ({need}) above {UNDECLARED_WEIGHT}"
        notes = (
            "WARNING: these keys count as content in every figure of this report; --sink declares others",
            f"the heaviest {min(_SHOWN, len(heaviest))} of {len(heaviest)}; text 1 is the first text; "
            "weight: mean over the heads of the layer",
        )
        rows = tuple((text + 1, *rest) for text, *rest in heaviest[:_SHOWN])
        return Table("undeclared_sinks", title, columns, rows, notes)

    def _ratio_row(self, label: str, layer: int | None) -> tuple[Any, ...]:
        values = [r for name, at, r in self.ratios if name == label and layer in (None, at)]
        known = np.concatenate(values) if values else np.empty(0)
        known = known[~np.isnan(known)]
        below, nan = int((known < 1).sum()), float("nan")
        median, part = (float(np.median(known)), below / len(known)) if len(known) else (nan, nan)
        return ("all" if layer is None else layer, label, len(known), median, below, part)

    def _label(self, key: int, tokens: Sequence[str]) -> str:
        """Tokens that are sinks by what they are go by their spelling, the others by their place."""
        if isinstance(self.sink, str) and (self.sink == "special" or is_token(self.sink)):
            return tokens[key]
        return "first token" if isinstance(self.sink, str) and self.sink == "first" else f"position {key}"


def _grouped(names: Iterable[str]) -> list[str]:
    """Names such as "first token (id 7)", those of one word together: "first token (ids 7, 9)"."""
    ids: dict[str, list[str]] = {}
    for name in names:
        word, _, rest = name.partition(" (id ")
        ids.setdefault(word, []).extend([rest.removesuffix(")")] if rest else [])
    listed = []
    for word, found in ids.items():
        shown = ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
        listed.append(f"{word} (id{'s' if len(found) > 1 else ''} {shown})" if found else word)
    return listed
