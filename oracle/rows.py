"""Attention rows from anywhere, checked once: what is closed, what is undefined, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import (
    as_array,
    at_least_float64,
    check_axes,
    check_key_range,
    check_mask,
    first_place,
    reject_row_sum,
    reject_weight,
    row_sum_slack,
)
from oracle._distance_checks import broadcast_pair, reject_score
from oracle._results import KeyRange

__all__ = [
    "check_row_pair",
    "check_rows",
    "check_scores",
    "check_sinks",
    "check_visible",
    "check_weights",
    "refuse_sums",
]

Array = NDArray[Any]


def check_visible(visible: Any, rows: Array) -> NDArray[np.bool_]:
    """`visible` as booleans that broadcast against rows (..., query, key); its last axis is the key axis.

    A KeyRange comes back as the mask (query, key) that it stands for.
    """
    if not isinstance(visible, KeyRange):
        return check_mask("visible", visible, rows.shape)
    start, stop = check_key_range(visible, rows.shape)
    keys = np.arange(rows.shape[-1])
    return (start[:, None] <= keys) & (keys < stop[:, None])


def check_sinks(sink_mask: Any, rows: Array) -> NDArray[np.bool_]:
    """`sink_mask` (key,), or anything that broadcasts against rows (..., query, key), as booleans."""
    return check_mask("sink_mask", sink_mask, rows.shape)


def check_rows(attention: Any, visible: Any = None, argument: str = "attention") -> Array:
    """Rows as float64 (or longdouble), closed to sum to one over visible keys: (..., query, key).

    A row whose visible weights are exactly zero comes back as NaN; weights at keys that are not visible
    come back as zero, whatever they were. A row that sums to one within 0.01 (0.99 and 1.01 included, up
    to the rounding of its own dtype: `row_sum_slack`) is divided by its sum.
    Raises InputError, naming layer, head and query, for a negative, NaN or infinite weight and for any
    other row sum; `argument` is what it calls the rows. The input is never changed.
    """
    given = as_array(argument, attention)
    rows = _seen_weights(argument, given, visible)
    _refuse_first(argument, rows, ~(np.isfinite(rows) & (rows >= 0)))
    with np.errstate(over="ignore"):
        total = rows.sum(axis=-1, keepdims=True)
    refuse_sums(total[..., 0], given.dtype, argument)
    with np.errstate(invalid="ignore"):
        return rows / total


def check_row_pair(x: Any, y: Any, visible: Any = None) -> tuple[Array, Array]:
    """Two sets of rows as `check_rows` gives them, broadcast against each other: (..., query, key)."""
    arrays = broadcast_pair(x, y)
    first, second = (check_rows(rows, visible, name) for name, rows in zip("xy", arrays, strict=True))
    return first, second


def refuse_sums(total: Array, dtype: np.dtype[Any], argument: str = "attention") -> None:
    """Refuse sums (..., query) of rows that came in `dtype`, unless they are zero or close enough to one."""
    off, slack = np.where(total == 0, 0, np.abs(total - 1)), row_sum_slack(dtype)
    if off.size and off.max() > slack:
        place = tuple(int(axis) for axis in np.unravel_index(int(off.argmax()), off.shape))
        reject_row_sum(total[place], place, int((off > slack).sum()), argument)


def check_weights(weights: Any, visible: Any = None) -> Array:
    """Weights of any sum as float64 or longdouble, zero at keys that are not visible: (..., query, key).

    A row whose visible keys are all NaN passes; negative, infinite or other NaN weights of visible keys raise
    InputError.
    """
    array = _seen_weights("weights", weights, visible)
    lost = np.isnan(array) if visible is None else np.isnan(array) | ~check_visible(visible, array)
    fine = (np.isfinite(array) & (array >= 0)) | lost.all(axis=-1, keepdims=True)
    _refuse_first("weights", array, ~fine)
    return array


def check_scores(scores: Any, visible: Any = None, argument: str = "scores") -> tuple[Array, Array]:
    """Scores before the softmax as float64 or longdouble, and which keys are visible: both (..., query, key).

    The mask broadcasts against the scores; scores at keys that are not visible come back as zero, whatever
    they were. Raises InputError, naming layer, head, query and key, for a visible score that is not finite.
    """
    array = at_least_float64(argument, scores)
    check_axes(argument, array.shape)
    seen = np.ones(array.shape[-1:], dtype=bool) if visible is None else check_visible(visible, array)
    wrong = ~np.isfinite(array) & seen
    if wrong.any():
        place = first_place(wrong)
        reject_score(argument, array[place], place[:-1], place[-1], int(wrong.sum()))
    return np.where(seen, array, 0), seen


def _seen_weights(argument: str, weights: Any, visible: Any) -> Array:
    array = at_least_float64(argument, weights)
    check_axes(argument, array.shape)
    return array if visible is None else np.where(check_visible(visible, array), array, 0)


def _refuse_first(argument: str, array: Array, wrong: NDArray[np.bool_]) -> None:
    if wrong.any():
        place = first_place(wrong)
        reject_weight(argument, array[place], place[:-1], place[-1], int(wrong.sum()))
