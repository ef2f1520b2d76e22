"""Elementwise functions of float arrays, computed over pieces small enough to stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, reject_type

__all__ = ["Kernel", "elementwise"]

# kernel(block, out, scratch): all of one dtype. block and out are one-dimensional and contiguous, scratch is
# _SCRATCH rows of that length; the kernel fills out, may spoil scratch and leaves block alone.
Kernel = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], None]

_SCRATCH = 4
_BLOCK = 32768  # elements; shorter blocks pay for the calls, longer ones for the cache misses


def elementwise(argument: str, value: Any, kernels: Mapping[type, Kernel]) -> NDArray[Any]:
    """Apply the kernel of `value`'s dtype block by block; a new array of the same shape and dtype.

    `kernels` maps NumPy scalar types to kernels; any other dtype raises InputTypeError. Floating-point
    flags raised inside a kernel belong to its method (an exp that saturates) and never become warnings.
    """
    array = as_array(argument, value)
    kernel = kernels.get(array.dtype.type)
    if kernel is None:
        reject_type(
            argument,
            expected=" or ".join(kind.__name__ for kind in kernels),
            found=f"dtype {array.dtype}",
            todo="Convert it first, for instance with .astype(np.float32).",
        )
    native = array.dtype.newbyteorder("=")
    flat = np.ascontiguousarray(array, dtype=native).reshape(-1)
    out = np.empty(array.shape, dtype=native)
    flat_out = out.reshape(-1)
    # Allocated once: a fresh temporary of this size for every operation costs more than the arithmetic.
    scratch = np.empty((_SCRATCH, min(_BLOCK, flat.size)), dtype=native)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            kernel(block, flat_out[start : start + _BLOCK], scratch[:, : block.size])
    return out
