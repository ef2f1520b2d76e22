"""Two implementations of the forward pass side by side, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oracle import Model
from validation.headline import length_words
from validation.progress import Progress, silent
from validation.reference import LIFTED
from validation.report.document import Check, Column, Note, Part, Table
from validation.stages import Text, read_texts, runner, single
from validation.tally import Stage, Tally, bound_words

__all__ = ["diff"]

_COLUMNS = (
    Column("stage", "stage"),
    Column("shape", "shape"),
    Column("dtype", "dtype"),
    Column("max_absolute", "max abs", ".1e"),
    Column("max_relative", "max rel", ".1e"),
    Column("max_ulps", "ULPs", ".1e"),
    Column("worst", "worst at"),
    Column("bound", "bound", ".0e"),
    Column("bound_of", "times"),
    Column("within", "within"),
)


def diff(
    model: Model,
    first: str,
    second: str,
    texts: Sequence[Text],
    progress: Progress = silent,
    *,
    reference: Path | None = None,
) -> tuple[Part, ...]:
    """Compare two of IMPLEMENTATIONS over all texts: a table by stage, its check, T, the first to leave.

    The more precise of the two is what is expected. `texts` are strings or token ids, each run by itself; one
    without tokens is skipped and counted. `reference` is the directory for transformers, by default the one
    that the model was loaded from. Errors of a stage are the largest over all layers and texts, ULPs are
    those of the less precise side. Raises InputError for an unknown implementation, a text that does not fit
    or no texts, Unavailable without the extra.
    """
    tally = Tally(first, second, model)
    ids, skipped = read_texts(model, texts)
    runs = [runner(model, name, reference) for name in (tally.expected, tally.found)]
    what = f"{tally.found} against {tally.expected}, text"
    for index, tokens in enumerate(ids):
        progress(what, index, len(ids))
        batch = single(tokens)
        expected, found = (run(batch)[0] for run in runs)
        tally.add(expected, found, batch.mask[0])
    progress(what, len(ids), len(ids))
    stages = tuple(tally.stages.values())
    lengths = [len(tokens) for tokens in ids]
    span = length_words(sorted(set(lengths)))
    notes = [
        f"texts: {len(ids)}" + (f", and {skipped} without tokens skipped" if skipped else ""),
        "worst at: x text (from 1), L layer, H head, t token, q query, k key, d entry of a vector (from 0)",
        "the error there is the largest part of what it may be: the bound times what stands under times",
        "max rel and ULPs are large where a value is near zero",
        *bound_words({stage.name: stage.bound for stage in tally.stages.values()}),
    ]
    if "torch-float64" in (first, second):
        notes.append(f"torch: {LIFTED}")
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        notes.append("longdouble is no wider than float64 on this machine")
    left = tally.leaving
    return (
        Table("diff", what.removesuffix(", text"), _COLUMNS, tuple(map(_row, stages)), tuple(notes)),
        Check("diff.bounds", "every stage within its bound", left or f"all {len(stages)} are", left is None),
        Note("T", f"T (tokens of a text): {span.removeprefix('T ')}.", tuple(lengths)),
        Note("diff.first", f"First to leave its bound: {left}" if left else "No stage leaves its bound."),
    )


def _row(stage: Stage) -> tuple[Any, ...]:
    return (
        stage.name,
        ",".join(map(str, stage.shape)),
        " ".join(stage.dtypes),
        stage.max_absolute,
        stage.max_relative,
        stage.max_ulps,
        stage.place,
        stage.bound.limit,
        stage.bound.of,
        stage.within,
    )
