"""Visibility and sinks as a kernel takes them: ranges and positions where that is enough, else masks.

Nothing is stretched over axes that it does not have: a mask over keys stays one for all queries, a mask of
each text one for all its heads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import check_key_range, check_mask
from oracle._results import KeyRange

__all__ = ["Sight", "frozen", "in_a_row", "part_of_each", "read_sight", "read_sinks", "seen_by_any"]

Array = NDArray[Any]

_AT_ONCE = 1 << 22  # elements of a mask that are looked at together


class Sight(NamedTuple):
    """A query sees start <= key < stop, if `mask` does not hide it; leading axes broadcast as the rows'."""

    start: NDArray[np.int64]  # (..., query)
    stop: NDArray[np.int64]  # (..., query)
    mask: NDArray[np.bool_] | None  # (..., query or 1, key); None where ranges say it all

    def within(self, start: Array, stop: Array) -> Sight:
        """What is also in the ranges start <= key < stop, (query,)."""
        return Sight(np.maximum(self.start, start), np.minimum(self.stop, stop), self.mask)


def read_sight(visible: Any, shape: tuple[int, ...]) -> Sight:
    """Check `visible` against rows of `shape` (..., query, key); raises the oracle's errors."""
    n_queries, n_keys = shape[-2:]
    if visible is None:
        return Sight(np.zeros(n_queries, np.int64), np.full(n_queries, n_keys, np.int64), None)
    if isinstance(visible, KeyRange):
        return Sight(*check_key_range(visible, shape), None)
    mask = _own(check_mask("visible", visible, shape))
    start, stop, whole = _bounds(mask)
    wide = (*mask.shape[:-2], n_queries)
    return Sight(np.broadcast_to(start, wide), np.broadcast_to(stop, wide), None if whole else mask)


def read_sinks(sink_mask: Any, shape: tuple[int, ...]) -> tuple[NDArray[np.bool_], NDArray[np.int64] | None]:
    """The sinks of rows `shape` as a mask (..., query or 1, key) and, one set for all queries, as positions.

    Positions are (..., sink), filled up with -1; None where the queries of a matrix differ.
    """
    mask = _own(check_mask("sink_mask", sink_mask, shape))
    if mask.shape[-2] != 1:
        return mask, None
    count = mask[..., 0, :].sum(axis=-1)
    most = int(count.max(initial=0))
    places = np.argsort(~mask[..., 0, :], axis=-1, kind="stable")[..., :most]
    return mask, np.where(np.arange(most) < count[..., None], places, -1)


def seen_by_any(sight: Sight, n_keys: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Queries that see a key (..., query), and keys that a query sees (..., key)."""
    lead = np.broadcast_shapes(sight.start.shape[:-1], () if sight.mask is None else sight.mask.shape[:-2])
    n_queries, reach = sight.start.shape[-1], np.arange(n_keys)
    queries, keys = np.zeros((*lead, n_queries), bool), np.zeros((*lead, n_keys), bool)
    start, stop = (np.broadcast_to(bound, queries.shape) for bound in (sight.start, sight.stop))
    mask = None if sight.mask is None else np.broadcast_to(sight.mask, (*lead, n_queries, n_keys))
    step = max(1, _AT_ONCE // max(n_keys, 1))
    for place in np.ndindex(lead):
        if mask is None:
            some = start[place] < stop[place]
            queries[place] = some
            edges = np.zeros(n_keys + 1, np.int64)  # where ranges begin, less where they end
            np.add.at(edges, start[place][some], 1)
            np.subtract.at(edges, stop[place][some], 1)
            keys[place] = np.cumsum(edges[:-1]) > 0
            continue
        for first in range(0, n_queries, step):
            part = (*place, slice(first, first + step))
            seen = mask[part] & (start[part][:, None] <= reach) & (reach < stop[part][:, None])
            queries[part] = seen.any(axis=-1)
            keys[place] |= seen.any(axis=0)
    return queries, keys


def frozen(array: Array) -> Array:
    """A contiguous view that cannot be written to: Numba compiles anew for any other kind of array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def in_a_row(array: Array, trailing: int = 1) -> Array:
    """The parts of (..., trailing axes) one after the other: (part, trailing axes)."""
    own, tail = array.shape[: array.ndim - trailing], array.shape[array.ndim - trailing :]
    return frozen(array.reshape(math.prod(own), *tail))


def part_of_each(array: Array, lead: tuple[int, ...], trailing: int = 1) -> NDArray[np.int64]:
    """Which part of (..., trailing axes), in their row, goes with each place of `lead`: (*lead,)."""
    own = array.shape[: array.ndim - trailing]
    if math.prod(own) == 1:
        return np.zeros(lead, np.int64)
    return np.broadcast_to(np.arange(math.prod(own)).reshape(own), lead)


def _own(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask (..., query or 1, key) without what `np.broadcast_to` had made of it."""
    mask = mask if mask.ndim > 1 else mask[None]
    axes = zip(mask.shape[:-1], mask.strides[:-1], strict=True)
    return mask[tuple(slice(0, 1 if size > 1 and not stride else None) for size, stride in axes)]


def _bounds(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """First visible key and the one after the last, each (..., query or 1), and whether no row has a hole."""
    n_keys = mask.shape[-1]
    start, stop = (np.zeros(mask.shape[:-1], np.int64) for _ in range(2))
    whole = True
    for place in np.ndindex(mask.shape[:-2] if n_keys else (0,)):
        part = mask[place]
        count = np.count_nonzero(part, axis=-1)
        start[place] = part.argmax(axis=-1)
        stop[place] = np.where(count, n_keys - part[:, ::-1].argmax(axis=-1), 0)
        whole = whole and bool((stop[place] - start[place] == count).all())
    return start, stop, whole
