"""`measure`: a sink report on a model and texts, or on attention rows that somebody already has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oracle.model import Model
from validation.arrays_file import ReadArrays, read_arrays
from validation.choices import parse_layers, parse_weightings
from validation.engines import load_engine
from validation.gathering import Gathered, gather, gather_arrays
from validation.headline import head_table, headline_tables, row_notes
from validation.progress import Progress, silent
from validation.report.document import Part
from validation.table import MIN_CONTENT_KEYS
from validation.verify import Verification, check_draw

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
    names = parse_weightings(weightings, ("attention", *arrays.norms))
    found = gather_arrays(
        arrays,
        sink=sink,
        layers=parse_layers(layers, arrays.rows.attention.shape[1]),
        queries=queries,
        min_content_keys=min_content_keys,
        progress=progress,
        measures=measures,
        verification=verification,
    )
    return _report(found, names, queries, verification)


def _verification(engine: str, rows: int | None, seed: int | None) -> Verification | None:
    check_draw(engine, rows, seed)
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
