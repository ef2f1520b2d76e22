"""Different splits of the texts into two halves: the noise that any figure over texts has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject

__all__ = ["SPLITS", "text_halves"]

SPLITS = 20

Indices = NDArray[np.int64]


def text_halves(n_texts: int, splits: int = SPLITS, seed: int = 0) -> tuple[tuple[Indices, Indices], ...]:
    """`splits` different splits of the texts 0 to n_texts - 1 into two halves, each half sorted.

    With an odd number of texts the second half has one more. Where there are no more than `splits` at all
    (two texts have 1, three or four 3, five or six 10), they are all of them; else they are random, and the
    same seed gives the same ones. Fewer than two texts cannot be split: there is no split then, and so no
    floor. Raises InputError for splits < 1.
    """
    if splits < 1:
        reject("splits", expected="at least 1", found=str(splits), todo="20 is the usual number.")
    if n_texts < 2:
        return ()
    size = n_texts // 2
    ordered = math.comb(n_texts, size)
    if ordered // (1 if n_texts % 2 else 2) <= splits:
        chosen = dict.fromkeys(_first_half(half, n_texts) for half in combinations(range(n_texts), size))
    else:
        rng, chosen = np.random.default_rng(seed), {}
        while len(chosen) < splits:
            chosen[_first_half(rng.permutation(n_texts)[:size].tolist(), n_texts)] = None
    return tuple((np.array(half), np.setdiff1d(np.arange(n_texts), half)) for half in chosen)


def _first_half(half: Sequence[int], n_texts: int) -> tuple[int, ...]:
    """The half of a split by which it is known: the smaller one, or of two equal ones that with text 0."""
    if 2 * len(half) == n_texts and 0 not in half:
        return tuple(sorted(set(range(n_texts)) - set(half)))
    return tuple(sorted(half))
