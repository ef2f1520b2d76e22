"""What no implementation can beat here: reading the same bytes, and the matrix product alone."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fastpath._jit import compiled_parallel

__all__ = ["bare_products", "read_only"]

Array = NDArray[Any]


def read_only(rows: Array) -> Array:
    """Sums of rows (..., query, key) in their dtype, by a compiled loop that reads and adds, nothing else."""
    return _read(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:-1])


def bare_products(query: Array, key: Array, causal: bool = False, block: int = 256) -> Array:
    """Scores in blocks of queries, by BLAS, each block thrown away; blocks above the diagonal left out.

    `query` and `key` are (head, token, d_head). Returns the last block, so that a caller can look at it.
    """
    n_heads, n_tokens, _ = query.shape
    room = np.empty(min(block, n_tokens) * n_tokens, dtype=query.dtype)
    scores = room[:0]
    for head in range(n_heads):
        keys = key[head].T
        for start in range(0, n_tokens, block):
            stop = min(start + block, n_tokens)
            seen = stop if causal else n_tokens
            scores = room[: (stop - start) * seen].reshape(stop - start, seen)
            np.matmul(query[head, start:stop], keys[:, :seen], out=scores)
    return scores


@compiled_parallel
def _read(rows: Array) -> Array:
    sums = np.empty(rows.shape[0], rows.dtype)
    for place in numba.prange(rows.shape[0]):
        row = rows[place]
        total = row.dtype.type(0)
        for key in range(row.shape[0]):
            total += row[key]
        sums[place] = total
    return sums
