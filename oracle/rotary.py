"""Rotary positions: queries and keys turned by angles that grow with their place in the text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oracle.model import Rotary, RotaryScaling

__all__ = ["frequencies", "rotate", "turns"]

Array = NDArray[Any]


def frequencies(rotary: Rotary, dtype: DTypeLike = np.float64) -> Array:
    """Radians that each pair of entries turns from one position to the next, (dims / 2,)."""
    exponents = np.arange(0, rotary.dims, 2, dtype=dtype) / np.asarray(rotary.dims, dtype)
    found = np.asarray(rotary.base, dtype) ** -exponents
    return found if rotary.scaling is None else _scaled(found, rotary.scaling)


def turns(rotary: Rotary, positions: NDArray[np.int64], dtype: DTypeLike) -> tuple[Array, Array]:
    """Cosines and sines of every angle, each (token, dims / 2), in `dtype`.

    The angles are computed in float64 at least: in float32 one of position 1,000 is off by 6e-5.
    """
    wide = np.result_type(dtype, np.float64)
    angles = positions.astype(wide)[:, None] * frequencies(rotary, wide)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def rotate(x: Array, turned: tuple[Array, Array]) -> Array:
    """Queries or keys (head, token, d_head) turned by `turns`; entries past `dims` are copied as they are."""
    cosine, sine = turned
    half = cosine.shape[-1]
    first, second = x[..., :half], x[..., half : 2 * half]
    result = np.empty_like(x, order="C")
    np.multiply(first, cosine, out=result[..., :half])
    result[..., :half] -= second * sine
    np.multiply(second, cosine, out=result[..., half : 2 * half])
    result[..., half : 2 * half] += first * sine
    result[..., 2 * half :] = x[..., 2 * half :]
    return result


def _scaled(plain: Array, scaling: RotaryScaling) -> Array:
    factor = plain.dtype.type(scaling.factor)
    if scaling.original_positions is None:
        return plain / factor
    rounds = scaling.original_positions * plain / (2 * np.arccos(plain.dtype.type(-1)))
    kept = (rounds - scaling.low_factor) / (scaling.high_factor - scaling.low_factor)  # the part left alone
    kept = np.clip(kept, 0, 1)
    return (1 - kept) * plain / factor + kept * plain
