"""Rows of the widths that are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, check_axes, reject_type

__all__ = ["as_compiled"]


def as_compiled(argument: str, rows: Any) -> NDArray[Any]:
    """Rows (..., query, key) as an array of floats, integers as float64; longdouble raises InputTypeError."""
    array = as_array(argument, rows)
    check_axes(argument, array.shape)
    if array.dtype.itemsize > 8:
        reject_type(
            argument,
            expected="float64 or narrower, the widths that are compiled",
            found=f"{array.dtype}",
            todo="Round it to float64, or use the oracle (--engine oracle).",
        )
    return array if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else array.astype(np.float64)
