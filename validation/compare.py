"""One comparison for every check: shape, dtype, where NaN and infinity stand, then the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array

__all__ = ["Comparison", "compare"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """How far `found` is from `expected`. Measured errors are NaN where the shapes or NaN differ.

    `max_relative` leaves out places where both are zero and is infinite where only `expected` is. ULPs are
    distances in units of the spacing, at `expected`, of the less precise of the two dtypes. `worst` is the
    place whose error is the largest part of what it is allowed; None where nothing differs.
    """

    shape_ok: bool
    dtype_ok: bool
    special_ok: bool  # NaN and infinities of each sign stand at the same places
    max_absolute: float
    max_relative: float
    max_ulps: float
    rms: float
    worst: tuple[int, ...] | None
    expected: float | None  # the value at `worst`
    found: float | None
    ulps: float  # at `worst`
    used: float  # the error at `worst` over what it is allowed: within the bound up to one
    within: bool
    message: str


def compare(
    expected: Any,
    found: Any,
    *,
    absolute: float | None = None,
    relative: float | None = None,
    scale: Any = None,
    same_dtype: bool = False,
) -> Comparison:
    """Compare two arrays of one shape, in float64 (longdouble where one of them is longdouble or integer).

    A value is within its bound when |found - expected| <= absolute + relative * scale, where `scale` is
    |expected| unless an array that broadcasts is given (a row's norm, say); without any bound values must be
    equal. `same_dtype` asks for equal dtypes too. Infinities of one sign are equal, and so are NaN, and two
    arrays of one shape without elements. What fails first is the message; nothing after it is measured.
    """
    first, second = as_array("expected", expected), as_array("found", found)
    if first.shape != second.shape:
        return _refused(False, True, True, f"shape: expected {first.shape}, found {second.shape}")
    if same_dtype and first.dtype != second.dtype:
        return _refused(True, False, True, f"dtype: expected {first.dtype}, found {second.dtype}")
    wide = np.result_type(np.float64, *(_widened(array.dtype) for array in (first, second)))
    coarse = min((first.dtype, second.dtype), key=_precision)
    first, second = first.astype(wide, copy=False), second.astype(wide, copy=False)
    finite = np.isfinite(first) & np.isfinite(second)
    misplaced = ~finite & ~((first == second) | (np.isnan(first) & np.isnan(second)))
    if misplaced.any():
        place = _place(misplaced)
        at = f"expected {first[place]}, found {second[place]} ({misplaced.sum()} such places)"
        return _refused(True, True, False, f"NaN or infinity at {place}: {at}")
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(finite, np.abs(second - first), 0)
    if not error.any():
        return Comparison(True, True, True, 0, 0, 0, 0, None, None, None, 0, 0, True, "equal")
    size = np.where(finite, np.abs(first), 0)
    unit = size if scale is None else as_array("scale", scale)
    allowed = np.broadcast_to((absolute or 0) + (relative or 0) * unit, size.shape)
    used = _over(error, allowed)
    place = _place(used if absolute or relative else error)
    within = bool((error <= allowed).all())
    steps = _over(error, _spacing(size, coarse))
    e, f, ulps, largest = first[place], second[place], float(steps[place]), error.max()
    message = (
        f"{'within' if within else 'outside'} its bound: worst at {place}, expected {e!s}, found {f!s}, "
        f"{ulps:.3g} ULPs of {coarse}; largest error {float(largest):.3g}"
    )
    return Comparison(
        shape_ok=True,
        dtype_ok=True,
        special_ok=True,
        max_absolute=float(largest),
        max_relative=float(_over(error, size).max()),
        max_ulps=float(steps.max()),
        rms=float(largest * np.sqrt(np.square(error / largest).sum() / finite.sum())),
        worst=place,
        expected=float(e),
        found=float(f),
        ulps=ulps,
        used=float(used[place]),
        within=within,
        message=message,
    )


def _refused(shape: bool, dtype: bool, special: bool, message: str) -> Comparison:
    nan = float("nan")
    return Comparison(shape, dtype, special, nan, nan, nan, nan, None, None, None, nan, nan, False, message)


def _widened(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A float dtype that holds every value: 64-bit integers need the wider significand."""
    if dtype.kind in "iu" and dtype.itemsize >= 8:
        return np.dtype(np.longdouble)
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def _precision(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Bits after the leading one, and the smallest normal exponent; integers are exact."""
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        return int(limits.nmant), int(limits.minexp)
    return (7, -126) if dtype.name == "bfloat16" else (10_000, 0)


def _spacing(size: Array, coarse: np.dtype[Any]) -> Array:
    """The distance from each value to the next one of dtype `coarse`; one for integers."""
    bits, smallest = _precision(coarse)
    if coarse.kind in "iub":
        return np.ones_like(size)
    exponent = np.where(size == 0, smallest, np.maximum(np.frexp(size)[1] - 1, smallest))
    return np.ldexp(size.dtype.type(1), exponent - bits)


def _over(error: Array, allowed: Array) -> Array:
    """The quotient, infinite past the largest float; 0 / 0 = 0, as no error needs no allowance."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(error == 0, 0, error / allowed)


def _place(values: Array) -> tuple[int, ...]:
    """Index of the largest value, the first of equals."""
    return tuple(int(index) for index in np.unravel_index(int(np.argmax(values)), values.shape))
