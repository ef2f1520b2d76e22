"""Verdicts about heads, written out from their definitions as plain loops: every triple, one by one.

Nothing here calls the code that it judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flips", "gaussian_flip_rate", "verdict_flips"]

Array = NDArray[Any]

_TIE = 1e-12  # relative: nearer to each other than this, two distances are one


class Flips(NamedTuple):
    """Triples of two distance matrices, counted one by one."""

    rate: float
    per_anchor: Array  # (head,)
    flipped: int
    triples: int
    tied: int
    undefined: int


def verdict_flips(first: Any, second: Any, groups: Any = None, margin: float = 0.0) -> Flips:
    """Every triple (anchor, b, c) with b < c, taken one by one; matrices are (head, head), groups (head,).

    The median of a margin is over all other heads, whatever their group.
    """
    matrices = [np.asarray(matrix) for matrix in (first, second)]
    heads = len(matrices[0])
    flipped, triples = np.zeros(heads, int), np.zeros(heads, int)
    tied = undefined = 0
    for anchor in range(heads):
        others = [head for head in range(heads) if head != anchor and _together(groups, anchor, head)]
        rest = [head for head in range(heads) if head != anchor]
        least = [margin * _median([matrix[anchor, head] for head in rest]) for matrix in matrices]
        for index, b in enumerate(others):
            for c in others[index + 1 :]:
                pairs = [(matrix[anchor, b], matrix[anchor, c]) for matrix in matrices]
                if any(np.isnan(distance) for pair in pairs for distance in pair):
                    undefined += 1
                    continue
                gaps = [abs(u - v) for u, v in pairs]
                if margin and not all(gap > bar for gap, bar in zip(gaps, least, strict=True)):
                    continue
                signs = [_order(u, v) for u, v in pairs]
                triples[anchor] += 1
                flipped[anchor] += signs[0] * signs[1] < 0
                tied += 0 in signs
    with np.errstate(invalid="ignore"):
        per_anchor = np.divide(flipped, triples)
        rate = float(np.divide(flipped.sum(), triples.sum()))
    return Flips(rate, per_anchor, int(flipped.sum()), int(triples.sum()), tied, undefined)


def gaussian_flip_rate(first: Any, second: Any) -> Array:
    """arccos(rho) / pi of each anchor, (head,), rho the correlation of its two lists of distances."""
    matrices = [np.asarray(matrix, dtype=np.float64) for matrix in (first, second)]
    rates = np.full(len(matrices[0]), np.nan)
    for anchor in range(len(rates)):
        lists = [np.delete(matrix[anchor], anchor) for matrix in matrices]
        known = ~np.isnan(lists[0]) & ~np.isnan(lists[1])
        u, v = (entries[known] for entries in lists)
        if len(u) > 1 and len(set(u)) > 1 and len(set(v)) > 1:
            gaps = [entries - sum(entries) / len(entries) for entries in (u, v)]
            rho = sum(gaps[0] * gaps[1]) / np.sqrt(sum(gaps[0] ** 2) * sum(gaps[1] ** 2))
            rates[anchor] = np.arccos(min(max(rho, -1), 1)) / np.pi
    return rates


def _median(numbers: Sequence[Any]) -> float:
    known = sorted(number for number in numbers if not np.isnan(number))
    middle = len(known) // 2
    return float((known[middle] + known[~middle]) / 2) if known else float("nan")


def _together(groups: Any, a: int, b: int) -> bool:
    return groups is None or groups[a] == groups[b]


def _order(u: Any, v: Any) -> int:
    """Which of the two is nearer: -1, 0 for a tie, 1."""
    return 0 if abs(u - v) <= _TIE * max(abs(u), abs(v)) else 1 if u > v else -1
