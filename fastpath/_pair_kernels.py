"""Row distances of all pairs of heads, added up over rows: loops over plain arrays that trust their caller.

A thread owns the pairs of its tiles and goes through the rows in their order, so that the number of threads
changes no bit, and neither does the size of a tile. The parts of a row end in zeros up to a multiple of
`LANES`, which add nothing to any distance: no loop has a rest to take one by one. Indices are unsigned, which
Numba need not test for counting from the end, and no array is sliced, which would count references between
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fastpath._jensen import SMALLEST, jensen_close, mixture
from fastpath._jit import compiled_parallel
from fastpath._math import quotient

__all__ = ["CLOSE", "LANES", "TILE", "pair_kernel", "shared_kernel", "tiles_of"]

LANES = 16  # two registers of eight float64
TILE = 16  # heads
CLOSE = np.float64(2e-2)  # twice a divergence in nats: closer rows are summed with more care
_ZERO = np.float64(0.0)  # without the JIT a bare 0.0 would divide as Python does


def tiles_of(heads: int) -> tuple[int, NDArray[np.int64]]:
    """Heads in a tile, and the first heads of each pair of tiles, (task, 2): few heads make small tiles."""
    size = max(1, min(TILE, (heads + 7) // 8))
    starts = np.arange(0, heads, size)
    first, second = np.triu_indices(len(starts))
    return size, np.stack([starts[first], starts[second]], axis=1)


def _make_pairs(
    is_jensen: bool, is_hellinger: bool, is_cosine: bool, is_absolute: bool
) -> Callable[..., None]:
    @compiled_parallel
    def kernel(
        parts: Any,
        other: Any,
        of_row: Any,
        width: Any,
        defined: Any,
        tiles: Any,
        size: int,
        scale: float,
        largest: float,
        sums: Any,
        roots: Any,
    ) -> None:
        """Add to sums and roots (head, head), above the diagonal, the distances of rows and their roots.

        parts and other (row, head, part) are float64 (other: logarithms or roots of the parts), of_row
        (row, head) is the norm of a row, or its sum p ln p + ln(2) / 2 · p, width (row,) a multiple of LANES,
        defined (row, head) boolean. A distance is scale times the sum over parts, at most `largest`; pairs of
        which a row is not defined are left out.
        """
        n_heads = parts.shape[1]
        for task in numba.prange(tiles.shape[0]):
            top, left = tiles[task, 0], tiles[task, 1]
            totals = np.zeros(size)  # of one head with those of the other tile
            for r in range(np.uintp(parts.shape[0])):
                for h in range(np.uintp(top), np.uintp(min(top + size, n_heads))):
                    if not defined[r, h]:
                        continue
                    first = np.uintp(max(np.int64(left), np.int64(h) + 1))
                    last = np.uintp(min(left + size, n_heads))
                    for g in range(first, last):
                        total: Any = _ZERO
                        if is_jensen:
                            for k in range(np.uintp(width[r])):
                                total -= mixture(
                                    parts[r, h, k], parts[r, g, k], other[r, h, k], other[r, g, k]
                                )
                            total += of_row[r, h] + of_row[r, g]
                        elif is_hellinger:
                            for k in range(np.uintp(width[r])):
                                both = other[r, h, k] + other[r, g, k]
                                step = (parts[r, h, k] - parts[r, g, k]) / (
                                    both if both > SMALLEST else SMALLEST
                                )
                                total += step * step
                        elif is_cosine:
                            ratio = quotient(of_row[r, h], of_row[r, g])
                            for k in range(np.uintp(width[r])):
                                step = parts[r, h, k] - ratio * parts[r, g, k]
                                total += step * step
                            total /= of_row[r, h] * of_row[r, h]
                        elif is_absolute:
                            for k in range(np.uintp(width[r])):
                                total += abs(parts[r, h, k] - parts[r, g, k])
                        else:
                            for k in range(np.uintp(width[r])):
                                step = parts[r, h, k] - parts[r, g, k]
                                total += step * step
                        totals[g - first] = total
                    if is_jensen:
                        for g in range(first, last):
                            if totals[g - first] < CLOSE:
                                total = _ZERO
                                for k in range(np.uintp(width[r])):
                                    p, q = parts[r, h, k], parts[r, g, k]
                                    total += jensen_close(p, q, other[r, h, k], other[r, g, k])
                                totals[g - first] = total
                    for g in range(first, last):
                        total = scale * totals[g - first]
                        total = total if total < largest else largest
                        total = total if defined[r, g] else _ZERO
                        sums[h, g] += total
                        roots[h, g] += np.sqrt(total)

    return kernel


@compiled_parallel
def shared_kernel(
    weights: Any,
    logs: Any,
    n_content: Any,
    has_sink: Any,
    tiles: Any,
    size: int,
    content: Any,
    sink: Any,
    counts: Any,
) -> None:
    """Add squared Aitchison distances over the parts that are positive in both rows, and count the rows.

    weights and logs (row, head, part) hold the content first, then the sink, if has_sink (row,); n_content
    (row,) is how many parts the content has. The mean log-ratio is taken first, then the squares around it.
    """
    n_heads = weights.shape[1]
    for task in numba.prange(tiles.shape[0]):
        top, left = tiles[task, 0], tiles[task, 1]
        for r in range(np.uintp(weights.shape[0])):
            n = np.uintp(n_content[r])
            for h in range(np.uintp(top), np.uintp(min(top + size, n_heads))):
                for g in range(
                    np.uintp(max(np.int64(left), np.int64(h))), np.uintp(min(left + size, n_heads))
                ):
                    shared, mean, squares = _ZERO, _ZERO, _ZERO
                    for k in range(n):
                        if weights[r, h, k] > 0 and weights[r, g, k] > 0:
                            shared += 1.0
                            mean += logs[r, h, k] - logs[r, g, k]
                    if shared == 0:
                        continue
                    mean /= shared
                    for k in range(n):
                        if weights[r, h, k] > 0 and weights[r, g, k] > 0:
                            step = logs[r, h, k] - logs[r, g, k] - mean
                            squares += step * step
                    content[h, g] += squares
                    counts[h, g] += 1
                    if has_sink[r] and weights[r, h, n] > 0 and weights[r, g, n] > 0:
                        step = logs[r, h, n] - logs[r, g, n] - mean
                        sink[h, g] += shared / (shared + 1.0) * step * step


_PAIRS = {
    name: _make_pairs(name == "jensen", name == "hellinger", name == "cosine", name == "absolute")
    for name in ("jensen", "hellinger", "cosine", "absolute", "squares")
}


def pair_kernel(name: str) -> Callable[..., None]:
    """The kernel of "jensen", "hellinger", "cosine", "absolute" or "squares", which it adds up."""
    return _PAIRS[name]
