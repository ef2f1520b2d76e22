"""One pass over attention rows: loops over plain arrays that trust their caller.

Every kernel walks the content of a row in blocks of at most BLOCK keys. Within a block the sums run in the
dtype of the rows, in as many lanes as the machine has; across blocks they are float64. So a float32 sum
meets a bounded number of roundings, whatever the length. The sinks are summed apart, key by key in
float64: neither part is ever the difference of two larger numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from fastpath._jit import compiled_parallel, inlined
from fastpath._math import log32

__all__ = ["COLUMNS", "masked_kernel", "ranged_kernel"]

BLOCK = 512
ROWS_AT_ONCE = 64

# What a kernel writes for each row, float64: three sink shares (of a, of a n, of a f), two r (of n, of f)
# and, where they were asked for, three entropies in nats.
COLUMNS = ("share", "share_n", "share_f", "ratio_n", "ratio_f", "total", "binary", "content")


@inlined
def _finish_shares(out: Any, content: Any, sink: Any) -> None:
    """Shares and ratios of one row from the sums of a, a n and a f over its content and over its sinks."""
    for column in range(3):
        out[column] = sink[column] / (sink[column] + content[column])
    for column in range(1, 3):
        out[column + 2] = (sink[column] / sink[0]) / (content[column] / content[0])


@inlined
def _finish_entropies(out: Any, content: float, sink: float, information: float) -> None:
    """The entropy of one row and its parts; information is sum a ln a over its content."""
    mass = content + sink
    inside, outside = sink / mass, content / mass
    binary = 0.0
    if 0.0 < outside < 0.5:
        binary = -outside * math.log(outside) - inside * math.log1p(-outside)
    elif inside > 0.0:
        binary = -inside * math.log(inside) - (outside * math.log1p(-inside) if outside > 0.0 else 0.0)
    within = math.log(content) - information / content
    within = 0.0 if within < 0.0 else within
    out[5] = np.nan if not mass > 0.0 else (binary + outside * within if outside > 0.0 else binary)
    out[6] = binary if mass > 0.0 else np.nan
    out[7] = within if outside > 0.0 else np.nan


@inlined
def _is_odd(mass: float, slack: float, sign: int) -> bool:
    """Whether a row has to be looked at again: a sign bit, a sum off one by more than slack or not finite."""
    return sign < 0 or not (abs(mass - 1.0) <= slack or mass == 0.0) or mass - mass != 0.0


def _make_ranged(real: Any, bits: Any, entropies: bool) -> Callable[..., None]:
    narrow = real is np.float32  # a constant to Numba, which leaves the other branch out

    @compiled_parallel
    def kernel(
        rows: Any,
        n: Any,
        f: Any,
        start: Any,
        stop: Any,
        gaps: Any,
        sinks: Any,
        slack: float,
        out: Any,
        odd: Any,
    ) -> None:
        """Rows (batch, query, key); n, f (batch or 1, key); visible keys start <= key < stop, each (query,).

        gaps (gap, 2): runs of keys between sinks; sinks (sink,): their positions. Fills out and odd.
        """
        batch, n_queries = rows.shape[0], rows.shape[1]
        per_matrix = (n_queries + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
        for task in numba.prange(batch * per_matrix):
            b = task // per_matrix
            first = (task - b * per_matrix) * ROWS_AT_ONCE
            row_n, row_f = n[b if n.shape[0] > 1 else 0], f[b if f.shape[0] > 1 else 0]
            content, sink = np.empty(3), np.empty(3)
            for q in range(first, min(first + ROWS_AT_ONCE, n_queries)):
                row = rows[b, q]
                content[:] = 0.0
                sink[:] = 0.0
                information, sign = 0.0, np.int64(0)
                for gap in range(gaps.shape[0]):
                    begin, end = max(gaps[gap, 0], start[q]), min(gaps[gap, 1], stop[q])
                    while begin < end:
                        until = min(begin + BLOCK, end)
                        a, x, y = row[begin:until], row_n[begin:until], row_f[begin:until]
                        part, part_n, part_f, signs = real(0), real(0), real(0), bits(0)
                        surprise = real(0)
                        for k in range(a.shape[0]):
                            weight = a[k]
                            part += weight
                            part_n += weight * x[k]
                            part_f += weight * y[k]
                            signs |= real(weight).view(bits)
                            if entropies and narrow:
                                surprise += weight * log32(weight) if weight > 0 else real(0)
                            elif entropies:
                                surprise += weight * math.log(weight) if weight > 0 else real(0)
                        content[0] += part
                        content[1] += part_n
                        content[2] += part_f
                        information += surprise
                        sign |= np.int64(signs)
                        begin = until
                for s in range(sinks.shape[0]):
                    key = sinks[s]
                    if start[q] <= key < stop[q]:
                        mass = np.float64(row[key])
                        sink[0] += mass
                        sink[1] += mass * row_n[key]
                        sink[2] += mass * row_f[key]
                        sign |= np.int64(real(row[key]).view(bits))
                _finish_shares(out[b, q], content, sink)
                if entropies:
                    _finish_entropies(out[b, q], content[0], sink[0], information)
                odd[b, q] = _is_odd(content[0] + sink[0], slack, sign)

    return kernel


def _make_masked(real: Any, bits: Any, entropies: bool) -> Callable[..., None]:
    @compiled_parallel
    def kernel(
        rows: Any, n: Any, f: Any, visible: Any, is_sink: Any, slack: float, out: Any, odd: Any
    ) -> None:
        """The same for any masks: visible and is_sink (batch or 1, query, key)."""
        for task in numba.prange(rows.shape[0]):
            b = np.int64(task)  # the loop variable is unsigned, and unsigned with signed makes a float
            row_n, row_f = n[b if n.shape[0] > 1 else 0], f[b if f.shape[0] > 1 else 0]
            content, sink = np.empty(3), np.empty(3)
            for q in range(rows.shape[1]):
                content[:] = 0.0
                sink[:] = 0.0
                information, sign = 0.0, np.int64(0)
                for k in range(rows.shape[2]):
                    weight = rows[b, q, k]
                    if not visible[b if visible.shape[0] > 1 else 0, q, k]:
                        continue
                    mass = np.float64(weight)
                    sign |= np.int64(real(weight).view(bits))
                    if is_sink[b if is_sink.shape[0] > 1 else 0, q, k]:
                        sink[0] += mass
                        sink[1] += mass * row_n[k]
                        sink[2] += mass * row_f[k]
                    else:
                        content[0] += mass
                        content[1] += mass * row_n[k]
                        content[2] += mass * row_f[k]
                        if entropies and mass > 0:
                            information += mass * math.log(mass)
                _finish_shares(out[b, q], content, sink)
                if entropies:
                    _finish_entropies(out[b, q], content[0], sink[0], information)
                odd[b, q] = _is_odd(content[0] + sink[0], slack, sign)

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
