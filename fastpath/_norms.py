"""Norms as a kernel takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["scaled"]


def scaled(norm: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
    """Norms (..., key) over their largest, which changes no share and no ratio and lets any fit float32."""
    largest = norm.max(axis=-1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    return np.divide(norm, largest, out=np.empty(norm.shape, dtype), casting="same_kind")
