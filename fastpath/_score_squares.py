"""Squared Aitchison distances of all pairs of heads from scores: one matrix product over the centred scores.

With z the centred scores of a head, one long row of all rows that are defined in every head, the sum of d²
over the rows is ‖z‖² + ‖z'‖² - 2 z·z'. That loses the digits of close heads, so pairs near each other for the
rounding of their norms are summed as differences instead, and equal heads are at exactly zero. Rows that some
heads lack are summed as differences too.

How near is near: whatever its order, a sum of m products is off by m eps/2 of the sum of their magnitudes at
most, and with roundings of random sign by less than 8 sqrt(m) eps/2, but once in 1e13 (Ipsen and Zhou 2020,
arXiv:1906.10465). Two norms and a product twice are then off by less than min(m, 8 sqrt(m)) eps times
‖z‖² + ‖z'‖². What two computations may be apart (`validation.distance_bounds`, with scores up to one; it
grows with them) is (4 n + 16) sqrt(n + 1) eps d² for n keys, of which centring needs less than a half and the
sum is given the other.

The threads of a matrix product go on spinning for some 25 ms beside whatever is compiled, so it comes after
all compiled passes over a text, one for each 32 MB of centred scores.

It pays where heads are apart: 72 heads of 128 x 128 take 112 ms instead of 169 with one BLAS thread and 108
instead of 136 with two, on two busy cores. Where over a quarter of the pairs are near, the product is in
vain: 282 ms instead of 168, and 207 instead of 51.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpath._pair_kernels import LANES, pair_kernel, tiles_of
from fastpath._part_kernels import centre_scores
from fastpath._parts import Selection

__all__ = ["ScoreSquares", "near_share", "squares_from_scores"]

Array = NDArray[Any]
_BYTES = 32 << 20  # of centred scores multiplied at once: those of a text of ordinary length
_FEW_BYTES = 4 << 20  # of those summed as differences, row by row: they stay in the cache
_MANY = 0.25  # of all pairs near each other: then tiles of all heads are the faster way


class ScoreSquares(NamedTuple):
    """Sums of squared distances above the diagonal, and where a score is wrong."""

    content: Array  # (head, head)
    sink: Array  # (head, head)
    odd: NDArray[np.int64]  # (head, query): 1 where a visible score is not finite


def squares_from_scores(scores: Array, selection: Selection, defined: NDArray[np.bool_]) -> ScoreSquares:
    """From scores (head, query, key) over the rows that are defined (query, head) in both heads and count.

    All rows are looked at.
    """
    heads, n_queries, n_keys = scores.shape
    content, sink = np.zeros((2, heads, heads))
    found = ScoreSquares(content, sink, np.zeros((heads, n_queries), dtype=np.int64))
    whole: NDArray[np.bool_] = np.asarray(defined.all(axis=1))
    _add_rows(found, scores, selection.at(~whole), defined)
    for some in _steps(selection.at(whole), heads, _BYTES):
        end = np.cumsum(some.width)
        near, squares = near_share(int(end[-1]), n_keys), None
        if near < 1:  # short texts have little to multiply
            columns = np.empty((1, heads, int(end[-1])))
            balance = _centre(scores, some, np.zeros_like(end), end - some.width, columns, found.odd)
            beside = _differences(balance[None], np.array([len(end)]))
            squares = _multiplied(columns, near)
        if squares is None:
            _add_rows(found, scores, some, defined)
        else:
            sink += beside
            content += squares
    return found


def near_share(length: int, n_keys: int) -> float:
    """The share of ‖z‖² + ‖z'‖² below which d² is a sum of differences, for z of this length."""
    return 2 * min(length, 8 * math.sqrt(length)) / ((4 * n_keys + 16) * math.sqrt(n_keys + 1))


def _steps(selection: Selection, heads: int, size: int) -> Iterator[Selection]:
    """Some rows at a time, of at most so many bytes."""
    step = max(1, size // max(1, 8 * heads * int(selection.width.max(initial=LANES))))
    for first in range(0, len(selection.queries), step):
        yield selection.at(slice(first, first + step))


def _centre(
    scores: Array,
    some: Selection,
    piece: NDArray[np.int64],
    column: NDArray[np.int64],
    parts: Array,
    odd: NDArray[np.int64],
) -> Array:
    """Put the centred content of rows into parts (piece, head, column), and give balances (head, row)."""
    heads, n_rows = len(scores), len(some.queries)
    balance, wrong = np.zeros((heads, n_rows)), np.empty((heads, n_rows), dtype=np.int64)
    centre_scores(scores, *some, piece, column, parts, balance, wrong)
    odd[:, some.queries] = wrong
    return balance


def _add_rows(found: ScoreSquares, scores: Array, selection: Selection, defined: NDArray[np.bool_]) -> None:
    """Add rows as sums of differences, where they are defined (query, head) in both heads."""
    room: Array | None = None
    for some in _steps(selection, len(scores), _FEW_BYTES):
        row = np.arange(len(some.queries))
        if room is None:  # the first step has most rows; new memory costs page faults
            room = np.empty((len(row), len(scores), int(selection.width.max())))
        parts = room[: len(row)]
        balance = _centre(scores, some, row, np.zeros_like(row), parts, found.odd)
        there = defined[some.queries]
        found.content[:] += _differences(parts, some.width, there)
        found.sink[:] += _differences(np.ascontiguousarray(balance.T)[:, :, None], np.ones_like(row), there)


def _multiplied(columns: Array, near: float) -> Array | None:
    """Squared distances (head, head), above the diagonal, of columns (1, head, column).

    Those of near heads are sums of differences; None where these are many.
    """
    _, heads, length = columns.shape
    product = columns[0] @ columns[0].T
    norms = np.diagonal(product)[:, None] + np.diagonal(product)
    squares = norms - 2 * product
    close = np.triu(~((squares >= near * norms) & (norms < math.inf)), 1)
    if close.sum() > _MANY * heads * (heads - 1) / 2:
        return None
    if close.any():
        squares[close] = _differences(columns, np.array([length]), tiles=(1, np.argwhere(close)))[close]
    return np.triu(squares, 1)


def _differences(
    parts: Array,
    width: NDArray[np.int64],
    defined: NDArray[np.bool_] | None = None,
    tiles: tuple[int, NDArray[np.int64]] | None = None,
) -> Array:
    """The same over parts (row, head, part), of rows defined (row, head), pair by pair of the tiles."""
    n_rows, heads, _ = parts.shape
    size, chosen = tiles or tiles_of(heads)
    there = np.ones((n_rows, heads), dtype=bool) if defined is None else defined
    found, unused = np.zeros((2, heads, heads))
    nothing = np.empty((n_rows, heads))
    pair_kernel("squares")(parts, parts, nothing, width, there, chosen, size, 1.0, math.inf, found, unused)
    return found
