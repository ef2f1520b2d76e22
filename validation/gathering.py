"""One pass of a model over texts: what every report on a model is made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

import oracle
from oracle._checks import InputError, reject
from oracle.inputs import read_tokens
from oracle.model import Model
from oracle.trace import Trace
from validation.choices import ALL_WEIGHTINGS, parse_layers
from validation.progress import Progress, silent
from validation.report.document import Note
from validation.sink_report import SinkReport
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

__all__ = ["Gathered", "gather", "text_notes"]


@dataclass(frozen=True)
class Gathered:
    """What one pass over the texts found; `notes` tell what was skipped and what was odd in them."""

    table: RowTable
    head_summed: RowTable | None
    sinks: SinkReport
    notes: tuple[Note, ...]


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
    measures: ModuleType = oracle,
    verification: Verification | None = None,
) -> Gathered:
    """Run every text and keep its rows, never its Trace; `each` is called with (text, trace) meanwhile.

    `measures` is the layer that computes (see `tabulate`); `verification` draws from its rows.

    Texts without a token of their own are skipped and counted. InputError names the text that it is about,
    and is raised too when no text is left.
    """
    chosen = parse_layers(layers, model.config.n_layers)
    picked: dict[str, Any] = {"queries": queries, "min_content_keys": min_content_keys}
    pooled = HEAD_SUMMED in weightings
    keep = ("attention", "value_norm", "transformed_norm") + (("transformed_gram",) if pooled else ())
    report, tables, summed, said = SinkReport(sink), [], [], []
    skipped = bare = 0
    for index, text in enumerate(texts):
        progress("texts", index, len(texts))
        try:
            if not _has_tokens(model, text, truncate):
                skipped += 1
                continue
            trace = oracle.forward(model, text, sink=sink, keep=keep, truncate=truncate)
        except InputError as error:
            _reraise(error, index, texts)
        bare += not (trace.mask & ~trace.sink_mask).any()
        said += [f"text {index + 1}: {note}" for note in trace.notes]
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
    if not tables:
        reject(
            "text",
            expected="at least one text with tokens",
            found=f"{len(texts)} texts without any",
            todo="Give a text with words.",
        )
    notes = text_notes(len(texts), skipped=skipped, bare=bare, said=said)
    return Gathered(join_tables(tables), join_tables(summed) if pooled else None, report, notes)


def text_notes(total: int, *, skipped: int = 0, bare: int = 0, said: Sequence[str] = ()) -> tuple[Note, ...]:
    """How many texts were measured, skipped or without content, and what was said about single ones."""
    notes = [Note("texts", f"Texts: {total - skipped} measured, {skipped} without tokens skipped.")]
    if bare:
        notes.append(Note("no_content", f"Texts whose tokens are all sinks, so that no row counts: {bare}."))
    notes += [Note("text", note) for note in said[:8]]
    if len(said) > 8:
        notes.append(Note("text", f"{len(said) - 8} more notes on texts."))
    return tuple(notes)


def _has_tokens(model: Model, text: str, truncate: bool) -> bool:
    """Whether the text has a token of its own: those that the tokenizer adds span no characters."""
    read = read_tokens(model, text, truncate)
    return any(end > start for start, end in read.offsets or ())


def _reraise(error: InputError, index: int, texts: Sequence[str]) -> NoReturn:
    if len(texts) == 1:
        raise error
    start = " ".join(texts[index][:200].split())[:32]
    raise InputError(f"text {index + 1} of {len(texts)} ({start!r}): {error}") from None
