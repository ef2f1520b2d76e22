"""Distances of closed weights over the last axis, as sums that lose nothing where two rows are close.

Each takes x and y (..., part), non-negative and summing to one, which broadcast; 0 ln 0 = 0, and a part that
is zero in both adds nothing. NaN in, NaN out. The difference x - y of close weights is exact in floating
point, and every formula below is written in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIVERGENCES", "cosine", "hellinger", "jsd", "l1", "log_ratio", "root_jsd"]

Array = NDArray[Any]


def _over(x: Array, whole: Array) -> Array:
    """X / whole, and 0 where whole is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole == 0, 0, x / whole)


def log_ratio(x: Array, y: Array) -> Array:
    """ln(x / y) of positive numbers to full relative accuracy; exactly -ln(y / x)."""
    t = _over(x - y, x + y)
    near = np.abs(t) <= 1 / 3
    larger, smaller = np.maximum(x, y), np.minimum(x, y)
    with np.errstate(over="ignore"):
        quotient = larger / smaller
    far = np.where(np.isinf(quotient), np.log(larger) - np.log(smaller), np.log(quotient))
    return np.where(near, 2 * np.arctanh(np.where(near, t, 0)), np.copysign(far, t))


def jsd(x: Array, y: Array) -> Array:
    """Jensen-Shannon divergence in nats, [0, ln 2] (Lin 1991, equation 3.4 with equal weights).

    With m = (x + y) / 2 and t = (x - y) / (x + y) a part adds m/2 [(1+t) ln(1+t) + (1-t) ln(1-t)], which is
    never negative; for small t that is m/2 [ln(1 - t²) + 2 t artanh t], where nothing large cancels.
    """
    both = x + y
    t = _over(x - y, both)
    small = np.where(np.abs(t) > 0.5, 0, t)  # a NaN stays
    close = np.log1p(-small * small) + 2 * small * np.arctanh(small)
    far = _times_log(_over(2 * x, both)) + _times_log(_over(2 * y, both))
    parts = both * np.where(np.abs(t) > 0.5, far, close)
    return np.minimum(parts.sum(axis=-1) / 4, np.log(parts.dtype.type(2)))


def _times_log(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x == 0, 0, x * np.log(x))


def root_jsd(x: Array, y: Array) -> Array:
    """Root of the Jensen-Shannon divergence, [0, sqrt(ln 2)], a metric (Endres and Schindelin 2003)."""
    return np.sqrt(jsd(x, y))


def hellinger(x: Array, y: Array) -> Array:
    """Hellinger distance sqrt(1/2 sum (sqrt x - sqrt y)²), [0, 1]."""
    difference = _over(x - y, np.sqrt(x) + np.sqrt(y))
    return np.minimum(np.sqrt((difference * difference).sum(axis=-1) / 2), 1)


def l1(x: Array, y: Array) -> Array:
    """Sum of the absolute differences, [0, 2]: twice the total variation distance."""
    return np.minimum(np.abs(x - y).sum(axis=-1), 2)


def cosine(x: Array, y: Array) -> Array:
    """1 - cos of the angle between x and y, [0, 1].

    It is half the squared difference of the unit vectors, and that difference times ‖x‖ ‖y‖ is
    [(x - y)(‖x‖ + ‖y‖) - (x + y)(‖x‖ - ‖y‖)] / 2, with ‖x‖ - ‖y‖ = (x - y)·(x + y) / (‖x‖ + ‖y‖).
    """
    lengths = [np.sqrt((row * row).sum(axis=-1, keepdims=True)) for row in (x, y)]
    difference, both = x - y, x + y
    length = lengths[0] + lengths[1]
    longer = (difference * both).sum(axis=-1, keepdims=True) / length
    units = (difference * length - both * longer) / (2 * lengths[0] * lengths[1])
    return np.minimum((units * units).sum(axis=-1) / 2, 1)


DIVERGENCES: dict[str, Callable[[Array, Array], Array]] = {
    "cosine": cosine,
    "jsd": jsd,
    "root_jsd": root_jsd,
    "hellinger": hellinger,
    "l1": l1,
}
