"""Random rows that cases are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["closed_rows"]


def closed_rows(rng: np.random.Generator, shape: tuple[int, ...], spread: float = 1) -> NDArray[Any]:
    """Random rows of this shape, each of which sums to one; the softmax of normal scores of this `spread`."""
    weights = np.exp(spread * rng.standard_normal(shape))
    return weights / weights.sum(axis=-1, keepdims=True)
