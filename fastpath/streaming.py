"""The oracle's sink shares from queries and keys, without ever storing a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpath._masks import Ranges, choose_masks
from fastpath._streaming_kernel import CHANNELS, KEYS, LOOK_AGAIN, streaming_kernel
from oracle._checks import as_array, check_mask, reject_type
from oracle._query_key_checks import check_head_norm, check_query_key, check_score_options, reject_scores
from oracle._results import KeyRange

__all__ = ["sink_share_from_query_key"]

Array = NDArray[Any]

_CHUNK_BYTES = 8 << 20  # of queries and keys laid out for the kernel at one time
_SMALLEST_WEIGHT = 1e-25  # float32 drops weights below 1e-38: a total above this has lost nothing
_LARGEST_SCORE = {"float32": 1e37, "float64": 1e306}  # short of overflow, whatever the order of the sum


def sink_share_from_query_key(
    query: Any,
    key: Any,
    norm: Any,
    sink_mask: Any,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    visible: Any = None,
) -> Array:
    """Twin of `oracle.sink_share_from_query_key`, in time that grows with T² and memory that grows with T.

    float32, float16 and bfloat16 are computed in float32, anything else in float64; longdouble has no
    compiled form: InputTypeError. Keys outside a range (causal, window, KeyRange, masks that are ranges) cost
    nothing. On one machine the result is the same bits for any number of threads.
    """
    for argument, value in (("query", query), ("key", key)):
        if as_array(argument, value).dtype.itemsize > 8:
            reject_type(
                argument,
                expected="float64 or narrower, the widths that are compiled",
                found=f"{as_array(argument, value).dtype}",
                todo="Use the oracle for longdouble, or round to float64.",
            )
    queries, keys = check_query_key(query, key)
    scale, window, softcap = check_score_options(scale, window, softcap, queries.shape[-1])
    (*batch, n_heads, n_queries, _), (n_key_heads, n_keys) = queries.shape, keys.shape[-3:-1]
    shape = (*batch, n_heads, n_queries, n_keys)
    start, stop = _placed(n_queries, n_keys, causal, window)
    seen = np.ones((1, n_keys), bool)
    masks = choose_masks(np.zeros(n_keys, bool), visible, shape)
    if isinstance(masks, Ranges):
        start, stop = np.maximum(start, masks.start), np.minimum(stop, masks.stop)
        sight: Any = KeyRange(np.minimum(start, stop), stop)
    else:  # a mask over keys alone comes stretched over the queries
        seen = masks.visible[..., :1, :] if masks.visible.strides[-2] == 0 else masks.visible
        reach = np.arange(n_keys)
        sight = masks.visible & (start[:, None] <= reach) & (reach < stop[:, None])
    norms = (
        np.ones((1, n_keys)) if norm is None else _scaled(check_head_norm(norm, shape, n_key_heads, sight))
    )
    sinks = np.atleast_2d(check_mask("sink_mask", sink_mask, shape))
    out = np.empty(shape[:-1])
    group = n_heads // n_key_heads
    narrow = all(array.dtype.kind not in "iub" and array.dtype.itemsize <= 4 for array in (queries, keys))
    dtype = np.dtype(np.float32 if narrow else np.float64)
    per_key_head = (group * n_queries + n_keys) * queries.shape[-1] * dtype.itemsize
    step = max(1, _CHUNK_BYTES // max(per_key_head, 1))
    for place in np.ndindex(*batch):
        for first in range(0, n_key_heads, step):
            mine, theirs = slice(first, first + step), slice(first * group, (first + step) * group)
            _fill(
                out[place][theirs],
                dtype,
                queries[place][theirs],
                keys[place][mine],
                scale,
                (start, stop, not isinstance(masks, Ranges), _part(seen, len(batch), place, theirs)),
                _part(norms[..., None, :], len(batch), place, theirs),
                _part(sinks, len(batch), place, theirs),
                softcap or 0.0,
            )
    return out


def _fill(
    out: Array,
    dtype: np.dtype[Any],
    query: Array,
    key: Array,
    scale: float,
    sight: tuple[Any, ...],
    norm: Array,
    sinks: Array,
    softcap: float,
) -> None:
    """Shares of some heads, (head, query), into `out`; in float64 where float32 would not hold them."""
    width, n_keys = query.shape[-1], key.shape[-2]
    channels, tiles = -(-width // CHANNELS) * CHANNELS, -(-n_keys // KEYS)
    scaled = np.zeros((*query.shape[:-1], channels), dtype)
    scaled[..., :width] = query
    turned = np.zeros((key.shape[0], tiles, channels, KEYS), dtype)
    for tile in range(tiles):
        part = key[:, tile * KEYS : (tile + 1) * KEYS].swapaxes(-1, -2)
        turned[:, tile, :width, : part.shape[-1]] = part
    largest = _largest(scaled) * _largest(turned) * width * max(scale, 1.0)
    if not largest < _LARGEST_SCORE[dtype.name]:
        if dtype != np.float64:
            return _fill(out, np.dtype(np.float64), query, key, scale, sight, norm, sinks, softcap)
        _refuse_overflow(scaled[..., :width], key, scale)
    with np.errstate(all="ignore"):  # which only NumPy's scalars heed, with the JIT off
        scaled *= dtype.type(scale)
        weights = []
        for part in (sinks, ~sinks):
            weights.append(
                np.zeros((*np.broadcast_shapes(sinks.shape, norm.shape)[:-1], tiles * KEYS), dtype)
            )
            np.copyto(weights[-1][..., :n_keys], norm, where=part, casting="same_kind")
        floor = _SMALLEST_WEIGHT if dtype == np.float32 else 0.0
        streaming_kernel(dtype)(scaled, turned, *sight, *weights, softcap, floor, out)
    if dtype == np.float32 and (again := out == LOOK_AGAIN).any():
        wide = np.empty_like(out)
        _fill(wide, np.dtype(np.float64), query, key, scale, sight, norm, sinks, softcap)
        out[again] = wide[again]


def _placed(n_queries: int, n_keys: int, causal: bool, window: int | None) -> tuple[Array, Array]:
    """What position alone lets a query see: start, stop (query,); the last query stands at the last key."""
    after = np.arange(n_queries, dtype=np.int64) + (n_keys - n_queries + 1)
    stop = np.clip(after, 0, n_keys) if causal else np.full(n_queries, n_keys, np.int64)
    start = np.zeros(n_queries, np.int64) if window is None else np.clip(after - window, 0, n_keys)
    return start, stop


def _scaled(norm: Array) -> Array:
    """Norms over their largest, which changes no share and lets any of them fit float32."""
    largest = norm.max(axis=-1, keepdims=True, initial=0)
    return np.atleast_2d(np.divide(norm, largest, where=largest > 0, out=np.zeros(norm.shape)))


def _part(array: Array, n_batch: int, place: tuple[int, ...], heads: slice) -> Array:
    """The part of (..., head, query, key) that is of some heads, as three axes; the first may be missing."""
    array = array.reshape((1,) * (n_batch + 3 - array.ndim) + array.shape)
    array = array[tuple(i if size > 1 else 0 for i, size in zip(place, array.shape, strict=False))]
    part = np.ascontiguousarray(array[heads] if array.shape[0] > 1 else array).view()
    part.flags.writeable = False  # as a user's mask may be; Numba compiles anew for the difference
    return part


def _largest(array: Array) -> float:
    return float(max(array.max(initial=0), -array.min(initial=0)))


def _refuse_overflow(query: Array, key: Array, scale: float) -> None:
    """Look at scores that may overflow, some queries at a time; raises InputError as the oracle does."""
    group = query.shape[0] // max(key.shape[0], 1)
    step = max(1, _CHUNK_BYTES // (8 * max(key.shape[-2], 1)))
    with np.errstate(over="ignore", invalid="ignore"):
        for head in range(query.shape[0]):
            for first in range(0, query.shape[1], step):
                scores = query[head, first : first + step] @ key[head // group].T.astype(np.float64) * scale
                if not math.isfinite(np.abs(scores).max(initial=0)):
                    reject_scores()
