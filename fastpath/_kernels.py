"""One pass over attention rows: loops over plain arrays that trust their caller.

Every kernel walks the content of a row in blocks of at most BLOCK keys. Within a block the sums run in the dtype of
the rows, in as many lanes as the machine has; across blocks they are float64. So a float32 sum meets a
bounded number of roundings, whatever the length. The sinks are summed apart, key by key in float64: neither
part is ever the difference of two larger numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from fastpath._jit import compiled, compiled_parallel
from fastpath._math import log32, log64

__all__ = ["RATIO_COLUMNS", "SHARE_COLUMNS", "masked_kernel", "ranged_kernel"]

BLOCK = 512
ROWS_AT_ONCE = 64

# Columns of a result (batch, query, 8), float64.
SHARE_COLUMNS = (0, 1, 2)  # sink share of a, of a n, of a f
RATIO_COLUMNS = (3, 4)  # r of n, r of f
TOTAL, BINARY, CONTENT = 5, 6, 7  # entropies in nats


@compiled
def _finish(out: Any, total: Any, sink: Any, information: float, slack: float, sign: int) -> bool:
    """Turn the sums of one row into its results; True where the row has to be looked at again.

    total and sink: the sums of a, a n and a f over content and sinks; information: sum a ln a over content.
    """
    for column in range(3):
        out[column] = sink[column] / (sink[column] + total[column])
    for column in range(1, 3):
        out[column + 2] = (sink[column] / sink[0]) / (total[column] / total[0])
    mass = sink[0] + total[0]
    inside, outside = sink[0] / mass, total[0] / mass
    if outside < 0.5:
        binary = -outside * math.log(outside) - inside * math.log1p(-outside) if outside > 0 else 0.0
    else:
        binary = -inside * math.log(inside) - outside * math.log1p(-inside) if inside > 0 else 0.0
    content = math.log(total[0]) - information / total[0]
    content = 0.0 if content < 0 else content
    out[BINARY] = binary if mass > 0 else np.nan
    out[CONTENT] = content if outside > 0 else np.nan
    out[TOTAL] = (binary + outside * content if outside > 0 else binary) if mass > 0 else np.nan
    return sign < 0 or not (abs(mass - 1.0) <= slack or mass == 0.0) or not mass - mass == 0.0


def _make_ranged(real: Any, bits: Any, logarithm: Any, entropies: bool) -> Callable[..., None]:
    @compiled_parallel
    def kernel(
        rows: Any, n: Any, f: Any, start: Any, stop: Any, gaps: Any, sinks: Any, slack: float, out: Any, odd: Any
    ) -> None:
        """rows (batch, query, key); n, f (batch or 1, key); visible keys start <= key < stop, each (query,).

        gaps (gap, 2): runs of keys between sinks; sinks (sink,): their positions. Fills out and odd.
        """
        batch, n_queries = rows.shape[0], rows.shape[1]
        per_matrix = (n_queries + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
        for task in numba.prange(batch * per_matrix):
            b = task // per_matrix
            first = (task - b * per_matrix) * ROWS_AT_ONCE
            row_n, row_f = n[b if n.shape[0] > 1 else 0], f[b if f.shape[0] > 1 else 0]
            total, sink = np.empty(3), np.empty(3)
            for q in range(first, min(first + ROWS_AT_ONCE, n_queries)):
                row = rows[b, q]
                total[:] = 0.0
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
                            if entropies:
                                surprise += weight * logarithm(weight) if weight > 0 else real(0)
                        total[0] += part
                        total[1] += part_n
                        total[2] += part_f
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
                odd[b, q] = _finish(out[b, q], total, sink, information, slack, sign)

    return kernel


def _make_masked(real: Any, bits: Any, logarithm: Any, entropies: bool) -> Callable[..., None]:
    @compiled_parallel
    def kernel(
        rows: Any, n: Any, f: Any, visible: Any, is_sink: Any, slack: float, out: Any, odd: Any
    ) -> None:
        """The same for any masks: visible and is_sink broadcast to (batch, query, key)."""
        for b in numba.prange(rows.shape[0]):
            row_n, row_f = n[b if n.shape[0] > 1 else 0], f[b if f.shape[0] > 1 else 0]
            total, sink = np.empty(3), np.empty(3)
            for q in range(rows.shape[1]):
                total[:] = 0.0
                sink[:] = 0.0
                information, sign = 0.0, np.int64(0)
                for k in range(rows.shape[2]):
                    weight = rows[b, q, k]
                    if not visible[b, q, k]:
                        continue
                    mass = np.float64(weight)
                    sign |= np.int64(real(weight).view(bits))
                    if is_sink[b, q, k]:
                        sink[0] += mass
                        sink[1] += mass * row_n[k]
                        sink[2] += mass * row_f[k]
                    else:
                        total[0] += mass
                        total[1] += mass * row_n[k]
                        total[2] += mass * row_f[k]
                        if entropies and weight > 0:
                            information += mass * logarithm(weight)
                odd[b, q] = _finish(out[b, q], total, sink, information, slack, sign)

    return kernel


_WIDTHS = {"float32": (np.float32, np.int32, log32), "float64": (np.float64, np.int64, log64)}
_RANGED = {(name, e): _make_ranged(*width, e) for name, width in _WIDTHS.items() for e in (False, True)}
_MASKED = {(name, e): _make_masked(*width, e) for name, width in _WIDTHS.items() for e in (False, True)}


def ranged_kernel(dtype: np.dtype[Any], entropies: bool) -> Callable[..., None]:
    """The kernel for float32 or float64 rows whose visible keys are ranges."""
    return _RANGED[dtype.name, entropies]


def masked_kernel(dtype: np.dtype[Any], entropies: bool) -> Callable[..., None]:
    """The kernel for float32 or float64 rows under any masks."""
    return _MASKED[dtype.name, entropies]
