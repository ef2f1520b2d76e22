"""`measure`: a sink report on a model and texts, or on attention rows that somebody already has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oracle._checks import reject
from oracle.model import Model
from validation.arrays_file import ReadArrays, read_arrays
from validation.choices import parse_layers, parse_weightings
from validation.engines import load_engine
from validation.gathering import Gathered, gather, refuse_no_rows, text_notes
from validation.headline import head_table, headline_tables, row_notes
from validation.progress import Progress, silent
from validation.report.document import Note, Part
from validation.sink_report import SinkReport
from validation.table import MIN_CONTENT_KEYS, join_tables, tabulate
from validation.verify import Verification

__all__ = ["measure", "measure_arrays"]


def measure(
    model: Model,
    texts: str | Sequence[str],
    *,
    sink: Any = "special",
    weightings: str | Sequence[str] | None = None,
    layers: str | Sequence[int] | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
    truncate: bool = False,
    engine: str = "fastpath",
    verify: int | None = None,
    verify_seed: int | None = None,
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> tuple[Part, ...]:
    """A sink report on `texts`: shares by weighting and layer, value norms of the sinks, what was odd.

    `sink` is read by `oracle.choose_sinks`; `weightings` are names from attention, value_norm,
    transformed_norm and head_summed_norm; `layers` is read by `parse_layers`. A text longer than the
    model's positions raises InputError, unless `truncate` cuts it. `engine` is "fastpath" or "oracle";
    `verify` is the number of random rows that the oracle computes again, with a Check of them, drawn anew
    each time unless `verify_seed` is given; `on_compile` is read by `load_engine`.
    """
    measures = load_engine(engine, on_compile)
    verification = _verification(engine, verify, verify_seed)
    listed = [texts] if isinstance(texts, str) else texts
    names = parse_weightings(weightings)
    chosen = parse_layers(layers, model.config.n_layers)
    found = gather(
        model,
        listed,
        sink=sink,
        weightings=names,
        layers=chosen,
        queries=queries,
        min_content_keys=min_content_keys,
        truncate=truncate,
        progress=progress,
        measures=measures,
        verification=verification,
    )
    return _report(found, names, queries, verification)


def measure_arrays(
    source: Any,
    *,
    sink: Any = "special",
    weightings: str | Sequence[str] | None = None,
    layers: str | Sequence[int] | None = None,
    layout: str | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
    engine: str = "fastpath",
    verify: int | None = None,
    verify_seed: int | None = None,
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> tuple[Part, ...]:
    """A sink report on attention rows without a model: an .npz file, a mapping of arrays, or bare rows.

    `source` is read by `validation.arrays_file.read_arrays`, unless that was done before. Without norms only
    the weighting "attention" is there. A causal text counts from the first row with `min_content_keys`
    visible content keys. The rest is as in `measure`.
    """
    measures = load_engine(engine, on_compile)
    verification = _verification(engine, verify, verify_seed)
    arrays = source if isinstance(source, ReadArrays) else read_arrays(source, sink=sink, layout=layout)
    rows = arrays.rows.attention  # (batch, layer, head, query, key)
    names = parse_weightings(weightings, ("attention", *arrays.norms))
    chosen = parse_layers(layers, rows.shape[1])
    report, tables = SinkReport(sink), []
    for text in range(len(rows)):
        progress("texts", text, len(rows))
        visible, sinks = arrays.rows.visible[text], arrays.sinks[text]
        norms = {name: norm[text] for name, norm in arrays.norms.items()}
        where: dict[str, Any] = {"text": text, "layers": chosen}
        picked: dict[str, Any] = {"queries": queries, "min_content_keys": min_content_keys}
        tables.append(tabulate(rows[text], sinks, visible, norms, measures=measures, **where, **picked))
        if verification is not None:
            verification.add(tables[-1], rows[text], sinks, visible, norms)
        report.add(rows[text], norms.get("value_norm"), sinks, visible, tokens=arrays.tokens[text], **where)
    progress("texts", len(rows), len(rows))
    bare = sum(
        not (seen.any(axis=0) & ~sinks).any()
        for seen, sinks in zip(arrays.rows.visible, arrays.sinks, strict=True)
    )
    notes = (*(Note("arrays", note) for note in arrays.notes), *text_notes(len(rows), bare=bare))
    table = join_tables(tables)
    refuse_no_rows(table, report, min_content_keys)
    warnings = tuple(Note("warning", note) for note in arrays.warnings)
    found = Gathered(table, None, report, notes, min_content_keys, warnings)
    return _report(found, names, queries, verification)


def _verification(engine: str, rows: int | None, seed: int | None) -> Verification | None:
    if rows is not None and engine == "oracle":
        reject(
            "verify",
            expected="the engine fastpath",
            found="the oracle, which would only be compared with itself",
            todo="Leave out verify, or choose the engine fastpath.",
        )
    if rows is None and seed is not None:
        reject("verify_seed", expected="verify beside it", found="none", todo="Say how many rows to draw.")
    return None if rows is None else Verification(rows, seed)


def _report(
    found: Gathered, names: Sequence[str], queries: str, verification: Verification | None
) -> tuple[Part, ...]:
    return (
        *found.warnings,
        found.sinks.note(),
        *row_notes(found.table, queries, found.min_content_keys),
        *headline_tables(found.table, found.head_summed, names, queries),
        head_table(found.table, names),
        *found.sinks.parts(),
        *(() if verification is None else (verification.part(),)),
        *found.notes,
    )
