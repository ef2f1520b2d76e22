"""Squared Aitchison distances of all pairs of heads from scores: one matrix product over the centred scores.

With z the centred scores of a head, one long row of all its rows and parts, the sum of d² over the rows is
‖z‖² + ‖z'‖² - 2 z·z'. That loses the digits of close heads, so pairs near each other for the rounding of
their norms are summed as differences instead, and equal heads are at exactly zero.

How near is near: a sum of m products is off by at most m eps/2 of the sum of their magnitudes, whatever its
order, and the product is taken in pieces, so m is the columns of a piece and the number of pieces together.
Two norms and a product twice are then off by less than m eps (‖z‖² + ‖z'‖²). What two computations may be
apart (`validation.distance_bounds`, with scores up to one; it grows with them) is (4 n + 16) sqrt(n + 1) eps
d² for n keys, of which centring needs less than a half and the sum is given the other.

The threads of a matrix product go on spinning for some 25 ms beside whatever is compiled, so it comes after
all compiled passes over a text.
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
_COLUMNS = 512  # of a piece; longer ones round worse, shorter ones cost more calls
_BYTES = 32 << 20  # of the centred scores at once: those of a text of ordinary length
_MANY = 0.25  # of all pairs near each other: then tiles of all heads are the faster way


class ScoreSquares(NamedTuple):
    """Sums of squared distances above the diagonal, and where a score is wrong."""

    content: Array  # (head, head)
    sink: Array  # (head, head)
    odd: NDArray[np.int64]  # (head, query): 1 where a visible score is not finite


def squares_from_scores(scores: Array, selection: Selection, defined: NDArray[np.bool_]) -> ScoreSquares:
    """From scores (head, query, key) over the rows that are defined (query, head) in both heads and count.

    All rows are looked at. Rows that are defined in the same heads are taken together.
    """
    heads, n_queries, n_keys = scores.shape
    content, sink = np.zeros((2, heads, heads))
    odd = np.zeros((heads, n_queries), dtype=np.int64)
    patterns, of_row = np.unique(defined, axis=0, return_inverse=True)
    for place, pattern in enumerate(patterns):
        there = np.ix_(pattern, pattern)
        for columns, balance in _centred(scores, selection.at(of_row.ravel() == place), odd):
            if pattern.any():
                here, beside = (part if pattern.all() else part[:, pattern] for part in (columns, balance))
                content[there] += _squares(here, near_share(here.shape, n_keys))
                sink[there] += _differences(beside, *tiles_of(beside.shape[1]))
    return ScoreSquares(content, sink, odd)


def near_share(shape: tuple[int, ...], n_keys: int) -> float:
    """The share of ‖z‖² + ‖z'‖² below which d² is a sum of differences, for columns of this shape."""
    pieces, _, length = shape
    return 2 * (length + pieces) / ((4 * n_keys + 16) * math.sqrt(n_keys + 1))


def _centred(scores: Array, selection: Selection, odd: NDArray[np.int64]) -> Iterator[tuple[Array, Array]]:
    """Centred content scores (piece, head, column) and balances (1, head, row) of some rows at a time."""
    heads, longest = len(scores), int(selection.width.max(initial=LANES))
    length = longest * max(1, _COLUMNS // longest)
    step = max(1, _BYTES // max(1, 8 * heads * longest))
    for first in range(0, len(selection.queries), step):
        some = selection.at(slice(first, first + step))
        piece, column = _places(some.width, length)
        n_rows = len(some.queries)
        columns = np.zeros((int(piece[-1]) + 1, heads, length))
        balance = np.zeros((1, heads, -(-n_rows // LANES) * LANES))
        wrong = np.zeros((heads, n_rows), dtype=np.int64)
        centre_scores(scores, *some, piece, column, columns, balance, wrong)
        odd[:, some.queries] = wrong
        yield columns, balance


def _places(width: NDArray[np.int64], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Piece and first column of rows of these widths, laid one behind the other in pieces of `length`."""
    places, piece, column = np.zeros((2, len(width)), dtype=np.int64), 0, 0
    for row, columns in enumerate(width.tolist()):
        if column + columns > length:
            piece, column = piece + 1, 0
        places[:, row] = piece, column
        column += columns
    return places[0], places[1]


def _squares(columns: Array, near: float) -> Array:
    """Squared distances (head, head), above the diagonal, of columns (piece, head, column)."""
    heads = columns.shape[1]
    pairs = heads * (heads - 1) // 2
    if near < 1:  # short texts have little to multiply
        product = np.zeros((heads, heads))
        for piece in columns:
            product += piece @ piece.T
        norms = np.diagonal(product)[:, None] + np.diagonal(product)
        squares = norms - 2 * product
        close = np.triu(~((squares >= near * norms) & (norms < math.inf)), 1)
        if close.sum() <= _MANY * pairs:
            if close.any():
                squares[close] = _differences(columns, 1, np.argwhere(close))[close]
            return np.triu(squares, 1)
    return _differences(columns, *tiles_of(heads))


def _differences(columns: Array, size: int, tiles: NDArray[np.int64]) -> Array:
    """The same pair by pair, of the heads that the tiles hold."""
    pieces, heads, length = columns.shape
    found, unused = np.zeros((2, heads, heads))
    width, defined = np.full(pieces, length), np.ones((pieces, heads), dtype=bool)
    nothing = np.empty((pieces, heads))
    pair_kernel("squares")(
        columns, columns, nothing, width, defined, tiles, size, 1.0, math.inf, found, unused
    )
    return found
