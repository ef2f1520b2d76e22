"""Norms as a kernel takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_float32", "lifted"]

# The largest norm of a head lies just below this power of two. A float32 weight has 2^-149 at least, so that
# the products of norms that differ by 2^96 keep all their digits; a row's sum stays 8 bits short of overflow.
_TOP = {"float32": 120, "float64": 1022}
_SPAN = 2.0**96


def lifted(norm: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
    """Norms (..., key) times a power of two for each head, which changes no share and no ratio.

    They come as near to the largest number of `dtype` as a sum of them over a row allows, so that no product
    with a small weight is lost.
    """
    shift = _TOP[np.dtype(dtype).name] - np.frexp(norm.max(axis=-1, keepdims=True, initial=0))[1]
    half = shift // 2  # 2^shift itself may be too large
    return np.asarray(norm * np.ldexp(1.0, half) * np.ldexp(1.0, shift - half), dtype)


def fit_float32(norm: NDArray[Any]) -> bool:
    """Whether the norms of every head that are not zero are near enough to each other for float32."""
    if norm.size and norm.min() > norm.max() / _SPAN:
        return True
    largest = norm.max(axis=-1, keepdims=True, initial=0)
    return not ((norm > 0) & (norm < largest / _SPAN)).any()
