"""Laws of calling: what dtype comes back, and that arguments of any memory layout stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.definitions import widest
from validation.properties.finding import Finding, deviation, size_of

__all__ = ["arguments_stay", "result_dtype"]

Array = NDArray[Any]


def result_dtype(function: Callable[..., Any], *arguments: Any) -> Finding:
    """Results are float64, or longdouble when an argument is; the error is in bytes an element."""
    wanted = widest(*(argument for argument in arguments if np.asarray(argument).dtype.kind == "f"))
    found = np.asarray(function(*arguments)).dtype
    error = abs(found.itemsize - wanted.itemsize) if found.kind == "f" else float("inf")
    return Finding(f"results are {wanted}", float(error), 0.0, str(found))


def arguments_stay(function: Callable[..., Any], bound: float, *arguments: Array) -> Finding:
    """Read-only, strided and column-major arguments stay as they are and give the same answer."""
    wanted = function(*arguments)
    gap = (0.0, "")
    for form in (_frozen, _strided, _column_major):
        given = [form(argument) for argument in arguments]
        before = [argument.tobytes() for argument in given]
        gap = max(gap, deviation(function(*given), wanted, size_of(wanted)))
        if [argument.tobytes() for argument in given] != before:
            gap = float("inf"), "an argument was changed"
    return Finding("arguments stay as they are", gap[0], bound, gap[1])


def _frozen(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _strided(array: Array) -> Array:
    """Every second element of a buffer that runs backwards along the last axis."""
    buffer = np.repeat(array[..., ::-1], 2, axis=-1)
    return buffer[..., ::-2] if array.ndim else array


def _column_major(array: Array) -> Array:
    return np.asfortranarray(array)
