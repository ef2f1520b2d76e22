"""One pass per text and length, the rows of a layer at a time: shares, undeclared sinks, what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import oracle
from oracle._checks import InputError, reject
from oracle.inputs import cut_tokens, read_tokens
from oracle.model import Model
from oracle.trace import Trace
from validation.choices import parse_layers
from validation.engines import load_engine
from validation.finite import NotFiniteError
from validation.gathering import TextLog, raise_about, run_text
from validation.progress import Progress, silent
from validation.report.document import Note
from validation.sink_report import SinkReport, as_read, is_token, refuse_token
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
    warnings: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    untested: tuple[int, ...] = ()  # lengths too short for an undeclared sink to be found


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
    are read as `validation.measuring.measure` does. A text without a token of its own is skipped and counted.
    Raises InputError for no lengths, for a length beyond a text or the positions of the model (before
    anything is run), and for one that leaves no row; it names the text and the length.
    """
    measures = load_engine(engine, on_compile)
    names, chosen = parse_three(weightings), frozenset(parse_layers(layers, model.config.n_layers))
    listed, asked = ([texts] if isinstance(texts, str) else list(texts)), sorted(set(lengths))
    if not asked or not listed:
        reject("lengths", expected="a length and a text", found="none", todo="Give at least one.")
    log, cuts, whole = TextLog(len(listed)), {}, []
    for place, text in enumerate(listed):
        with _about(listed, place):
            read = read_tokens(model, text, False)
            if read.empty:
                log.skipped += 1
                continue
            cuts[place] = cut_tokens(model, text, asked)
            whole.append(len(read.ids))
    log.refuse_none()
    report = SinkReport(as_read(sink, model.config.causal))
    settings = {"queries": queries, "min_content_keys": min_content_keys, "measures": measures}
    tables: dict[int, list[RowTable]] = {length: [] for length in asked}
    undeclared: dict[int, list[Undeclared]] = {length: [] for length in asked}
    testable: dict[int, int] = {}
    pieces = [(length, place, reads[at]) for at, length in enumerate(asked) for place, reads in cuts.items()]
    keep = ("attention", *(name for name in names if name != "attention"))
    for number, (length, place, read) in enumerate(pieces):
        progress(f"{length:,} tokens", number, len(pieces))
        piece = _Piece(number, chosen, names, report, settings)
        with _about(listed, place, length):
            trace = run_text(model, read, sink, keep=keep, each=piece.add)
        tables[length] += piece.tables
        undeclared[length] += piece.undeclared
        testable[length] = report.testable
        if length == asked[-1]:
            log.add(place, trace)
    progress("lengths", len(pieces), len(pieces))
    if not report.names and is_token(sink):
        refuse_token(sink, len(cuts))
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
    found = [0, *testable.values()]  # so many texts up to a length, the shortest first
    untested = tuple(length for at, length in enumerate(asked) if found[at + 1] == found[at])
    return Lengths(
        joined,
        undeclared,
        tuple(whole),
        report,
        model.config.causal,
        model.config.n_heads * asked[-1] ** 2 * model.dtype.itemsize,
        min_content_keys,
        log.warnings(),
        log.notes(),
        untested,
    )


@contextmanager
def _about(texts: Sequence[str], place: int, length: int | None = None) -> Iterator[None]:
    """Name the text, and the length that it is cut at, in an InputError from within."""
    try:
        yield
    except InputError as error:
        if length is not None and not isinstance(error, NotFiniteError):
            error = InputError(f"at {length:,} tokens: {error}")
        raise_about(error, place, texts)
