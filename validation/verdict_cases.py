"""Seeded inputs for verdicts about distances between heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.cases import Case

__all__ = ["bad_verdict_cases", "verdict_cases"]

Array = NDArray[Any]


def verdict_cases() -> Iterator[Case]:
    """Pairs of distance matrices: random, tied in many ways, with gaps, groups and margins."""
    rng = np.random.default_rng(21)
    groups = {"no groups": None, "three groups": np.array([0, 1, 2, 0, 1, 2, 2, 0, 1, 0, 0])}
    for kind in ("random", "tied", "nearly tied", "with gaps", "whole numbers"):
        for name, labels in groups.items():
            for margin in (0.0, 0.1, 0.5):
                first, second = (_matrix(rng, kind, 11) for _ in range(2))
                given = {"first": first, "second": second, "groups": labels, "margin": margin}
                yield Case(f"{kind}, {name}, margin {margin}, {first.dtype}", given)
    for size in (0, 1, 2, 3):
        first, second = rng.random((2, size, size))
        yield Case(f"{size} heads, float64", {"first": first, "second": second})
    matrix = _matrix(rng, "random", 7)
    wide = np.repeat(matrix, 2, axis=1)[:, ::2]
    for name, second in {
        "the same": matrix,
        "reversed": -matrix,
        "float32": matrix.astype(np.float32),
        "strided": wide,
        "all equal": np.ones((7, 7)),
        "nothing but gaps": np.full((7, 7), np.nan),
    }.items():
        yield Case(f"{name} as second, float64", {"first": matrix, "second": second})


def bad_verdict_cases() -> Iterator[Case]:
    """Calls of `verdict_flips` that must be refused."""
    matrix = np.random.default_rng(24).random((5, 5))
    infinite = matrix.copy()
    infinite[2, 3] = np.inf
    changes: Mapping[str, Mapping[str, Any]] = {
        "not square": {"first": matrix[1:]},
        "another size": {"second": matrix[1:, 1:]},
        "an infinity": {"second": infinite},
        "groups of another length": {"groups": np.zeros(4)},
        "a margin below zero": {"margin": -0.1},
        "a margin of NaN": {"margin": np.nan},
        "words": {"first": [["a"]]},
    }
    for name, change in changes.items():
        yield Case(name, {"first": matrix, "second": matrix, **change})


def _matrix(rng: np.random.Generator, kind: str, size: int) -> Array:
    """Distances (head, head), not symmetric, which a verdict does not ask for."""
    matrix = rng.random((size, size))
    if kind == "tied":
        matrix = np.round(matrix, 1)
    elif kind == "nearly tied":  # around the border of what is tied
        matrix = np.round(matrix, 1) * (1 + rng.uniform(-1.5e-12, 1.5e-12, matrix.shape))
    elif kind == "with gaps":
        matrix[rng.random(matrix.shape) < 0.2] = np.nan
    elif kind == "whole numbers":
        matrix = np.round(5 * matrix).astype(np.int64)
    return matrix
