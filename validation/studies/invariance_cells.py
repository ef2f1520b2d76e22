"""Changes made to the scores of a real model, and what each does to each distance: before, after, where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import CONVENTIONS, METRICS, Model, Trace, forward
from oracle._checks import reject
from validation.progress import Progress, silent
from validation.properties import Implementation, rounding, softmax
from validation.studies.expected_invariances import CHANGES, SINKS, Expectation, expectation

__all__ = ["DISTANCES", "FACTOR", "QUERIES", "Cell", "Ground", "measure_cells"]

Array = NDArray[Any]
Measured = dict[tuple[str, str], Array]

QUERIES = 16  # of one text, evenly spaced among those that count
FACTOR = 1.5  # the t of "temperature"; no power of two, whose products would be exact
_CLEAR = 1000  # a counterexample is this many bounds away, so that no rounding passes for one
DISTANCES = tuple((m, c) for m in METRICS for c in CONVENTIONS if (m, c) != ("aitchison_sink", "drop"))


class _Sample(NamedTuple):
    """Pairs of heads of one text at some of its queries, under one sink set."""

    text: int
    queries: Array  # (query,)
    scores: tuple[Array, Array]  # each (pair, query, key), float64
    sinks: NDArray[np.bool_]  # (key,)
    visible: NDArray[np.bool_]  # (query, key)


class Ground(NamedTuple):
    """What a distance was seen on: texts, their T, pairs of rows of two heads, and how many lack one."""

    texts: int
    lengths: tuple[int, ...]
    rows: int
    undefined: int


class Cell(NamedTuple):
    """One distance under one change: what was expected, what was seen, and where it was seen most.

    `deviation` is the largest |after - t^p before| over the largest distance, p and t as in the expectation;
    where no power is expected to do, p is that of the median ratio. `found` is "holds", "fails", or "unclear"
    between the bound and a thousand times it.
    """

    sinks: str
    change: str
    metric: str
    convention: str
    expected: Expectation
    found: str
    deviation: float
    bound: float
    power: float
    before: float
    after: float
    text: int
    heads: tuple[int, int]
    query: int
    ground: Ground

    @property
    def ok(self) -> bool:
        """Whether the cell is what its expectation says."""
        return self.found == ("holds" if self.expected.holds else "fails")


def measure_cells(
    model: Model,
    texts: Sequence[str | Sequence[int]],
    progress: Progress = silent,
    seed: int = 0,
    implementation: Implementation | None = None,
    truncate: bool = False,
) -> list[Cell]:
    """Every cell of the table, one after another; arguments and errors are those of `invariance_table`."""
    measures = implementation or Implementation()
    if model.config.n_layers * model.config.n_heads < 2:
        reject("model", expected="two heads to compare", found="one", todo="Take a larger model.")
    traces = [forward(model, text, sink="first", keep=("scores",), truncate=truncate) for text in texts]
    cells = []
    for index, sinks in enumerate(SINKS):
        samples = [s for text, trace in enumerate(traces) if (s := _sample(text, trace, sinks, model))]
        if not samples:
            reject("texts", expected="a text with two content tokens", found="none", todo="Add a sentence.")
        before = _pooled(measures, samples)
        for step, change in enumerate(CHANGES):
            progress(f"{change}, {sinks}", index * len(CHANGES) + step, len(SINKS) * len(CHANGES))
            changed = [_changed(sample, change, [seed, index, step, sample.text]) for sample in samples]
            after = _pooled(measures, changed)
            bound = _bound([*samples, *changed])
            for key in DISTANCES:
                law = expectation(change, sinks, *key)
                cells.append(_cell(law, sinks, key, before[key], after[key], bound, samples))
    progress("invariances", len(SINKS) * len(CHANGES), len(SINKS) * len(CHANGES))
    return cells


def _sample(text: int, trace: Trace, sinks: str, model: Model) -> _Sample | None:
    """Each head against the next one and against one far from it; None for a text with too little content."""
    if trace.visible.ndim != 2:  # heads of different layers are compared
        reject(
            "model",
            expected="one in which all layers see the same keys",
            found=f"{model.name}, whose windows differ by layer",
            todo="Take another model.",
        )
    special = np.isin(trace.token_ids, model.config.sink_ids) & trace.mask
    mask = trace.sink_mask
    if sinks == "several":
        mask = special if special.sum() > 1 else trace.mask & (np.cumsum(trace.mask) <= 2)
    content = trace.visible & ~mask
    queries = np.flatnonzero(trace.mask & ~mask & ~special & (content.sum(axis=-1) > 1))
    if not len(queries):
        return None
    queries = queries[np.unique(np.linspace(0, len(queries) - 1, QUERIES).astype(int))]
    heads = trace.scores.reshape(-1, *trace.scores.shape[-2:])[:, queries].astype(np.float64)
    first, second = _partners(len(heads))
    return _Sample(text, queries, (heads[first], heads[second]), mask, trace.visible[queries])


def _partners(heads: int) -> tuple[Array, Array]:
    """Flattened heads (pair,) of both sides: the next head, and the one half the model away."""
    every = np.arange(heads)
    return np.tile(every, 2), np.concatenate([np.roll(every, -1), np.roll(every, -((heads + 1) // 2))])


def _changed(sample: _Sample, change: str, seed: list[int]) -> _Sample:
    """The sample with its scores changed."""
    rng = np.random.default_rng(seed)
    x, y = sample.scores
    if change == "permutation":
        order = rng.permutation(x.shape[-1])
        moved = x[..., order], y[..., order]
        return sample._replace(scores=moved, sinks=sample.sinks[order], visible=sample.visible[..., order])
    if change == "temperature":
        return sample._replace(scores=(FACTOR * x, FACTOR * y))
    if change == "offset":
        offset = rng.normal(0, 1, x.shape[-1])
        return sample._replace(scores=(x + offset, y + offset))
    shape = (*x.shape[:-1], 1) if change == "constant" else x.shape
    where = 1 if change == "constant" else sample.sinks
    return sample._replace(scores=(x + rng.normal(0, 2, shape) * where, y + rng.normal(0, 2, shape) * where))


def _pooled(measures: Implementation, samples: Sequence[_Sample]) -> Measured:
    """Every distance of all pairs, queries and texts, flattened: (row,)."""
    found = [_distances(measures, sample) for sample in samples]
    return {key: np.concatenate([each[key].ravel() for each in found]) for key in DISTANCES}


def _distances(measures: Implementation, sample: _Sample) -> Measured:
    sinks, visible = sample.sinks, sample.visible
    rows = [softmax(scores, visible) for scores in sample.scores]
    split = measures.aitchison_split_from_scores(*sample.scores, sinks, visible)
    found = {
        ("aitchison", "keep"): split.total,
        ("aitchison", "drop"): split.content,
        ("aitchison_sink", "keep"): split.sink,
    }
    for metric, convention in DISTANCES:
        if (metric, convention) not in found:
            found[metric, convention] = measures.row_distances(*rows, sinks, metric, convention, visible)
    return found


def _bound(samples: Sequence[_Sample]) -> float:
    """Scores, and so logarithms of weights, are off by an epsilon of their size; sums lose four a term."""
    largest = max(
        np.abs(np.where(sample.visible, scores, 0)).max() for sample in samples for scores in sample.scores
    )
    return rounding(max(len(sample.sinks) for sample in samples), np.finfo(np.float64).eps) * (1 + largest)


def _cell(
    law: Expectation,
    sinks: str,
    key: tuple[str, str],
    before: Array,
    after: Array,
    bound: float,
    samples: Sequence[_Sample],
) -> Cell:
    power = float(law.power)
    if law.change == "temperature" and not law.holds:
        plain = before > 0.01 * before.max()
        power = float(np.log(np.median(after[plain] / before[plain])) / np.log(FACTOR))
    wanted = before * FACTOR**power
    gap = np.abs(after - wanted) / max(before.max(), after.max())
    worst = int(np.where(np.isnan(gap), np.inf, gap).argmax())
    deviation = float(gap[worst])
    found = "holds" if deviation <= bound else "fails" if deviation >= _CLEAR * bound else "unclear"
    text, pair, query = _place(worst, samples)
    first, second = (int(side[pair]) for side in _partners(len(samples[0].scores[0]) // 2))
    return Cell(
        sinks,
        law.change,
        *key,
        law,
        found,
        deviation,
        bound,
        power,
        float(before[worst]),
        float(after[worst]),
        text,
        (first, second),
        query,
        Ground(
            len(samples),
            tuple(sorted({len(sample.sinks) for sample in samples})),
            before.size,
            int(np.isnan(before).sum()),
        ),
    )


def _place(row: int, samples: Sequence[_Sample]) -> tuple[int, int, int]:
    """Text, pair and query of a flattened row."""
    for sample in samples:
        shape = sample.scores[0].shape[:2]
        if row < shape[0] * shape[1]:
            pair, query = divmod(row, shape[1])
            return sample.text, pair, int(sample.queries[query])
        row -= shape[0] * shape[1]
    raise IndexError(row)
