"""The oracle's distances between heads in bulk; each names its oracle and states only what differs.

Rows are laid out as parts once for each text, in blocks; then a compiled pass over all pairs of heads adds up
each distance. Sums over parts of weights are of differences, not matrix products of the rows: 1 - x·y and
‖x‖² - 2 x·y + ‖y‖² lose the digits of close rows, and a pass of differences costs little beside the
Jensen-Shannon divergence. Only Aitchison's distance from scores takes a product, for heads far enough apart
to keep their digits (`fastpath/_score_squares.py`). Sums are float64 whatever comes in; longdouble has no
compiled form and raises InputTypeError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpath._aitchison import AitchisonSums
from fastpath._pair_kernels import pair_kernel, tiles_of
from fastpath._part_kernels import describe_parts
from fastpath._parts import blocks_of, rows_of_pairs, select_parts
from oracle._distance_checks import (
    AITCHISON,
    CONVENTIONS,
    METRICS,
    Text,
    check_metrics,
    check_zeros,
    read_texts,
)
from oracle._results import DistanceSums

__all__ = ["clark2019_distances", "distance_sums", "head_distances"]

Array = NDArray[Any]
Pair = tuple[str, str]


class _Pass(NamedTuple):
    """One pass over all pairs: which distances it gives."""

    kernel: str
    form: str  # of the parts, beside the parts themselves; "entropy" is taken alone
    scale: float
    largest: float
    metric: str | None  # the metric that is the distance,
    root: str | None  # and the one that is its root


_PASSES = (
    _Pass("jensen", "logs", 0.5, math.log(2), "jsd", "root_jsd"),
    _Pass("cosine", "parts", 0.5, 1.0, "cosine", None),
    _Pass("hellinger", "roots", 0.5, 1.0, None, "hellinger"),
    _Pass("absolute", "parts", 1.0, 2.0, "l1", None),
    _Pass("absolute", "entropy", 1.0, math.inf, "entropy", None),
)


def distance_sums(
    rows: Any,
    sink_mask: Any,
    metrics: str | Iterable[str] = METRICS,
    conventions: str | Iterable[str] = CONVENTIONS,
    visible: Any = None,
    scores: Any = None,
    queries: Any = None,
    zeros: str = "refuse",
    delta: float | None = None,
) -> DistanceSums:
    """Twin of `oracle.distance_sums`: every metric from one layout of the rows."""
    pairs = check_metrics(metrics, conventions)
    check_zeros(zeros, delta)
    texts = read_texts(rows, sink_mask, visible, scores, queries)
    with np.errstate(all="ignore"):  # without the JIT, NumPy would warn where compiled code does not
        found = [_sums_of(text, pairs, zeros, delta) for text in texts]
    return DistanceSums(
        *({pair: np.stack([part[place][pair] for part in found]) for pair in pairs} for place in range(2))
    )


def head_distances(
    rows: Any,
    sink_mask: Any,
    metric: str = "jsd",
    convention: str = "keep",
    visible: Any = None,
    scores: Any = None,
    queries: Any = None,
    zeros: str = "refuse",
    delta: float | None = None,
) -> NDArray[np.float64]:
    """Twin of `oracle.head_distances`."""
    found = distance_sums(rows, sink_mask, metric, convention, visible, scores, queries, zeros, delta)
    totals, counts = (part[metric, convention].sum(axis=0) for part in found)
    with np.errstate(invalid="ignore"):
        means = totals / counts
    np.fill_diagonal(means, 0)
    return means


def clark2019_distances(rows: Any, visible: Any = None, queries: Any = None) -> NDArray[np.float64]:
    """Twin of `oracle.clark2019_distances`."""
    texts = read_texts(rows, None, visible, None, queries)
    with np.errstate(all="ignore"):
        found = [_sums_of(text, (("jsd", "keep"),), "refuse", None, 0.999, 0.001) for text in texts]
    totals, counts = (np.sum([part[place]["jsd", "keep"] for part in found], axis=0) for place in range(2))
    return np.where((counts == 0) & ~np.eye(len(totals), dtype=bool), np.nan, totals)


def _sums_of(
    text: Text,
    pairs: Sequence[Pair],
    zeros: str,
    delta: float | None,
    share: float = 1.0,
    noise: float = 0.0,
) -> tuple[dict[Pair, Array], dict[Pair, Array]]:
    """Sums and counts of one text, each (head, head) by metric and convention."""
    heads = math.prod(text.rows.shape[:-2])
    plain = [pair for pair in pairs if pair[0] not in AITCHISON]
    sums: dict[Pair, Array] = {pair: np.zeros((heads, heads)) for pair in plain}
    rows = {convention: np.zeros((heads, heads), dtype=np.int64) for convention in CONVENTIONS}
    selection = select_parts(text)
    aitchison = AitchisonSums(text, selection, zeros, delta) if len(plain) < len(pairs) else None
    room: Array | None = None
    for block in blocks_of(text, selection, share, noise):
        if aitchison is not None:
            aitchison.add(block)
        if block.counted:
            for convention, parts, defined in zip(
                CONVENTIONS, (block.keep, block.drop), block.defined, strict=True
            ):
                tables = {metric: sums[metric, of] for metric, of in plain if of == convention}
                if tables:
                    if room is None:  # the first block is the largest
                        room = np.empty((2, *parts.shape))
                    rows[convention] += rows_of_pairs(defined)
                    _add_block(tables, parts, defined, block.selection.width, room)
    for table in sums.values():
        table += table.T
    counts = {pair: rows[pair[1]].copy() for pair in plain}
    if aitchison is not None:
        split, counted = aitchison.result()
        for pair in pairs:
            if pair[0] in AITCHISON:
                sums[pair], counts[pair] = split[pair], counted
    return sums, counts


def _add_block(
    tables: Mapping[str, Array],
    parts: Array,
    defined: NDArray[np.bool_],
    width: NDArray[np.int64],
    room: Array,
) -> None:
    """Add the distances of rows as parts (row, head, part) to tables by metric, above the diagonal.

    room (2, row, head, part) is where logarithms and roots go, for at least as many rows.
    """
    n_rows, heads, _ = parts.shape
    forms = {
        "parts": parts,
        "logs": room[0, :n_rows],
        "roots": room[1, :n_rows],
        "entropy": np.empty((n_rows, heads, 1)),
    }
    length, information = np.empty((n_rows, heads)), np.empty((n_rows, heads))
    describe_parts(parts, width, forms["logs"], forms["roots"], length, information, forms["entropy"])
    unused = np.zeros((heads, heads))
    size, tiles = tiles_of(heads)
    for kernel, form, scale, largest, metric, root in _PASSES:
        if metric in tables or root in tables:
            alone = form == "entropy"
            pair_kernel(kernel)(
                forms["entropy"] if alone else parts,
                forms[form],
                information if kernel == "jensen" else length,
                np.ones_like(width) if alone else width,
                defined,
                tiles,
                size,
                scale,
                largest,
                tables.get(metric or "", unused),
                tables.get(root or "", unused),
            )
