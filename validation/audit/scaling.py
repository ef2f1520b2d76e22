"""Classical multidimensional scaling of a distance matrix, and what its axes go with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject

__all__ = ["AxisFit", "Scaling", "axis_fit", "classical_scaling"]

Array = NDArray[Any]


class Scaling(NamedTuple):
    """Points of a classical scaling to two dimensions, and how much of the distances they hold.

    The shares are of the sum of all absolute eigenvalues, from 0 to 1; NaN where all distances are zero.
    `negative` is the share of the negative ones: what no points in any space can show; 0 for Euclidean
    distances, as what is not above rounding does not count.
    """

    points: Array  # (head, 2), centred; an axis whose eigenvalue is not above rounding is 0
    explained: tuple[float, float]
    negative: float


class AxisFit(NamedTuple):
    """How well the axes give a covariate; NaN where there is nothing to give or to give it with."""

    correlation: float  # Pearson's, with axis 1, -1 to 1; the sign is as arbitrary as the axis's
    r_squared: float  # of the least squares fit on both axes, 0 to 1
    n_heads: int  # heads that have the covariate


def classical_scaling(distances: Array) -> Scaling:
    """Torgerson's scaling of `distances` (head, head), symmetric with a zero diagonal, to two dimensions.

    The points are the leading eigenvectors of -J D² J / 2 (J centres), each times the root of its eigenvalue.
    The axes are as the eigenvectors are, so not arbitrary up to a rotation as those of a stress minimiser;
    their signs are: here the coordinate of each axis that is largest in size is positive. All eigenvalues are
    wanted for the negative share, of which scikit-learn's ClassicalMDS keeps the leading ones only.
    Raises InputError for a matrix with NaN. Torgerson (1952), Psychometrika 17.
    """
    undefined = int(np.count_nonzero(~np.isfinite(distances)))
    if undefined:
        reject(
            "distances",
            expected="a finite distance for every pair of heads",
            found=f"{undefined} that are not",
            todo="Leave out the heads without a distance first.",
        )
    squared = np.asarray(distances, dtype=np.float64) ** 2
    rows, columns = squared.mean(axis=1, keepdims=True), squared.mean(axis=0, keepdims=True)
    values, vectors = np.linalg.eigh((rows + columns - squared - squared.mean()) / 2)
    total = float(np.abs(values).sum())
    rounding = len(values) * np.finfo(np.float64).eps * np.abs(values).max(initial=0)
    points = np.zeros((len(squared), 2))
    explained = [0.0, 0.0] if total else [np.nan, np.nan]
    for axis in range(min(2, len(values))):
        value, vector = values[-1 - axis], vectors[:, -1 - axis]
        if value > rounding:
            upward = 1 if vector[np.abs(vector).argmax()] > 0 else -1
            points[:, axis] = upward * np.sqrt(value) * vector
            explained[axis] = float(value / total)
    negative = float(np.abs(values[values < -rounding]).sum() / total) if total else np.nan
    return Scaling(points, (explained[0], explained[1]), negative)


def axis_fit(points: Array, covariate: Array) -> AxisFit:
    """How `points` (head, 2) go with `covariate` (head,): correlation with axis 1, R² of both axes.

    Heads whose covariate is NaN are left out and not counted. A constant covariate, or fewer than four heads,
    gives NaN; two axes of pure noise give an R² of 2 / (heads - 1) on average.
    """
    has = np.isfinite(covariate)
    if np.count_nonzero(has) < 4:
        return AxisFit(np.nan, np.nan, int(has.sum()))
    wanted, axes = covariate[has], points[has]
    wanted, axes = wanted - wanted.mean(), axes - axes.mean(axis=0)
    spread, along = float(np.linalg.norm(wanted)), np.linalg.norm(axes, axis=0)
    size = float(np.abs(covariate[has]).max())
    if spread <= 1e-12 * size * len(wanted):  # a constant, up to the rounding of its mean
        return AxisFit(np.nan, np.nan, len(wanted))
    correlation = float(wanted @ axes[:, 0] / (spread * along[0])) if along[0] else np.nan
    if not along.any():
        return AxisFit(np.nan, np.nan, len(wanted))
    fitted = axes @ np.linalg.lstsq(axes, wanted, rcond=None)[0]
    return AxisFit(correlation, float((fitted @ fitted) / spread**2), len(wanted))
