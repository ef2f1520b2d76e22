"""Seeded pairs of rows, for what compares a row with another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.rows import check_visible
from validation.cases import DTYPES, Case, bad_row_cases, positions, row_cases
from validation.random_rows import closed_rows

__all__ = ["bad_pair_cases", "pair_cases"]

Array = NDArray[Any]


def pair_cases() -> Iterator[Case]:
    """Pairs of rows: those of `row_cases` with their roots closed, heads that broadcast, and two dtypes."""
    for number, case in enumerate(row_cases()):
        given = dict(case.arguments)
        rows = given.pop("attention")
        given.pop("norm", None)
        pair = (rows, _flattened(rows, given.get("visible")))[:: 1 if number % 2 else -1]
        yield Case(case.name, {"x": pair[0], "y": pair[1], **given})
    for dtype in DTYPES:
        x, y = (
            closed_rows(np.random.default_rng(9), shape).astype(dtype) for shape in ((3, 1, 5, 7), (2, 5, 7))
        )
        yield Case(f"heads that broadcast, {dtype}", {"x": x, "y": y, "sink_mask": positions(7, 0)})
    for dtypes in permutations(DTYPES, 2):
        rng = np.random.default_rng(11)  # so many keys that float32 shows
        x, y = (closed_rows(rng, (2, 5, 400)).astype(dtype) for dtype in dtypes)
        yield Case(f"{dtypes[0]} and {dtypes[1]}", {"x": x, "y": y, "sink_mask": positions(400, 0)})


def bad_pair_cases() -> Iterator[Case]:
    """Pairs of which one side must be refused, by its own name, or both together."""
    good = closed_rows(np.random.default_rng(5), (2, 3, 5, 7))
    for case in bad_row_cases():
        given = dict(case.arguments)
        rows = given.pop("attention")
        if "norm" not in given:
            yield Case(f"x: {case.name}", {"x": rows, "y": good, **given})
            yield Case(f"y: {case.name}", {"x": good, "y": rows, **given})
            yield Case(f"both: {case.name}", {"x": rows, "y": rows, **given})
    for shape in ((2, 3, 5, 8), (2, 3, 4, 7), (4, 5, 7)):
        rows = closed_rows(np.random.default_rng(6), shape)
        yield Case(f"y of shape {shape}", {"x": good, "y": rows, "sink_mask": positions(7, 0)})


def _flattened(rows: Array, visible: Any) -> Array:
    """The roots of the visible weights, closed, in the dtype of the rows; a row without any stays."""
    seen = True if visible is None else check_visible(visible, rows)
    roots = np.sqrt(np.where(seen, rows, 0).astype(np.float64))
    total = roots.sum(axis=-1, keepdims=True)
    return np.divide(roots, total, out=np.zeros_like(roots), where=total > 0).astype(rows.dtype)
