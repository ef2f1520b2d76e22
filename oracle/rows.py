"""Attention rows from anywhere, checked once: what is closed, what is undefined, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, at_least_float64, reject

__all__ = [
    "ROW_SUM_SLACK",
    "check_norm",
    "check_norm_values",
    "check_rows",
    "check_sinks",
    "check_visible",
    "row_place",
]

Array = NDArray[Any]

ROW_SUM_SLACK = 0.01


def check_rows(attention: Any, visible: Any = None) -> Array:
    """Rows as float64 (or longdouble), closed to sum to one over visible keys: (..., query, key).

    A row whose visible weights are exactly zero comes back as NaN; weights at keys that are not visible
    come back as zero, whatever they were. A row that sums to one within 0.01 is divided by its sum.
    Raises InputError, naming layer, head and query, for a negative, NaN or infinite weight and for any
    other row sum. The input is never changed.
    """
    rows = at_least_float64("attention", attention)
    if rows.ndim < 2:
        reject(
            "attention",
            expected="an array (..., query, key)",
            found=f"shape {rows.shape}",
            todo="Give a single row as attention[None, :].",
        )
    if visible is not None:
        rows = np.where(check_visible(visible, rows), rows, 0)
    wrong = ~(np.isfinite(rows) & (rows >= 0))
    if wrong.any():
        place = tuple(int(axis) for axis in np.argwhere(wrong)[0])
        reject(
            "attention",
            expected="finite weights of at least zero",
            found=f"{rows[place]} at {row_place(place[:-1])}, key {place[-1]} ({wrong.sum()} in all)",
            todo="Pass rows after the softmax, and mark padding with visible=.",
        )
    with np.errstate(over="ignore"):
        total = rows.sum(axis=-1, keepdims=True)
    off = np.where(total == 0, 0, np.abs(total - 1))
    if off.size and off.max() > ROW_SUM_SLACK:
        place = tuple(int(axis) for axis in np.unravel_index(int(off.argmax()), off.shape))
        many = int((off > ROW_SUM_SLACK).sum())
        reject(
            "attention",
            expected=f"rows that sum to one within {ROW_SUM_SLACK}, or to exactly zero",
            found=f"a sum of {total[place]:.6g} at {row_place(place[:-1])}, the worst of {many}",
            todo="Take rows in eval mode (dropout rescales them), after the softmax, over all visible keys.",
        )
    with np.errstate(invalid="ignore"):
        return rows / total


def check_visible(visible: Any, rows: Array) -> NDArray[np.bool_]:
    """`visible` as booleans that broadcast against rows (..., query, key); its last axis is the key axis."""
    return _mask("visible", visible, rows)


def check_sinks(sink_mask: Any, rows: Array) -> NDArray[np.bool_]:
    """`sink_mask` (key,), or anything that broadcasts against rows (..., query, key), as booleans."""
    return _mask("sink_mask", sink_mask, rows)


def check_norm_values(norms: Array) -> None:
    """Refuse norms that are negative, NaN or infinite."""
    wrong = ~(np.isfinite(norms) & (norms >= 0))
    if wrong.any():
        place = tuple(int(axis) for axis in np.argwhere(wrong)[0])
        reject(
            "norm",
            expected="finite norms of at least zero",
            found=f"{norms[place]} at index {place}",
            todo="Pass the Euclidean norms of the value vectors.",
        )


def check_norm(norm: Any, rows: Array) -> Array:
    """Norms (..., key) as float64 or longdouble, finite and not negative, one for each key of `rows`."""
    norms = at_least_float64("norm", norm)
    fits = norms.ndim and norms.shape[-1] == rows.shape[-1]
    try:
        np.broadcast_shapes(norms.shape[:-1], rows.shape[:-2])
    except ValueError:
        fits = False
    if not fits:
        reject(
            "norm",
            expected=f"(..., key) to go with attention {rows.shape}",
            found=f"shape {norms.shape}",
            todo="Give one norm for each key of each head, such as trace.value_norm.",
        )
    check_norm_values(norms)
    return norms


def row_place(index: tuple[int, ...]) -> str:
    """Words for a row's index (..., layer, head, query): "layer 0, head 3, query 7"."""
    names = ("text", "layer", "head", "query")
    known = names[len(names) - len(index) :] if len(index) <= len(names) else None
    return ", ".join(f"{n} {i}" for n, i in zip(known, index, strict=True)) if known else f"row {index}"


def _mask(argument: str, mask: Any, rows: Array) -> NDArray[np.bool_]:
    array = as_array(argument, mask)
    if not np.isin(array, (0, 1)).all():
        found = array[~np.isin(array, (0, 1))].flat[0]
        reject(
            argument,
            expected="True or False, or 1 or 0",
            found=f"{found}",
            todo="Pass a boolean mask, not positions.",
        )
    try:
        # The key axis is never stretched: sink_mask=[0] is a position, and would silently mean "no sink".
        fits = (
            array.shape[-1:] == rows.shape[-1:] and np.broadcast_shapes(array.shape, rows.shape) == rows.shape
        )
    except ValueError:
        fits = False
    if not fits:
        reject(
            argument,
            expected=f"a shape that broadcasts against (..., query, key) = {rows.shape}",
            found=f"shape {array.shape}",
            todo="Give a mask over keys (key,) or over (query, key).",
        )
    return array.astype(bool)
