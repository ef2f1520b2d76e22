"""One pass over attention rows: loops over plain arrays that trust their caller.

The ranged kernel walks a row in blocks of _BLOCK keys. Within a block the sums run in the dtype of the rows,
in as many lanes as the machine has; across blocks they are float64. So a float32 sum meets a bounded number
of roundings, whatever the length. Content is picked by columns that are zero at the sinks, so that no row
is cut at odd places; the sinks are summed apart, key by key in float64: neither part is ever the difference
of two larger numbers. Each block asks for the block of a later row, which is what keeps the memory busy: a
loop that does more than read would wait for it otherwise.

Logarithms are taken of weights over a power of two near the mean weight of their block, in a second look at
the block while it is in the cache. So they are small where the weights are many or alike, and so are their
roundings, however thin the content is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from fastpath._jit import compiled_parallel, inlined, prefetch
from fastpath._math import xlogx32

__all__ = ["COLUMNS", "LARGEST", "masked_kernel", "ranged_kernel"]

_BLOCK = 128
_AHEAD = np.uintp(4)  # rows
_ONE, _ZERO = np.float64(1.0), np.float64(0.0)  # without the JIT a bare 0.0 would divide as Python does
LARGEST = float(np.finfo(np.float64).max)
_ROWS_AT_ONCE = 64
_LINE = 64  # bytes that the memory hands over at once

# What a kernel writes for each row, float64: three sink shares (of a, of a n, of a f), two r (of n, of f)
# and, where they were asked for, three entropies in nats.
COLUMNS = ("share", "share_n", "share_f", "ratio_n", "ratio_f", "total", "binary", "content")


@inlined
def _entropies(content: float, sink: float, scale: float, information: float) -> tuple[float, float, float]:
    """Total, binary and content entropy of one row; information: sum x ln x over its content, x = scale a."""
    mass = content + sink
    inside, outside = sink / mass, content / mass
    binary = 0.0
    if 0.0 < outside < 0.5:
        binary = -outside * np.log(outside) - inside * np.log1p(-outside)
    elif inside > 0.0:
        binary = -inside * np.log(inside) - (outside * np.log1p(-inside) if outside > 0.0 else 0.0)
    within = np.log(content * scale) - information / (content * scale)
    within = 0.0 if within < 0.0 else within
    if not mass > 0.0:
        return np.nan, np.nan, np.nan
    if not outside > 0.0:
        return binary, binary, np.nan
    return binary + outside * within, binary, within


@inlined
def _is_odd(mass: float, slack: float, sign: Any) -> bool:
    """Whether a row has to be looked at again: a sign bit, a sum off one by more than slack or not finite."""
    # not mass - mass != 0: sums that may be regrouped cancel to zero before infinity is seen
    return sign < 0 or not (abs(mass - 1.0) <= slack or mass == 0.0) or not mass <= LARGEST


def _make_ranged(real: Any, bits: Any, entropies: bool) -> Callable[..., None]:
    narrow = real is np.float32  # a constant to Numba, which leaves the other branch out
    fraction, bias = int(np.finfo(real).nmant), int(np.finfo(real).maxexp) - 1
    exponent, twice_bias = bits((2 * bias + 1) << fraction), bits(2 * bias << fraction)

    @compiled_parallel
    def kernel(
        rows: Any,
        columns: Any,
        n: Any,
        f: Any,
        n_sink: Any,
        f_sink: Any,
        start: Any,
        stop: Any,
        sinks: Any,
        which: Any,
        slack: float,
        out: Any,
        odd: Any,
    ) -> None:
        """Take rows (batch, query, key) whose visible keys are start <= key < stop, (part, query).

        columns (part, key) is one at content and zero at the sinks, n and f (part, key) the norms times it;
        sinks (part, sink) are positions, or -1, n_sink and f_sink (part, sink) the norms there. which
        (batch, 4) says which part of the ranges, the sinks, n and f goes with a matrix. Fills odd (batch,
        query) and out (column, batch, query), in the order of COLUMNS.

        Indices are unsigned, which Numba need not test for counting from the end (that would stop
        vectorising), and no array is sliced, which would count references between threads.
        """
        n_queries = rows.shape[1]
        per_matrix = (n_queries + _ROWS_AT_ONCE - 1) // _ROWS_AT_ONCE
        line = np.uintp(_LINE // rows.itemsize)
        for task in numba.prange(rows.shape[0] * per_matrix):
            b = task // per_matrix
            first = (task - b * per_matrix) * _ROWS_AT_ONCE
            b = np.uintp(b)
            bv, bs = np.uintp(which[b, 0]), np.uintp(which[b, 1])
            bn, bf = np.uintp(which[b, 2]), np.uintp(which[b, 3])
            for q in range(np.uintp(first), np.uintp(min(first + _ROWS_AT_ONCE, n_queries))):
                content, content_n, content_f, information = _ZERO, _ZERO, _ZERO, _ZERO
                sink, sink_n, sink_f = _ZERO, _ZERO, _ZERO
                signs = bits(0)
                begin, end = start[bv, q], stop[bv, q]
                while begin < end:
                    until = min(begin + _BLOCK, end)
                    for k in range(np.uintp(begin), np.uintp(until), line):
                        prefetch(rows, b, q + _AHEAD, k)
                    part, part_n, part_f = real(0), real(0), real(0)
                    for k in range(np.uintp(begin), np.uintp(until)):
                        weight = rows[b, q, k]
                        part += weight * columns[bs, k]
                        part_n += weight * n[bn, k]
                        part_f += weight * f[bf, k]
                        # the cast keeps the lanes as wide as the weights: Numba's own sum type is 64 bits
                        signs = bits(signs | real(weight).view(bits))
                    content += part
                    content_n += part_n
                    content_f += part_f
                    begin = until
                if entropies:
                    begin = start[bv, q]
                    mean = bits(real(content / max(end - begin, 1)).view(bits) & exponent)
                    lift = bits(twice_bias - mean).view(real)
                    while begin < end:
                        until = min(begin + _BLOCK, end)
                        surprise = real(0)
                        for k in range(np.uintp(begin), np.uintp(until)):
                            near = real(columns[bs, k] * rows[b, q, k] * lift)
                            if narrow:
                                surprise += xlogx32(near)
                            else:
                                surprise += near * math.log(near) if near > 0 else real(0)
                        information += surprise
                        begin = until
                for s in range(sinks.shape[1]):
                    if start[bv, q] <= sinks[bs, s] < stop[bv, q]:
                        mass = np.float64(rows[b, q, np.uintp(sinks[bs, s])])
                        sink += mass
                        sink_n += mass * n_sink[bn, s]
                        sink_f += mass * f_sink[bf, s]
                out[0, b, q] = sink / (sink + content)
                out[1, b, q] = sink_n / (sink_n + content_n)
                out[2, b, q] = sink_f / (sink_f + content_f)
                out[3, b, q] = (sink_n / sink) / (content_n / content)
                out[4, b, q] = (sink_f / sink) / (content_f / content)
                if entropies:
                    out[5, b, q], out[6, b, q], out[7, b, q] = _entropies(
                        content, sink, np.float64(lift), information
                    )
                odd[b, q] = _is_odd(content + sink, slack, signs)

    return kernel


def _make_masked(real: Any, bits: Any, entropies: bool) -> Callable[..., None]:
    @compiled_parallel
    def kernel(
        rows: Any,
        n: Any,
        f: Any,
        start: Any,
        stop: Any,
        visible: Any,
        is_sink: Any,
        which: Any,
        slack: float,
        out: Any,
        odd: Any,
    ) -> None:
        """The same for any masks: visible and is_sink (part, query or 1, key); which has a fifth column."""
        for task in numba.prange(rows.shape[0]):
            b = np.int64(task)  # the loop variable is unsigned, and unsigned with signed makes a float
            br, bs, bn, bf, bv = which[b, 0], which[b, 1], which[b, 2], which[b, 3], which[b, 4]
            for q in range(rows.shape[1]):
                content, content_n, content_f, information = _ZERO, _ZERO, _ZERO, _ZERO
                sink, sink_n, sink_f, sign = _ZERO, _ZERO, _ZERO, np.int64(0)
                qv = q if visible.shape[1] > 1 else 0
                qs = q if is_sink.shape[1] > 1 else 0
                for k in range(start[br, q], stop[br, q]):
                    if not visible[bv, qv, k]:
                        continue
                    mass = np.float64(rows[b, q, k])
                    sign |= np.int64(real(rows[b, q, k]).view(bits))
                    if is_sink[bs, qs, k]:
                        sink += mass
                        sink_n += mass * n[bn, k]
                        sink_f += mass * f[bf, k]
                    else:
                        content += mass
                        content_n += mass * n[bn, k]
                        content_f += mass * f[bf, k]
                        if entropies and mass > 0:
                            information += mass * math.log(mass)
                out[0, b, q] = sink / (sink + content)
                out[1, b, q] = sink_n / (sink_n + content_n)
                out[2, b, q] = sink_f / (sink_f + content_f)
                out[3, b, q] = (sink_n / sink) / (content_n / content)
                out[4, b, q] = (sink_f / sink) / (content_f / content)
                if entropies:
                    out[5, b, q], out[6, b, q], out[7, b, q] = _entropies(content, sink, _ONE, information)
                odd[b, q] = _is_odd(content + sink, slack, sign)

    return kernel


_WIDTHS = {"float32": (np.float32, np.int32), "float64": (np.float64, np.int64)}
_RANGED = {(name, e): _make_ranged(*width, e) for name, width in _WIDTHS.items() for e in (False, True)}
_MASKED = {(name, e): _make_masked(*width, e) for name, width in _WIDTHS.items() for e in (False, True)}


def ranged_kernel(dtype: np.dtype[Any], entropies: bool) -> Callable[..., None]:
    """The kernel for float32 or float64 rows whose visible keys are ranges."""
    return _RANGED[dtype.name, entropies]


def masked_kernel(dtype: np.dtype[Any], entropies: bool) -> Callable[..., None]:
    """The kernel for float32 or float64 rows under any masks."""
    return _MASKED[dtype.name, entropies]
