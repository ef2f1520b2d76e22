"""A second look at the rows that a kernel found odd: what the oracle refuses is refused in its words.

What it takes and the kernel could not hold is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import (
    InputError,
    InputTypeError,
    check_key_range,
    check_mask,
    first_place,
    reject_row_sum,
    reject_weight,
    row_sum_slack,
)
from oracle._results import KeyRange

__all__ = ["refuse_wrong_rows", "rows_first", "share_again"]

_AT_ONCE = 1024  # rows widened together: even where all are odd, the second look needs little memory


def refuse_wrong_rows(argument: str, rows: NDArray[Any], visible: Any, odd: NDArray[np.bool_]) -> None:
    """Raise the oracle's InputError for the odd rows (..., query), unless their oddity is a mere -0.0.

    Weights that need not sum to one ("weights") may also be NaN in a whole row.
    """
    places = np.argwhere(odd)
    total, first, count = np.empty(len(places)), None, 0
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        found = rows[tuple(some.T)].astype(np.float64)  # (odd row, key)
        seen = _seen(visible, rows.shape, some)
        found = np.where(seen, found, 0)
        wrong = ~(np.isfinite(found) & (found >= 0))
        if argument == "weights":
            wrong &= ~(np.isnan(found) | ~seen).all(axis=-1, keepdims=True)
        if wrong.any():
            row, key = first_place(wrong)
            first = first or (found[row, key], _index(some[row]), key)
            count += int(wrong.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            total[start : start + _AT_ONCE] = found.sum(axis=-1)
    if first is not None:
        reject_weight(argument, *first, count)
    if argument != "weights":
        off = np.where(total == 0, 0, np.abs(total - 1))
        slack = row_sum_slack(rows.dtype)
        if off.max(initial=0) > slack:
            worst = int(off.argmax())
            reject_row_sum(total[worst], _index(places[worst]), int((off > slack).sum()), argument)


@contextmanager
def rows_first(visible: Any, **named: NDArray[Any]) -> Iterator[None]:
    """Blame wrong rows, in their order, before anything that is refused inside: the oracle reads them first.

    A kernel finds wrong rows as it goes, once all else was read; `visible` was checked before.
    """
    try:
        yield
    except (InputError, InputTypeError):
        for argument, rows in named.items():
            refuse_wrong_rows(argument, rows, visible, np.ones(rows.shape[:-1], dtype=bool))
        raise


def share_again(
    rows: NDArray[Any], sink_mask: Any, visible: Any, odd: NDArray[np.bool_], out: NDArray[np.float64]
) -> None:
    """Put the shares of the odd rows into `out`, whose weights are finite but may have too large a sum.

    Each row over its largest weight, in float64.
    """
    places = np.argwhere(odd)
    sinks = np.broadcast_to(check_mask("sink_mask", sink_mask, rows.shape), rows.shape)
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        found = rows[tuple(some.T)].astype(np.float64)
        found = np.where(_seen(visible, rows.shape, some), found, 0)
        with np.errstate(invalid="ignore"):  # rows of nothing but zeros, or of nothing but NaN
            found /= found.max(axis=-1, keepdims=True)
            share = np.where(sinks[tuple(some.T)], found, 0).sum(axis=-1) / found.sum(axis=-1)
        out[tuple(some.T)] = share


def _seen(visible: Any, shape: tuple[int, ...], places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which keys the odd rows see, (odd row, key)."""
    if visible is None:
        return np.ones((len(places), shape[-1]), dtype=bool)
    if isinstance(visible, KeyRange):
        start, stop = check_key_range(visible, shape)
        keys, queries = np.arange(shape[-1]), places[:, -1]
        return (start[queries, None] <= keys) & (keys < stop[queries, None])
    return np.broadcast_to(np.asarray(visible, dtype=bool), shape)[tuple(places.T)]


def _index(place: NDArray[np.intp]) -> tuple[int, ...]:
    return tuple(int(axis) for axis in place)
