"""Wrong verdicts: triples of two distance matrices counted with one mistake each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import VerdictFlips
from validation.mutants.kinds import Mutant, instead
from validation.properties import Implementation

__all__ = ["VERDICT_MUTANTS"]

Array = NDArray[Any]
Apply = Callable[[Implementation], Implementation]
Signs = tuple[Array, Array]  # of d(a, b) - d(a, c) in each matrix, (anchor, b, c), zero for a tie


def _gaps(matrix: Array) -> Array:
    """d(a, b) - d(a, c), (anchor, b, c)."""
    return matrix[:, :, None] - matrix[:, None, :]


def _signs(matrix: Array, tie: float = 1e-12) -> Array:
    size = np.maximum(np.abs(matrix[:, :, None]), np.abs(matrix[:, None, :]))
    gaps = _gaps(matrix)
    return np.where(np.abs(gaps) <= tie * size, 0, np.sign(gaps))


def _counted(
    flip: Callable[[Array, Array], Array],
    judged: Callable[[Array, Array], Any] | None = None,
    tie: float = 1e-12,
) -> Apply:
    """Flips by another rule on the signs, over the triples that `judged` (all, if None) lets through."""

    def wrong(
        true: Any, first: Array, second: Array, groups: Any = None, margin: float = 0.0
    ) -> VerdictFlips:
        heads = np.arange(len(first))
        a, b, c = np.meshgrid(heads, heads, heads, indexing="ij")
        triple = (b < c) & (a != b) & (a != c)
        if groups is not None:
            same = np.asarray(groups)[:, None] == np.asarray(groups)
            triple &= same[:, :, None] & same[:, None, :]
        known = triple & ~np.isnan(_gaps(first)) & ~np.isnan(_gaps(second))
        kept = known & (True if judged is None else judged(first, second))
        signs = _signs(first, tie), _signs(second, tie)
        flips, each = (flip(*signs) & kept).sum(axis=(1, 2)), kept.sum(axis=(1, 2))
        tied = int((((signs[0] == 0) | (signs[1] == 0)) & kept).sum())
        with np.errstate(invalid="ignore"):
            per_anchor, rate = flips / each, float(flips.sum() / each.sum())
        undefined = int(triple.sum() - known.sum())
        return VerdictFlips(rate, per_anchor, int(flips.sum()), int(each.sum()), tied, undefined)

    return instead("verdict_flips", wrong)


def _opposite(first: Array, second: Array) -> Array:
    return first * second < 0


def _each_set_once(first: Array, second: Array) -> Array:
    """Only the smallest head of three as anchor."""
    heads = np.arange(len(first))
    return (heads[:, None, None] < heads[:, None]) & (heads[:, None, None] < heads)


def _margin_of(typical: Callable[..., Any]) -> Apply:
    """Margins over another typical distance of the anchor, itself included or not."""

    def wrong(
        true: Any, first: Array, second: Array, groups: Any = None, margin: float = 0.0
    ) -> VerdictFlips:
        def clear(*matrices: Array) -> Any:
            bars = [margin * typical(matrix)[:, None, None] for matrix in matrices]
            return np.all(
                [np.abs(_gaps(matrix)) > bar for matrix, bar in zip(matrices, bars, strict=True)], axis=0
            )

        return _counted(_opposite, clear)(Implementation()).verdict_flips(first, second, groups, margin)

    return instead("verdict_flips", wrong)


def _others(matrix: Array) -> Array:
    """Distances to the other heads, the diagonal NaN."""
    return np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)


def _zero_for_nan(true: Any, first: Array, second: Array, *others: Any) -> VerdictFlips:
    return true(np.nan_to_num(first), np.nan_to_num(second), *others)


def _groups_ignored(true: Any, first: Array, second: Array, groups: Any = None, margin: float = 0.0) -> Any:
    return true(first, second, None, margin)


def _ranks(true: Any, first: Array, second: Array) -> Array:
    """The correlation of ranks for that of distances."""
    ordered = [
        np.argsort(np.argsort(_others(matrix), axis=1), axis=1).astype(float) for matrix in (first, second)
    ]
    return true(*ordered)


def _own_distance(true: Any, first: Array, second: Array) -> Array:
    """The zero distance of a head from itself among the others."""
    rho = [np.corrcoef(u, v)[0, 1] for u, v in zip(first, second, strict=True)]
    return np.arccos(rho) / np.pi


VERDICT_MUTANTS = tuple(
    Mutant(name, "distance", trial, apply)
    for name, trial, apply in (
        ("NaN taken for zero", "flips by brute force", instead("verdict_flips", _zero_for_nan)),
        ("each three heads once", "flips by brute force", _counted(_opposite, _each_set_once)),
        ("groups ignored", "flips within groups", instead("verdict_flips", _groups_ignored)),
        ("margin by the mean", "flips with margins", _margin_of(lambda m: np.nanmean(_others(m), axis=1))),
        ("margin with own distance", "flips with margins", _margin_of(lambda m: np.nanmedian(m, axis=1))),
        ("ties counted as flips", "no flips with itself", _counted(lambda u, v: u * v <= 0)),
        ("ties of one matrix flip", "flips are symmetric", _counted(lambda u, v: (u != v) & (u != 0))),
        ("near ones taken for ties", "monotone maps: same flips", _counted(_opposite, tie=0.1)),
        ("flips counted one way", "a reversal flips all", _counted(lambda u, v: (u < 0) & (v > 0))),
        ("rho of ranks", "arccos by loops", instead("gaussian_flip_rate", _ranks)),
        ("own distance in rho", "arccos by loops", instead("gaussian_flip_rate", _own_distance)),
    )
)
"""Mistakes in counting triples and in the closed form beside them."""
