"""One pass of a model over texts: what every report on a model is made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle._checks import InputError, reject
from oracle.inputs import Tokens, read_tokens
from oracle.model import Model
from oracle.trace import Trace
from validation.arrays_file import ReadArrays
from validation.choices import ALL_WEIGHTINGS, parse_layers
from validation.finite import NotFiniteError, refuse_not_finite
from validation.progress import Progress, silent
from validation.report.document import Note
from validation.sink_report import SinkReport, as_read, is_token, lacks_token, refuse_token
from validation.table import (
    HEAD_SUMMED,
    MIN_CONTENT_KEYS,
    WEIGHTINGS,
    RowTable,
    join_tables,
    tabulate,
    tabulate_head_summed,
)
from validation.verify import Verification
from validation.wording import counted

__all__ = ["Gathered", "TextLog", "gather", "gather_arrays", "raise_about", "run_text"]

Array = NDArray[Any]

_UNKNOWN = ("[UNK]", "<unk>")
_LOUD = "WARNING: "  # how a note begins that must stand above the numbers


@dataclass(frozen=True)
class Gathered:
    """What one pass over the texts found; `notes` tell what was skipped and what was odd in them."""

    table: RowTable
    head_summed: RowTable | None
    sinks: SinkReport
    notes: tuple[Note, ...]
    min_content_keys: int = MIN_CONTENT_KEYS
    warnings: tuple[Note, ...] = ()  # what must stand above the numbers


@dataclass
class TextLog:
    """What there is to say of the texts themselves, one after the other."""

    total: int
    skipped: int = 0  # without a token of their own
    bare: int = 0  # all of whose tokens are sinks
    unknown: int = 0  # tokens that the vocabulary lacks
    cut: list[tuple[int, int]] = field(default_factory=list)  # tokens before and after
    said: list[tuple[int, str]] = field(default_factory=list)  # number of the text, note

    def add(self, text: int, trace: Trace) -> None:
        """Take in a text that was run; texts are counted from 0."""
        self.bare += not (trace.mask & ~trace.sink_mask).any()
        self.unknown += sum(token in _UNKNOWN for token in trace.tokens)
        self.said += [(text + 1, note) for note in trace.notes]

    def refuse_none(self) -> None:
        """Raise InputError where no text is left."""
        if self.skipped == self.total:
            reject(
                "text",
                expected="at least one text with tokens",
                found=f"{self.total} texts without any",
                todo="Give a text with words.",
            )

    def notes(self) -> tuple[Note, ...]:
        """What was skipped and what was odd."""
        _, calm = _told(self.said, self.total)
        notes = _text_notes(self.total, skipped=self.skipped, bare=self.bare, said=calm)
        unknown = Note("unknown", f"Tokens that the vocabulary lacks ([UNK]): {self.unknown:,}.")
        return (*notes, unknown) if self.unknown else notes

    def warnings(self) -> tuple[Note, ...]:
        """What must stand above the numbers."""
        loud, _ = _told(self.said, self.total)
        return (*((_cut_note(self.cut),) if self.cut else ()), *(Note("warning", note) for note in loud))


def run_text(
    model: Model,
    read: Tokens,
    sink: Any,
    *,
    keep: Sequence[str],
    each: Callable[[int, Trace], None] | None = None,
) -> Trace:
    """`oracle.forward`, with no sink where this text lacks the token of "token:TEXT".

    Raises NotFiniteError, an InputError, where rows or norms that are kept are not finite.
    """
    chosen = "none" if lacks_token(sink, read.tokens) else sink
    warned = np.geterr()

    def look(layer: int, trace: Trace) -> None:
        with np.errstate(**warned):
            refuse_not_finite(model, trace, keep, layer)
            if each is not None:
                each(layer, trace)

    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused
        trace = oracle.forward(model, read, sink=chosen, keep=keep, each=None if each is None else look)
    if each is None:
        refuse_not_finite(model, trace, keep)
    return trace


def gather(
    model: Model,
    texts: Sequence[str],
    *,
    sink: Any = "special",
    weightings: Sequence[str] = ALL_WEIGHTINGS,
    layers: Sequence[int] | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
    truncate: bool = False,
    progress: Progress = silent,
    each: Callable[[int, Trace], None] | None = None,
    keep: Sequence[str] = (),
    measures: ModuleType = oracle,
    verification: Verification | None = None,
) -> Gathered:
    """Run every text and keep its rows, never its Trace; `each` is called with (text, trace) meanwhile.

    `keep` names what `each` needs of a Trace beside rows and norms, such as "scores". `measures` is the
    layer that computes (see `tabulate`); `verification` draws from its rows.

    Texts without a token of their own are skipped and counted. A text without the token of `sink`
    "token:TEXT" has no visible sink; that all texts lack it is refused. InputError names the text that it is
    about, and is raised too when no text is left.
    """
    chosen = parse_layers(layers, model.config.n_layers)
    picked: dict[str, Any] = {"queries": queries, "min_content_keys": min_content_keys}
    pooled = HEAD_SUMMED in weightings
    kept = ("attention", *WEIGHTINGS[1:], *(("transformed_gram",) if pooled else ()), *keep)
    report, tables, summed = SinkReport(as_read(sink, model.config.causal)), [], []
    log = TextLog(len(texts))
    for index, text in enumerate(texts):
        progress("texts", index, len(texts))
        try:
            read = read_tokens(model, text, truncate)
            if read.empty:
                log.skipped += 1
                continue
            trace = run_text(model, read, sink, keep=kept)
            whole = len(read_tokens(model, text, False).ids) if truncate else len(read.ids)
        except InputError as error:
            raise_about(error, index, texts)
        log.add(index, trace)
        if whole > len(trace.tokens):
            log.cut.append((whole, len(trace.tokens)))
        where: dict[str, Any] = {"text": index, "layers": chosen}
        norms = {name: getattr(trace, name) for name in WEIGHTINGS[1:]}
        sinks, visible = trace.sink_mask, trace.visible
        rows = trace.attention
        tables.append(tabulate(rows, sinks, visible, norms, measures=measures, **where, **picked))
        if verification is not None:
            verification.add(tables[-1], rows, sinks, visible, norms)
        if pooled:
            gram = trace.transformed_gram
            summed.append(tabulate_head_summed(trace.attention, gram, sinks, visible, **where, **picked))
        words: dict[str, Any] = {"tokens": trace.tokens, "token_ids": trace.token_ids.tolist()}
        report.add(trace.attention, trace.value_norm, sinks, visible, **words, **where)
        if each is not None:
            each(index, trace)
    progress("texts", len(texts), len(texts))
    log.refuse_none()
    if not report.names and is_token(sink):
        refuse_token(sink, len(tables))
    table = join_tables(tables)
    _refuse_no_rows(table, report, min_content_keys)
    joined = join_tables(summed) if pooled else None
    return Gathered(table, joined, report, log.notes(), min_content_keys, log.warnings())


def gather_arrays(
    arrays: ReadArrays,
    *,
    sink: Any = "special",
    layers: Sequence[int] | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
    progress: Progress = silent,
    each: Callable[[int, Array, NDArray[np.bool_], NDArray[np.bool_]], None] | None = None,
    measures: ModuleType = oracle,
    verification: Verification | None = None,
) -> Gathered:
    """The rows of every text of arrays that were read, as `gather` does it with those of a model.

    Empty texts are skipped and counted; the others keep their numbers. `each` is called with (text,
    attention, sink_mask, visible), the rows being (layer, head, query, key).
    """
    rows = arrays.rows.attention  # (batch, layer, head, query, key)
    chosen = parse_layers(layers, rows.shape[1])
    report, tables = SinkReport(sink), []
    for text in range(len(rows)):
        progress("texts", text, len(rows))
        if text in arrays.empty:
            continue
        visible, sinks = arrays.rows.visible[text], arrays.sinks[text]
        norms = {name: norm[text] for name, norm in arrays.norms.items()}
        where: dict[str, Any] = {"text": text, "layers": chosen}
        picked: dict[str, Any] = {"queries": queries, "min_content_keys": min_content_keys}
        try:
            tables.append(tabulate(rows[text], sinks, visible, norms, measures=measures, **where, **picked))
        except InputError as error:
            raise InputError(f"{error} (text {text})" if len(rows) > 1 else str(error)) from None
        if verification is not None:
            verification.add(tables[-1], rows[text], sinks, visible, norms)
        report.add(rows[text], norms.get("value_norm"), sinks, visible, tokens=arrays.tokens[text], **where)
        if each is not None:
            each(text, rows[text], sinks, visible)
    progress("texts", len(rows), len(rows))
    all_sinks = ~(arrays.rows.visible.any(axis=1) & ~arrays.sinks).any(axis=1)  # (batch,)
    skipped = len(arrays.empty)
    texts = _text_notes(len(rows), skipped=skipped, bare=int(all_sinks.sum()) - skipped)
    notes = (*(Note("arrays", note) for note in arrays.notes), *texts)
    table = join_tables(tables)
    _refuse_no_rows(table, report, min_content_keys)
    warnings = tuple(Note("warning", note) for note in arrays.warnings)
    return Gathered(table, None, report, notes, min_content_keys, warnings)


def _refuse_no_rows(table: RowTable, sinks: SinkReport, min_content_keys: int) -> None:
    """Raise InputError where every row is one of a causal text that sees too few content keys."""
    if not len(table) and table.left_out:
        reject(
            "rows",
            expected=f"causal rows that see at least {min_content_keys} content keys",
            found=f"at most {sinks.content} in the longest text, so that all {table.left_out:,} are left out",
            todo="Measure longer texts.",
        )


def _text_notes(total: int, *, skipped: int = 0, bare: int = 0, said: Sequence[str] = ()) -> tuple[Note, ...]:
    """How many texts were measured, skipped or without content, and what was said about single ones."""
    notes = [Note("texts", f"Texts: {total - skipped} measured, {skipped} without tokens skipped.")]
    if bare:
        notes.append(Note("no_content", f"Texts whose tokens are all sinks, so that no row counts: {bare}."))
    notes += [Note("text", note) for note in said[:8]]
    if len(said) > 8:
        notes.append(Note("text", f"{len(said) - 8} more notes on texts."))
    return tuple(notes)


def _told(said: Sequence[tuple[int, str]], total: int) -> tuple[list[str], list[str]]:
    """What was said of single texts, in one line where it is the same of several: warnings, and the rest."""
    of: dict[str, list[int]] = {}
    for text, note in said:
        of.setdefault(note, []).append(text)
    loud, calm = [], []
    for note, texts in of.items():
        where = f"text {texts[0]}" if len(texts) == 1 else f"{len(texts)} of {counted(total, 'text')}"
        if note.startswith(_LOUD):
            loud.append(f"{_LOUD}{where}: {note.removeprefix(_LOUD)}")
        else:
            calm.append(f"{where}: {note}")
    return loud, calm


def _cut_note(cut: Sequence[tuple[int, int]]) -> Note:
    lengths = ", ".join(f"{whole:,}" for whole, _ in cut[:8]) + (", ..." if len(cut) > 8 else "")
    return Note("cut", f"{counted(len(cut), 'text')} cut: {lengths} -> {cut[0][1]} tokens.")


def raise_about(error: InputError, index: int, texts: Sequence[str]) -> NoReturn:
    """Raise an error again with the text that it is about, counted from 0, unless there is but one.

    An error about the model stays as it is.
    """
    if len(texts) == 1 or isinstance(error, NotFiniteError):
        raise error
    start = " ".join(texts[index][:200].split())[:32]
    lines = getattr(texts, "line_numbers", None)  # of texts that stand in a file
    line = f", line {lines[index]} of the file" if lines else ""
    raise InputError(f"text {index + 1} of {len(texts)}{line} ({start!r}): {error}") from None
