"""What a law or a check returns: how far something is off, and how far rounding may take it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Finding", "LawBroken", "deviation", "size_of"]


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
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return float("inf"), f"shape {found.shape} instead of {wanted.shape}"
    if not found.size:
        return 0.0, ""
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0, np.abs(np.subtract(found, wanted))) / size
    off = np.where(np.isnan(off), np.inf, off)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    return float(off[worst]), f"index {tuple(map(int, worst))}: {found[worst]} instead of {wanted[worst]}"


def size_of(array: Any) -> float:
    """The largest finite magnitude in an array; one where there is none, or only zeros."""
    magnitudes = np.abs(np.asarray(array))
    largest = float(magnitudes[np.isfinite(magnitudes)].max(initial=0))
    return largest or 1.0
