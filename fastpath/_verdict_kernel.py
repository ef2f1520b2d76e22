"""Verdicts of all triples, counted by brute force: loops over plain arrays that trust their caller."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from fastpath._jit import compiled_parallel, inlined_exact

__all__ = ["COUNTS", "count_verdicts"]

COUNTS = ("flipped", "triples", "tied", "undefined")
_TIE = np.float64(1e-12)  # of the larger distance


@inlined_exact
def _sign(near: float, far: float) -> float:
    """-1 where near is smaller, 1 where far is, 0 for a tie; the very operations of the oracle."""
    one, other = abs(near), abs(far)
    gap = near - far
    larger = one if one > other else other
    sign = np.float64(-1.0) if gap < 0 else np.float64(1.0)
    return np.float64(0.0) if abs(gap) <= _TIE * larger else sign


@compiled_parallel
def count_verdicts(first: Any, second: Any, labels: Any, least: Any, out: Any) -> None:
    """Fill out (head, COUNTS) for the triples of each anchor among heads of its label.

    first and second are distances (head, head), float64, labels (head,) integers; least (2, head): the gap
    between two distances of an anchor that a triple has to exceed in either matrix.
    """
    heads = first.shape[0]
    for task in numba.prange(heads):
        a = np.uintp(task)
        x, y = np.empty(heads), np.empty(heads)
        n = np.uintp(0)
        for b in range(np.uintp(heads)):
            if b != a and labels[b] == labels[a]:
                x[n], y[n] = first[a, b], second[a, b]
                n += np.uintp(1)
        flipped, triples, tied, undefined = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for b in range(n):
            for c in range(b + np.uintp(1), n):
                one, other = abs(x[b] - x[c]), abs(y[b] - y[c])
                lost = one != one or other != other
                judged = not lost and one > least[0, a] and other > least[1, a]
                agreement = _sign(x[b], x[c]) * _sign(y[b], y[c])
                triples += np.int64(judged)
                flipped += np.int64(judged and agreement < 0)
                tied += np.int64(judged and agreement == 0)
                undefined += np.int64(lost)
        for place, count in enumerate((flipped, triples, tied, undefined)):
            out[a, place] = count
