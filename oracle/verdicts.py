"""Verdicts about heads: for an anchor and two others, which is nearer; how often two matrices disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import at_least_float64
from oracle._distance_checks import check_groups, check_margin, check_matrices
from oracle._results import VerdictFlips

__all__ = ["TIE", "gaussian_flip_rate", "verdict_flips"]

Array = NDArray[Any]

TIE = 1e-12  # of the larger distance: two distances of an anchor that are this close are tied


def verdict_flips(first: Any, second: Any, groups: Any = None, margin: float = 0.0) -> VerdictFlips:
    """How many verdicts two distance matrices give differently; rates in [0, 1], no unit.

    A triple is an anchor a and an unordered pair of other heads b, c, its verdict which of d(a,b) and d(a,c)
    is smaller; d(a,·) is read from row a of the matrix. The triple is flipped where the verdicts of `first`
    and `second` differ; distances within TIE of the larger are tied, and a tie in either matrix agrees with
    everything. A NaN among the four distances leaves a triple out and is counted as undefined. Without ties
    per_anchor is (1 - Kendall's tau) / 2 of the two rows (Kendall 1938).

    `first` and `second` are (head, head), finite or NaN; the diagonal is not read. With `groups` (head,),
    such as the layer of each head, only triples inside one group are looked at. A `margin` m above 0 keeps
    only triples with |d(a,b) - d(a,c)| > m · median of d(a,x) over x other than a, NaN left out, in both
    matrices. Without a triple a rate is NaN. Raises InputError for other shapes, infinities and negative
    margins.
    """
    pair = _wide(first, second)
    heads = len(pair[0])
    labels = check_groups(groups, heads)
    check_margin(margin)
    flipped, triples = np.zeros(heads, dtype=np.int64), np.zeros(heads, dtype=np.int64)
    tied = undefined = 0
    for anchor in range(heads):
        others = np.flatnonzero((labels == labels[anchor]) & (np.arange(heads) != anchor))
        one, other = np.triu_indices(len(others), k=1)
        near, far = others[one], others[other]
        judged, signs = np.ones(len(near), dtype=bool), []
        for distances in pair:
            row = distances[anchor]
            signs.append(_signs(row[near], row[far]))
            if margin > 0:
                judged &= _beyond(row, anchor, near, far, margin)
        lost = np.isnan(signs[0]) | np.isnan(signs[1])
        product = (signs[0] * signs[1])[judged & ~lost]
        flipped[anchor], triples[anchor] = (product < 0).sum(), product.size
        tied += int((product == 0).sum())
        undefined += int(lost.sum())
    total, count = int(flipped.sum()), int(triples.sum())
    with np.errstate(invalid="ignore"):
        per_anchor = flipped / triples
    return VerdictFlips(total / count if count else np.nan, per_anchor, total, count, tied, undefined)


def gaussian_flip_rate(first: Any, second: Any) -> NDArray[np.float64]:
    """The flip rate that jointly Gaussian distances would have: (head,) per anchor, in [0, 1], no unit.

    arccos(rho) / pi, with rho the Pearson correlation of d(a,x) in `first` and `second` over the other heads
    x where both are defined (Sheppard 1899, the quadrant probability). NaN for an anchor with fewer than two
    such heads or with a constant row. Raises InputError as `verdict_flips` does.
    """
    pair = _wide(first, second)
    rates = np.full(len(pair[0]), np.nan)
    for anchor in range(len(rates)):
        rows = np.stack([np.delete(distances[anchor], anchor) for distances in pair])
        rows = rows[:, ~np.isnan(rows).any(axis=0)]
        if not rows.size or (np.ptp(rows, axis=1) == 0).any():
            continue
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        rows -= rows.mean(axis=1, keepdims=True)
        u, v = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        # The arccos of a rounded correlation near one loses half its digits; this angle does not.
        angle = 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v))
        rates[anchor] = angle / np.pi
    return rates


def _wide(first: Any, second: Any) -> list[Array]:
    matrices = zip(("first", "second"), check_matrices(first, second), strict=True)
    return [at_least_float64(name, matrix) for name, matrix in matrices]


def _signs(near: Array, far: Array) -> Array:
    """-1 where near is smaller, 1 where far is, 0 for a tie, NaN where one is missing."""
    gap = near - far
    return np.where(np.abs(gap) <= TIE * np.maximum(np.abs(near), np.abs(far)), 0, np.sign(gap))


def _beyond(
    row: Array, anchor: int, near: NDArray[np.intp], far: NDArray[np.intp], margin: float
) -> NDArray[np.bool_]:
    """Which pairs differ by more than `margin` times the anchor's median distance; a NaN passes."""
    others = np.delete(row, anchor)
    others = others[~np.isnan(others)]
    gap = np.abs(row[near] - row[far])
    return np.isnan(gap) | (gap > margin * np.median(others)) if others.size else np.ones(gap.shape, bool)
