"""Calls of the distances between heads that must be refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import KeyRange
from validation.cases import DTYPES, Case, positions
from validation.random_rows import closed_rows

__all__ = ["bad_clark_cases", "bad_distance_cases", "bad_head_cases"]

Array = NDArray[Any]


def bad_distance_cases() -> Iterator[Case]:
    """Calls of `distance_sums` that must be refused."""
    rows = closed_rows(np.random.default_rng(22), (2, 3, 5, 7))
    given = {"rows": rows, "sink_mask": positions(7, 0)}
    for name, change in _bad_rows(rows).items():
        yield Case(name, {**given, "rows": change})
    other = closed_rows(np.random.default_rng(23), (2, 3, 4, 6))
    spoiled = other.copy()
    spoiled[1, 2, 3, 4] = -0.5
    two = {"rows": [rows, spoiled], "sink_mask": [positions(7, 0), positions(6, 1)]}
    yield Case("a weight below zero in the second text", two)
    holes = rows.copy()
    holes[0, 1, 2, 3] = holes[1, 0, 4, 5] = 0
    holes /= holes.sum(axis=-1, keepdims=True)
    no_sink = holes.copy()
    no_sink[0, 1, 1, :1] = 0
    no_sink /= no_sink.sum(axis=-1, keepdims=True)
    two_holes = no_sink.copy()
    two_holes[1, 1, 4, 2:4] = 0
    two_holes /= two_holes.sum(axis=-1, keepdims=True)
    scores = np.log(rows)
    lost = scores.copy()
    lost[1, 0, 2, 3] = lost[1, 1, 0, 0] = -np.inf
    changes: Mapping[str, Mapping[str, Any]] = {
        "zeros": {"rows": holes},
        "zeros, the first in a sink": {"rows": no_sink},
        "zeros in the second text": {"rows": [rows, no_sink]},
        "zeros, the aitchison sink alone": {"rows": holes, "metrics": "aitchison_sink"},
        "a delta that leaves nothing": {"rows": two_holes, "zeros": "replace", "delta": 0.5},
        "a delta that leaves less": {"rows": [rows, two_holes], "zeros": "replace", "delta": 0.75},
        "no delta": {"zeros": "replace"},
        "a delta for nothing": {"delta": 1e-3},
        "a delta of one": {"zeros": "replace", "delta": 1.0},
        "an unknown choice for zeros": {"zeros": "ignore"},
        "an unknown metric": {"metrics": ["jsd", "manhattan"]},
        "an unknown convention": {"conventions": "forget"},
        "the sink term without the sink": {"metrics": "aitchison_sink", "conventions": "drop"},
        "scores of minus infinity": {"scores": lost},
        "scores of another shape": {"scores": scores[:, :, 1:]},
        "scores in the second text": {"rows": [rows, rows], "scores": [scores, lost]},
        "queries by position": {"queries": [0, 2]},
        "queries of another length": {"queries": np.ones(6, bool)},
        "no texts": {"rows": []},
        "other heads in the second text": {"rows": [rows, rows[:, :2]]},
        "a list of masks for another number": {"rows": [rows, rows], "sink_mask": [positions(7, 0)] * 3},
        "one matrix": {"rows": rows[0, 0]},
        "five axes": {"rows": rows[None]},
        "sinks of another length": {"sink_mask": np.ones(6, bool)},
        "a mask for each head": {"visible": np.ones((3, 5, 7), bool)},
        "a range too short": {"visible": KeyRange(np.zeros(4, int), np.ones(4, int))},
    }
    for name, change in changes.items():
        yield Case(name, {**given, **change})


def bad_head_cases() -> Iterator[Case]:
    """Calls of `head_distances` that must be refused."""
    for case in bad_distance_cases():
        given = dict(case.arguments)
        given["metric"] = given.pop("metrics", "aitchison")
        given["convention"] = given.pop("conventions", "keep")
        if isinstance(given["metric"], str):
            yield Case(case.name, given)


def bad_clark_cases() -> Iterator[Case]:
    """Calls of `clark2019_distances` that must be refused."""
    rows = closed_rows(np.random.default_rng(22), (2, 3, 5, 7))
    for name, change in _bad_rows(rows).items():
        yield Case(name, {"rows": change})
    yield Case("queries of another length", {"rows": rows, "queries": np.ones(6, bool)})
    yield Case("a mask of another length", {"rows": rows, "visible": np.ones(6, bool)})


def _bad_rows(rows: Array) -> dict[str, Any]:
    """Rows (2, 3, 5, 7) that no distance is taken of, by what is wrong with them."""
    wrong: dict[str, Any] = {"text instead of rows": [["a", "b"]], "ragged rows": [[0.5, 0.5], [1.0]]}
    for dtype in DTYPES:
        for value in (-0.25, np.nan, np.inf):
            spoiled = rows.astype(dtype)
            spoiled[1, 2, 3, 4] = spoiled[1, 2, 4, 1] = value
            wrong[f"a weight of {value}, {dtype}"] = spoiled
        off = rows.astype(dtype)
        off[0, 1, 2] *= off.dtype.type(1.03125)
        off[1, 0, 3] *= off.dtype.type(0.9375)
        wrong[f"a sum off, {dtype}"] = off
    return wrong
