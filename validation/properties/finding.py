"""What a law or a check returns: how far something is off, and how far rounding may take it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from validation.compare import compare

__all__ = ["Finding", "LawBroken", "deviation", "rounding", "size_of"]


class LawBroken(AssertionError):
    """An implementation broke a law; the message says which, by how much and where."""


class Finding(NamedTuple):
    """How far an implementation is off, and what is allowed. Whatever cannot be measured is infinity."""

    law: str
    error: float
    bound: float
    place: str = ""

    @property
    def ok(self) -> bool:
        """Whether the law holds; an error that is NaN does not."""
        return self.error <= self.bound

    def require(self) -> None:
        """Raise LawBroken unless the law holds."""
        if not self.ok:
            where = f" at {self.place}" if self.place else ""
            raise LawBroken(f"{self.law}: off by {self.error:.3g}{where}, allowed {self.bound:.3g}")


def deviation(found: Any, wanted: Any, size: Any = 1.0) -> tuple[float, str]:
    """Largest |found - wanted| / size and where it is; infinity for another shape or NaNs in other places.

    `size` is a number or broadcasts against both; it turns absolute into relative errors.
    """
    result = compare(wanted, found, relative=1, scale=size)
    if np.isnan(result.used):
        return float("inf"), result.message
    if result.worst is None:
        return 0.0, ""
    return result.used, f"index {result.worst}: {result.found} instead of {result.expected}"


def rounding(count: int, epsilon: float) -> float:
    """What sums of `count` terms may lose on numbers of size one: 4 epsilon a term, and 16 more.

    A sum of n terms is off by at most n epsilon; the factor covers the sums on both sides of a
    quotient in both of the things compared, the 16 the products and quotients around them.
    """
    return (4 * count + 16) * float(epsilon)


def size_of(array: Any) -> float:
    """The largest finite magnitude in an array; one where there is none, or only zeros."""
    magnitudes = np.abs(np.asarray(array))
    largest = float(magnitudes[np.isfinite(magnitudes)].max(initial=0))
    return largest or 1.0
