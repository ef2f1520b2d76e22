"""Visibility and sinks as a kernel takes them: ranges and positions where that is enough, else masks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import check_key_range, check_mask
from oracle._results import KeyRange

__all__ = ["Masks", "Ranges", "choose_masks"]

Array = NDArray[Any]


class Ranges(NamedTuple):
    """Visible keys start <= key < stop of each query; sinks by position."""

    start: NDArray[np.int64]  # (query,)
    stop: NDArray[np.int64]  # (query,)
    sinks: NDArray[np.int64]  # (sink,)


class Masks(NamedTuple):
    """Any visibility and any sinks, each broadcasting to (..., query, key)."""

    visible: NDArray[np.bool_]
    sinks: NDArray[np.bool_]


def choose_masks(sink_mask: Any, visible: Any, shape: tuple[int, ...]) -> Ranges | Masks:
    """Check both against rows of `shape` (..., query, key); raises the oracle's errors."""
    n_queries, n_keys = shape[-2:]
    if visible is None:
        seen: Any = KeyRange(np.zeros(n_queries, np.int64), np.full(n_queries, n_keys, np.int64))
    elif isinstance(visible, KeyRange):
        seen = check_key_range(visible, shape)
    else:
        seen = check_mask("visible", visible, shape)
    sinks = check_mask("sink_mask", sink_mask, shape)
    ranges = seen if isinstance(seen, KeyRange) else _as_range(seen, n_queries, n_keys)
    if ranges is not None and sinks.size == n_keys:
        return Ranges(*ranges, np.flatnonzero(sinks))
    if isinstance(seen, KeyRange):
        keys = np.arange(n_keys)
        seen = (seen.start[:, None] <= keys) & (keys < seen.stop[:, None])
    return Masks(*(np.broadcast_to(mask, (*mask.shape[:-2], n_queries, n_keys)) for mask in (seen, sinks)))


def _as_range(mask: NDArray[np.bool_], n_queries: int, n_keys: int) -> KeyRange | None:
    """The mask as ranges, if it is one for all leading axes and no query's keys have a hole."""
    if any(size != 1 for size in mask.shape[:-2]):
        return None
    flat = np.broadcast_to(mask.reshape(mask.shape[-2:]), (n_queries, n_keys)) if mask.ndim > 1 else None
    if flat is None:
        flat = np.broadcast_to(mask, (n_queries, n_keys))
    count = flat.sum(axis=1)
    start = flat.argmax(axis=1) if n_keys else count
    stop = n_keys - flat[:, ::-1].argmax(axis=1) if n_keys else count
    whole = (count == 0) | (stop - start == count)
    return KeyRange(np.where(count, start, 0), np.where(count, stop, 0)) if whole.all() else None
