"""Every input error, worded in one voice: what was expected, what was found, what to do."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "InputError",
    "InputTypeError",
    "Unavailable",
    "as_array",
    "at_least_float64",
    "reject",
    "reject_type",
]


class InputError(ValueError):
    """The caller's input is wrong; the message is complete and needs no traceback."""


class InputTypeError(TypeError):
    """The caller's input has the wrong type; the message is complete and needs no traceback."""


class Unavailable(RuntimeError):
    """Something the call needs is not here (an extra, the network), so nothing is claimed."""


def _sentence(argument: str, expected: str, found: str, todo: str) -> str:
    return f"{argument}: expected {expected}; found {found}. {todo}"


def reject(argument: str, *, expected: str, found: str, todo: str) -> NoReturn:
    """Raise InputError about `argument`."""
    raise InputError(_sentence(argument, expected, found, todo))


def reject_type(argument: str, *, expected: str, found: str, todo: str) -> NoReturn:
    """Raise InputTypeError about `argument`."""
    raise InputTypeError(_sentence(argument, expected, found, todo))


def as_array(argument: str, value: Any) -> NDArray[Any]:
    """A NumPy view of an array, a torch tensor or nested lists of numbers; float types keep their dtype.

    torch is recognised by its methods, so that it is never imported; bfloat16 tensors arrive as float32
    (exactly). Objects, strings and complex numbers raise InputTypeError.
    """
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        reject(argument, expected="a rectangular array of numbers", found=str(error), todo="Pad or split it.")
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        reject_type(
            argument,
            expected="an array of real numbers",
            found=f"dtype {array.dtype}",
            todo="Pass a NumPy array, a torch tensor or nested lists of numbers.",
        )
    return array


def at_least_float64(argument: str, value: Any) -> NDArray[Any]:
    """`value` as float64, or as longdouble when it is longdouble already; never changes its input."""
    array = as_array(argument, value)
    wide = np.longdouble if array.dtype == np.longdouble else np.float64
    return array.astype(wide, copy=False)
