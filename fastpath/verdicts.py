"""The oracle's verdicts about heads, compiled: every triple is looked at, so that ties and NaN are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpath._masks import frozen
from fastpath._rows import as_compiled
from fastpath._verdict_kernel import COUNTS, count_verdicts
from oracle._distance_checks import check_groups, check_margin, check_matrices
from oracle._results import VerdictFlips

__all__ = ["verdict_flips"]

Array = NDArray[Any]


def verdict_flips(first: Any, second: Any, groups: Any = None, margin: float = 0.0) -> VerdictFlips:
    """Twin of `oracle.verdict_flips`, equal to it in every count; longdouble raises InputTypeError."""
    pair = [
        as_compiled(argument, matrix).astype(np.float64, copy=False)
        for argument, matrix in zip(("first", "second"), check_matrices(first, second), strict=True)
    ]
    heads = len(pair[0])
    labels = np.unique(check_groups(groups, heads), return_inverse=True, equal_nan=False)[1]
    check_margin(margin)
    least = np.stack([_least_gaps(matrix, margin) for matrix in pair])
    counts = np.zeros((heads, len(COUNTS)), dtype=np.int64)
    with np.errstate(all="ignore"):  # without the JIT, NumPy would warn where compiled code does not
        count_verdicts(frozen(pair[0]), frozen(pair[1]), labels.astype(np.int64), least, counts)
        flipped, triples, tied, undefined = (int(count) for count in counts.sum(axis=0))
        per_anchor = counts[:, 0] / counts[:, 1]
    rate = flipped / triples if triples else np.nan
    return VerdictFlips(rate, per_anchor, flipped, triples, tied, undefined)


def _least_gaps(matrix: Array, margin: float) -> NDArray[np.float64]:
    """`margin` times the median of each row off the diagonal, NaN left out, (head,); below any gap for 0."""
    gaps = np.full(len(matrix), -np.inf)
    for anchor in range(len(matrix) if margin > 0 else 0):
        others = np.delete(matrix[anchor], anchor)
        others = others[~np.isnan(others)]
        if others.size:
            gaps[anchor] = margin * np.median(others)
    return gaps
