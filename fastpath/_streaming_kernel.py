"""Sink shares of one block of queries after the other, key tile by key tile; no row is ever whole.

The product is written out here. A BLAS call inside a parallel region can hang, and between parallel regions
the two pools of threads take turns at waiting for each other, which costs more than the work itself. Eight
channels of two queries at once keep the machine as busy as BLAS does, and no bit depends on the threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from fastpath._jit import compiled_parallel
from fastpath._math import exp32, exp64, tanh32

__all__ = ["CHANNELS", "KEYS", "LANES", "LOOK_AGAIN", "QUERIES", "streaming_kernel"]

QUERIES = 16  # a block; even
KEYS = 512  # a tile: its scores stay in the first-level cache, and a float32 lane adds few terms
LANES = 64  # divides KEYS
CHANNELS = 8  # d_head is padded with zeros to a multiple of it
LOOK_AGAIN = -1.0  # instead of a share: the weights are too small for this width


def _make(real: Any) -> Callable[..., None]:
    narrow = real is np.float32  # a constant to Numba, which leaves the other branch out
    nothing: Any = real(-np.inf)

    @compiled_parallel
    def kernel(
        query: Any,
        key: Any,
        start: Any,
        stop: Any,
        masked: bool,
        seen: Any,
        on_sink: Any,
        on_rest: Any,
        softcap: float,
        floor: float,
        out: Any,
    ) -> None:
        """Take query (head, query, d_head), scaled; key (kv_head, tile, d_head, KEYS); start, stop (head or
        1, query).

        seen, on_sink, on_rest (head or 1, query or 1, key): what else is visible, if masked, and the weights
        of the sinks and of all other keys. softcap 0 is none. Fills out (head, query); a weight below floor
        gives LOOK_AGAIN.

        A tile's sums run in the dtype of the queries, across tiles in float64, relative to the largest score
        so far. Indices are unsigned and nothing is sliced, as in the kernels for rows.
        """
        n_heads, n_queries, n_channels = query.shape
        group = n_heads // key.shape[0]
        blocks = (n_queries + QUERIES - 1) // QUERIES
        for task in numba.prange(n_heads * blocks):
            head = task // blocks
            place = task - head * blocks
            # From both ends in turn, so that causal rows, long at one end only, are shared out evenly.
            block = place // 2 if place % 2 == 0 else blocks - 1 - place // 2
            first = np.int64(block * QUERIES)
            last = min(first + QUERIES, n_queries)
            h, g = np.uintp(head), np.uintp(head // group)
            h_seen = h if seen.shape[0] > 1 else np.uintp(0)
            h_range = h if start.shape[0] > 1 else np.uintp(0)
            h_weight = h if on_sink.shape[0] > 1 else np.uintp(0)
            scores = np.empty((QUERIES, KEYS), real)
            lanes = np.empty(LANES, real)
            peaks = np.full(QUERIES, nothing, real)
            sinks, rests = np.zeros(QUERIES), np.zeros(QUERIES)
            low, high = np.int64(key.shape[1] * KEYS), np.int64(0)
            for row in range(first, last):
                if start[h_range, row] < stop[h_range, row]:
                    low, high = min(low, start[h_range, row]), max(high, stop[h_range, row])
            for tile in range(low // KEYS, (high + KEYS - 1) // KEYS):
                t, begin = np.uintp(tile), np.int64(tile * KEYS)
                b = np.uintp(begin)
                width = min(np.int64(KEYS), high - begin)
                whole = np.uintp((width + LANES - 1) // LANES * LANES)
                for pair in range(0, last - first, 2):
                    i, j = np.uintp(pair), np.uintp(pair + 1)
                    q, p = np.uintp(first + pair), np.uintp(min(first + pair + 1, last - 1))
                    for k in range(whole):
                        scores[i, k] = real(0)
                        scores[j, k] = real(0)
                    for channel in range(0, n_channels, CHANNELS):
                        c = np.uintp(channel)
                        c1, c2, c3 = c + np.uintp(1), c + np.uintp(2), c + np.uintp(3)
                        c4, c5, c6, c7 = c + np.uintp(4), c + np.uintp(5), c + np.uintp(6), c + np.uintp(7)
                        x0, x1, x2, x3 = query[h, q, c], query[h, q, c1], query[h, q, c2], query[h, q, c3]
                        x4, x5, x6, x7 = query[h, q, c4], query[h, q, c5], query[h, q, c6], query[h, q, c7]
                        y0, y1, y2, y3 = query[h, p, c], query[h, p, c1], query[h, p, c2], query[h, p, c3]
                        y4, y5, y6, y7 = query[h, p, c4], query[h, p, c5], query[h, p, c6], query[h, p, c7]
                        for k in range(whole):
                            k0, k1 = key[g, t, c, k], key[g, t, c1, k]
                            k2, k3 = key[g, t, c2, k], key[g, t, c3, k]
                            k4, k5 = key[g, t, c4, k], key[g, t, c5, k]
                            k6, k7 = key[g, t, c6, k], key[g, t, c7, k]
                            scores[i, k] += (x0 * k0 + x1 * k1 + x2 * k2 + x3 * k3) + (
                                x4 * k4 + x5 * k5 + x6 * k6 + x7 * k7
                            )
                            scores[j, k] += (y0 * k0 + y1 * k1 + y2 * k2 + y3 * k3) + (
                                y4 * k4 + y5 * k5 + y6 * k6 + y7 * k7
                            )
                for row in range(last - first):
                    i, q = np.uintp(row), np.uintp(first + row)
                    if softcap > 0.0:
                        cap = real(softcap)
                        for k in range(whole):
                            ratio = scores[i, k] / cap
                            scores[i, k] = cap * (tanh32(ratio) if narrow else math.tanh(ratio))
                    for k in range(np.uintp(max(0, min(start[h_range, q] - begin, width)))):
                        scores[i, k] = nothing
                    for k in range(np.uintp(max(0, min(stop[h_range, q] - begin, width))), whole):
                        scores[i, k] = nothing
                    if masked:
                        q_seen = q if seen.shape[1] > 1 else np.uintp(0)
                        for k in range(np.uintp(width)):
                            scores[i, k] = scores[i, k] if seen[h_seen, q_seen, b + k] else nothing
                    # Lane by lane, because a maximum over a row does not vectorise while NaN has a meaning.
                    for lane in range(np.uintp(LANES)):
                        lanes[lane] = scores[i, lane]
                    for lane_begin in range(np.uintp(LANES), whole, np.uintp(LANES)):
                        for lane in range(np.uintp(LANES)):
                            score = scores[i, lane_begin + lane]
                            lanes[lane] = score if score > lanes[lane] else lanes[lane]
                    peak: Any = peaks[i]
                    for lane in range(np.uintp(LANES)):
                        peak = lanes[lane] if lanes[lane] > peak else peak
                    if peak == nothing:
                        continue
                    if peak > peaks[i]:
                        shrink = math.exp(np.float64(peaks[i]) - np.float64(peak))
                        sinks[i] *= shrink
                        rests[i] *= shrink
                        peaks[i] = peak
                    q_weight = q if on_sink.shape[1] > 1 else np.uintp(0)
                    sink, rest = real(0), real(0)
                    for k in range(whole):
                        if narrow:
                            weight: Any = exp32(scores[i, k] - peak)
                        else:
                            weight = exp64(scores[i, k] - peak)
                        sink += weight * on_sink[h_weight, q_weight, b + k]
                        rest += weight * on_rest[h_weight, q_weight, b + k]
                    sinks[i] += sink
                    rests[i] += rest
            for row in range(last - first):
                total = sinks[row] + rests[row]
                if peaks[row] == nothing:
                    out[head, first + row] = np.nan
                elif total < floor:
                    out[head, first + row] = LOOK_AGAIN
                else:
                    out[head, first + row] = sinks[row] / total

    return kernel


_KERNELS = {"float32": _make(np.float32), "float64": _make(np.float64)}


def streaming_kernel(dtype: np.dtype[Any]) -> Callable[..., None]:
    """The kernel for float32 or float64."""
    return _KERNELS[dtype.name]
