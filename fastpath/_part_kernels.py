"""Rows laid out as parts, and what is computed once for each row; loops over plain arrays.

A row becomes its content parts in the order of the keys, then its sink as one part, if it sees one, then
zeros up to a multiple of lanes. Rows run in parallel. Indices are unsigned and no array is sliced, as in
`fastpath/_pair_kernels.py`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from fastpath._jensen import HALF_LN2, LOG_ZERO
from fastpath._jit import compiled_parallel
from fastpath._math import exp64, log64, quotient

__all__ = ["centre_parts", "centre_scores", "describe_parts", "lay_out_rows", "logs_of"]

_ZERO = np.float64(0.0)


@compiled_parallel
def lay_out_rows(
    rows: Any,
    queries: Any,
    keys: Any,
    n_content: Any,
    n_sink: Any,
    width: Any,
    slack: float,
    share: float,
    noise: float,
    keep: Any,
    drop: Any,
    defined: Any,
    odd: Any,
) -> None:
    """Take rows (head, query, key) at `queries` (row,) apart, into keep and drop (row, head, part).

    keys (row, key) lists the content keys of a row, then its sink keys; n_content and n_sink (row,) say how
    many. keep has the n+1 parts closed, times `share` and plus `noise` over their number, drop the content
    closed. defined (2, row, head): whether keep and drop are. odd (row, head): a weight that is negative or
    not finite, or a sum that is off one by more than slack and not zero.
    """
    for task in numba.prange(queries.shape[0]):
        r = np.uintp(task)
        q = np.uintp(queries[r])
        n, n_sinks, end = np.uintp(n_content[r]), np.uintp(n_sink[r]), np.uintp(width[r])
        n_parts = n + np.uintp(1) if n_sinks > 0 else n
        for h in range(np.uintp(rows.shape[0])):
            content, sink = _ZERO, _ZERO
            wrong = np.int64(0)
            for k in range(n):
                weight = np.float64(rows[h, q, np.uintp(keys[r, k])])
                keep[r, h, k] = weight
                content += weight
                wrong += np.int64(not weight >= 0)
            for k in range(n, n + n_sinks):
                weight = np.float64(rows[h, q, np.uintp(keys[r, k])])
                sink += weight
                wrong += np.int64(not weight >= 0)
            total = content + sink
            odd[r, h] = wrong > 0 or not (abs(total - 1.0) <= slack or total == 0)
            defined[0, r, h] = total > 0
            defined[1, r, h] = content > 0
            whole = total if total > 0 else np.float64(1.0)
            within = content if content > 0 else np.float64(1.0)
            extra = noise / np.float64(n_parts) if n_parts > 0 else _ZERO
            for k in range(n):
                drop[r, h, k] = quotient(keep[r, h, k], within)
                keep[r, h, k] = share * (keep[r, h, k] / whole) + extra
            for k in range(n, end):
                drop[r, h, k] = 0.0
                keep[r, h, k] = 0.0
            if n_sinks > 0:
                keep[r, h, n] = share * (sink / whole) + extra


@compiled_parallel
def logs_of(parts: Any, width: Any, logs: Any) -> None:
    """Logarithms (LOG_ZERO of a zero) of parts (row, head, part)."""
    for task in numba.prange(parts.shape[0]):
        r = np.uintp(task)
        for h in range(np.uintp(parts.shape[1])):
            for k in range(np.uintp(width[r])):
                part = parts[r, h, k]
                logs[r, h, k] = log64(part) if part > 0 else LOG_ZERO


@compiled_parallel
def describe_parts(
    parts: Any, width: Any, logs: Any, roots: Any, length: Any, information: Any, entropy: Any
) -> None:
    """Logarithms (LOG_ZERO of a zero) and roots of parts (row, head, part); three numbers of each row.

    length (row, head) is its norm, information (row, head) sum p ln p + ln(2) / 2 · p, and entropy
    (row, head, 1) is in nats.
    """
    for task in numba.prange(parts.shape[0]):
        r = np.uintp(task)
        for h in range(np.uintp(parts.shape[1])):
            mass, squares, surprise = _ZERO, _ZERO, _ZERO
            for k in range(np.uintp(width[r])):
                part = parts[r, h, k]
                logarithm = log64(part) if part > 0 else LOG_ZERO
                logs[r, h, k] = logarithm
                roots[r, h, k] = np.sqrt(part)
                mass += part
                squares += part * part
                surprise -= part * logarithm
            length[r, h] = np.sqrt(squares)
            information[r, h] = HALF_LN2 * mass - surprise
            entropy[r, h, np.uintp(0)] = surprise if surprise > 0 else _ZERO


@compiled_parallel
def centre_parts(
    keep: Any,
    n_content: Any,
    n_sink: Any,
    width: Any,
    delta: float,
    centred: Any,
    balance: Any,
    zeros: Any,
) -> None:
    """The clr of the content, centred (row, head, part), and its balance with the sink, (row, head, 1).

    The balance is sqrt(n/(n+1)) · (ln s - mean ln c), 0 for a row that sees no sink, so that squared
    differences of both add up to the squared Aitchison distance. Zeros become delta and the other parts are
    multiplied by 1 - zeros · delta; zeros (row, head) counts them. With delta 0 what has zeros is not usable.
    """
    for task in numba.prange(keep.shape[0]):
        r = np.uintp(task)
        n = np.uintp(n_content[r])
        n_parts = n + np.uintp(1) if n_sink[r] > 0 else n
        small = log64(np.float64(delta)) if delta > 0 else _ZERO
        for h in range(np.uintp(keep.shape[1])):
            count = np.int64(0)
            for k in range(n_parts):
                count += np.int64(keep[r, h, k] == 0)
            zeros[r, h] = count
            shift = np.log1p(-np.float64(count) * delta)
            mean = _ZERO
            for k in range(n):
                value = log64(keep[r, h, k]) + shift if keep[r, h, k] > 0 else small
                centred[r, h, k] = value
                mean += value
            mean = mean / np.float64(n) if n > 0 else _ZERO
            for k in range(n):
                centred[r, h, k] -= mean
            for k in range(n, np.uintp(width[r])):
                centred[r, h, k] = 0.0
            balance[r, h, np.uintp(0)] = 0.0
            if n_sink[r] > 0:
                value = log64(keep[r, h, n]) + shift if keep[r, h, n] > 0 else small
                balance[r, h, np.uintp(0)] = np.sqrt(np.float64(n) / np.float64(n_parts)) * (value - mean)


@compiled_parallel
def centre_scores(
    scores: Any,
    queries: Any,
    keys: Any,
    n_content: Any,
    n_sink: Any,
    width: Any,
    piece: Any,
    column: Any,
    centred: Any,
    balance: Any,
    odd: Any,
) -> None:
    """The same from scores (head, query, key), with zeros up to the width of a row.

    A row goes to centred (piece, head, column) from its piece and column (row,) on, its balance to balance
    (head, row). odd (head, row): 1 where a visible score is not finite.
    """
    for task in numba.prange(queries.shape[0]):
        r = np.uintp(task)
        q, p, start = np.uintp(queries[r]), np.uintp(piece[r]), np.uintp(column[r])
        n, n_sinks = np.uintp(n_content[r]), np.uintp(n_sink[r])
        for h in range(np.uintp(scores.shape[0])):
            mean, size = _ZERO, _ZERO
            for k in range(n):
                value = np.float64(scores[h, q, np.uintp(keys[r, k])])
                centred[p, h, start + k] = value
                mean += value
                size += abs(value)
            mean = mean / np.float64(n) if n > 0 else _ZERO
            for k in range(n):
                centred[p, h, start + k] -= mean
            for k in range(n, np.uintp(width[r])):
                centred[p, h, start + k] = 0.0
            top, mass = np.float64(-np.inf), _ZERO
            for k in range(n, n + n_sinks):
                value = np.float64(scores[h, q, np.uintp(keys[r, k])])
                size += abs(value)
                top = value if value > top else top
            for k in range(n, n + n_sinks):
                mass += exp64(np.float64(scores[h, q, np.uintp(keys[r, k])]) - top)
            if n_sinks > 0:
                value = top + log64(mass)
                root = np.sqrt(np.float64(n) / np.float64(n + np.uintp(1)))
                balance[h, r] = root * (value - mean)
            odd[h, r] = np.int64(not size < np.inf)
