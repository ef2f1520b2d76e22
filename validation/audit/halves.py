"""Seeded splits of the texts into two halves: the noise that any figure over texts has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject

__all__ = ["SPLITS", "text_halves"]

SPLITS = 20

Indices = NDArray[np.int64]


def text_halves(n_texts: int, splits: int = SPLITS, seed: int = 0) -> tuple[tuple[Indices, Indices], ...]:
    """`splits` random splits of the texts 0 to n_texts - 1 into two halves, each half sorted.

    With an odd number of texts the second half has one more. The same seed gives the same splits. Fewer than
    two texts cannot be split: there is no split then, and so no floor. Raises InputError for splits < 1.
    """
    if splits < 1:
        reject("splits", expected="at least 1", found=str(splits), todo="20 is the usual number.")
    if n_texts < 2:
        return ()
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n_texts) for _ in range(splits)]
    return tuple((np.sort(order[: n_texts // 2]), np.sort(order[n_texts // 2 :])) for order in orders)
