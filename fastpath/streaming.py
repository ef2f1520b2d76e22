"""The oracle's sink shares from queries and keys, without ever storing a row."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpath._masks import frozen, read_sight, read_sinks, seen_by_any
from fastpath._norms import lifted
from fastpath._streaming_kernel import CHANNELS, KEYS, LOOK_AGAIN, streaming_kernel
from oracle._checks import InputError, InputTypeError, as_array, reject_type
from oracle._query_key_checks import (
    check_finite,
    check_head_norm,
    check_query_key,
    check_score_options,
    of_key_heads,
    reject_scores,
)

__all__ = ["sink_share_from_query_key"]

Array = NDArray[Any]

_CHUNK_BYTES = 8 << 20  # of queries and keys laid out for the kernel at one time
# The exponentials drop what is below 1e-38 and 1e-308: a total above these has lost nothing.
_SMALLEST_TOTAL = {"float32": 1e-25, "float64": 1e-290}
_LARGEST_SCORE = {"float32": 1e37, "float64": 1e306}  # short of overflow, whatever the order of the sum
_LARGEST_FACTOR = 1e30  # in float32: what underflows in the other factor, below 1e-45, then does not matter
_SMALLEST_CAP = {"float32": 1e-30, "float64": 1e-300}  # a lower cap makes all scores zero just so


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
    nothing. On one machine the result is the same bits for any number of threads. Scores that are finite only
    because terms beyond 1e308 cancel raise InputError too.
    """
    for argument, value in (("query", query), ("key", key)):
        if as_array(argument, value).dtype.itemsize > 8:
            reject_type(
                argument,
                expected="float64 or narrower, the widths that are compiled",
                found=f"{as_array(argument, value).dtype}",
                todo="Round it to float64, or use the oracle (--engine oracle).",
            )
    queries, keys = check_query_key(query, key)
    scale, causal, window, softcap = check_score_options(scale, causal, window, softcap, queries.shape[-1])
    (*batch, n_heads, n_queries, _), (n_key_heads, n_keys) = queries.shape, keys.shape[-3:-1]
    shape = (*batch, n_heads, n_queries, n_keys)
    sight = read_sight(visible, shape).within(*_placed(n_queries, n_keys, causal, window))
    query_seen, key_seen = (np.atleast_2d(seen) for seen in seen_by_any(sight, n_keys))
    check_finite("query", queries, query_seen)
    check_finite("key", keys, key_seen)
    norms = np.ones((1, n_keys))
    try:
        if norm is not None:
            norms = np.atleast_2d(check_head_norm(norm, shape, n_key_heads, key_seen[..., None, :]))
        sinks, _ = read_sinks(sink_mask, shape)
    except (InputError, InputTypeError):  # scores are read before norms and sinks, and blamed first
        no_sink = np.zeros(n_keys, bool)
        sink_share_from_query_key(queries, keys, None, no_sink, scale, causal, window, softcap, visible)
        raise
    norms = lifted(norms)
    mask = np.ones((1, 1), bool) if sight.mask is None else sight.mask
    out = np.empty(shape[:-1])
    group = n_heads // n_key_heads
    narrow = all(array.dtype.kind not in "iub" and array.dtype.itemsize <= 4 for array in (queries, keys))
    dtype = np.dtype(np.float32 if narrow else np.float64)
    per_key_head = (group * n_queries + n_keys) * queries.shape[-1] * dtype.itemsize
    step = max(1, _CHUNK_BYTES // max(per_key_head, 1))
    for place in np.ndindex(*batch):
        for first in range(0, n_key_heads, step):
            mine, theirs = slice(first, first + step), slice(first * group, (first + step) * group)
            of_heads = partial(_part, place=place, heads=theirs)
            _fill(
                out[place][theirs],
                dtype,
                _seen_only(queries[place][theirs], of_heads(query_seen)),
                _seen_only(keys[place][mine], _part(of_key_heads(key_seen, n_key_heads), place, mine)),
                scale,
                (
                    of_heads(sight.start),
                    of_heads(sight.stop),
                    sight.mask is not None,
                    of_heads(mask, trailing=2),
                ),
                of_heads(norms[..., None, :], trailing=2),
                of_heads(sinks, trailing=2),
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
    mine = np.zeros((*query.shape[:-1], channels), dtype)
    mine[..., :width] = query
    turned = np.zeros((key.shape[0], tiles, channels, KEYS), dtype)
    for tile in range(tiles):
        part = key[:, tile * KEYS : (tile + 1) * KEYS].swapaxes(-1, -2)
        turned[:, tile, :width, : part.shape[-1]] = part
    sizes = _largest(mine), _largest(turned)
    worst = sizes[0] * sizes[1] * width * max(scale, 1.0)
    again = (np.dtype(np.float64), query, key, scale, sight, norm, sinks, softcap)
    if dtype != np.float64:
        factor = max(scale, 1 / scale, softcap, sizes[0] * scale, sizes[1])
        if factor > _LARGEST_FACTOR or worst > _LARGEST_SCORE["float32"]:
            return _fill(out, *again)
    on_query = dtype != np.float64 or sizes[0] <= sizes[1]
    if worst > _LARGEST_SCORE[dtype.name]:
        _refuse_overflow(query, key, scale, on_query, sight)
    with np.errstate(all="ignore"):  # which only NumPy's scalars heed, with the JIT off
        smaller = mine if on_query else turned
        smaller *= dtype.type(scale)
        weights, below_one = [], np.ldexp(norm, np.finfo(norm.dtype).minexp)
        for part in (sinks, ~sinks):
            weights.append(
                np.zeros((*np.broadcast_shapes(sinks.shape, norm.shape)[:-1], tiles * KEYS), dtype)
            )
            np.copyto(weights[-1][..., :n_keys], below_one, where=part, casting="same_kind")
        cap = max(softcap, _SMALLEST_CAP[dtype.name]) if softcap else 0.0
        given = (frozen(mine), frozen(turned), *sight, *(frozen(weight) for weight in weights))
        streaming_kernel(dtype)(*given, cap, _SMALLEST_TOTAL[dtype.name], out)
    weak = out == LOOK_AGAIN
    if weak.any() and dtype == np.float32:
        wide = np.empty_like(out)
        _fill(wide, *again)
        out[weak] = wide[weak]
    elif weak.any():
        _share_rows(out, weak, *again[1:])


def _share_rows(
    out: Array,
    weak: NDArray[np.bool_],
    query: Array,
    key: Array,
    scale: float,
    sight: tuple[Any, ...],
    norm: Array,
    sinks: Array,
    softcap: float,
) -> None:
    """The shares of weak rows (head, query) as the oracle has them, whose weights may be below 1e-308."""
    n_heads, n_keys = len(out), key.shape[-2]
    start, stop, masked, mask = sight
    norm, sinks = (
        np.broadcast_to(norm, (n_heads, 1, n_keys)),
        np.broadcast_to(sinks, (n_heads, *sinks.shape[1:])),
    )
    start, stop = (np.broadcast_to(bound, out.shape) for bound in (start, stop))
    out[weak & ~(norm > 0).any(axis=-1)] = np.nan
    step, reach = max(1, _CHUNK_BYTES // (8 * max(n_keys, 1))), np.arange(n_keys)
    for head in np.flatnonzero((weak & (out == LOOK_AGAIN)).any(axis=-1)):
        theirs = key[head // (n_heads // len(key))].T.astype(np.float64)
        rows = np.flatnonzero(weak[head])
        for some in (rows[first : first + step] for first in range(0, len(rows), step)):
            with np.errstate(all="ignore"):
                scores = query[head, some].astype(np.float64) @ theirs * scale  # (row, key)
                if softcap:
                    scores = softcap * np.tanh(scores / softcap)
                seen = (start[head, some, None] <= reach) & (reach < stop[head, some, None])
                if masked:
                    seen &= mask[min(head, len(mask) - 1), some if mask.shape[1] > 1 else slice(None)]
                scores = np.where(seen, scores, -np.inf)
                weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
                weights = weights / weights.sum(axis=-1, keepdims=True) * norm[head]
                on_sink = np.where(sinks[head, some if sinks.shape[1] > 1 else slice(None)], weights, 0)
                out[head, some] = on_sink.sum(axis=-1) / weights.sum(axis=-1)


def _placed(n_queries: int, n_keys: int, causal: bool, window: int | None) -> tuple[Array, Array]:
    """What position alone lets a query see: start, stop (query,); the last query stands at the last key."""
    after = np.arange(n_queries, dtype=np.int64) + (n_keys - n_queries + 1)
    stop = np.clip(after, 0, n_keys) if causal else np.full(n_queries, n_keys, np.int64)
    start = np.zeros(n_queries, np.int64) if window is None else np.clip(after - window, 0, n_keys)
    return start, stop


def _part(array: Array, place: tuple[int, ...], heads: slice, trailing: int = 1) -> Array:
    """The part of (..., head, trailing axes) that is of some heads; the first axes may be missing, or one."""
    array = array.reshape((1,) * (len(place) + 1 + trailing - array.ndim) + array.shape)
    array = array[tuple(i if size > 1 else 0 for i, size in zip(place, array.shape, strict=False))]
    return frozen(array[heads] if array.shape[0] > 1 else array)


def _seen_only(vectors: Array, seen: NDArray[np.bool_]) -> Array:
    """Vectors (head, token, d_head) with zero for what is not `seen` (head or 1, token), whatever it was."""
    return vectors if seen.all() else np.where(seen[..., None], vectors, vectors.dtype.type(0))


def _largest(array: Array) -> float:
    return float(max(array.max(initial=0), -array.min(initial=0)))


def _refuse_overflow(query: Array, key: Array, scale: float, on_query: bool, sight: tuple[Any, ...]) -> None:
    """Look at scores that may overflow, some queries at a time; raises InputError as the oracle does.

    The kernel puts the scale on one factor and adds in an order of its own: no sum of sizes may overflow.
    """
    start, stop, masked, mask = sight
    group = query.shape[0] // max(key.shape[0], 1)
    step, reach = max(1, _CHUNK_BYTES // (8 * max(key.shape[-2], 1))), np.arange(key.shape[-2])
    with np.errstate(over="ignore", invalid="ignore"):
        for head in range(query.shape[0]):
            theirs = key[head // group].T.astype(np.float64)
            first_of = [head if array.shape[0] > 1 else 0 for array in (start, mask)]
            for first in range(0, query.shape[1], step):
                some = slice(first, first + step)
                mine = query[head, some].astype(np.float64)
                factors = (mine * scale, theirs) if on_query else (mine, theirs * scale)
                fine = np.isfinite(np.abs(factors[0]) @ np.abs(factors[1]))
                fine &= np.isfinite(mine @ theirs * scale)
                begin, end = (array[first_of[0], some, None] for array in (start, stop))
                seen = (begin <= reach) & (reach < end)
                if masked:
                    seen &= mask[first_of[1], some if mask.shape[1] > 1 else slice(None)]
                if not (fine | ~seen).all():
                    reject_scores()
