"""Least squares on the logit of a flip rate, and what is left of it when observations are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from validation.prediction.statistics import Statistics

__all__ = ["RULE", "Fit", "Observation", "fit_rates", "predicted_rate"]

Array = NDArray[Any]

RULE = (
    "tolerance: twice the larger root mean square of the errors in the flip rate when a variant is left out "
    "and when a group of layers is left out, rounded up to a whole per cent, at least 2%; a metric for "
    "which that larger error is no smaller than that of the mean rate, left out the same way, is not "
    "predicted at all"
)
_LEAST_TOLERANCE = 0.02


class Observation(NamedTuple):
    """What was seen of one group of heads on texts of one length; `flipped` and `triples` by metric."""

    variant: str
    layers: str
    length: str
    statistics: Statistics
    flipped: dict[str, int]
    triples: dict[str, int]


class Fit(NamedTuple):
    """One metric: the constant and a coefficient for each feature, and how well rates are predicted.

    `left_out` (observation, 2) are predictions with the variant, and with the group of layers, left out.
    """

    coefficients: Array  # (5,)
    observed: Array  # (observation,)
    fitted: Array
    left_out: Array
    error: float  # the larger root mean square of the two
    error_of_mean: float  # the same of the mean rate
    tolerance: float

    @property
    def useful(self) -> bool:
        """Whether it is better than the mean rate."""
        return self.error < self.error_of_mean


def predicted_rate(coefficients: Array, features: Array) -> Array:
    """The flip rate that the linear form gives, (...,) of `features` (..., feature), between 0 and 1."""
    logit = coefficients[0] + features @ coefficients[1:]
    return 1 / (1 + np.exp(-logit))


def fit_rates(observations: Sequence[Observation], metric: str) -> Fit:
    """Fit one metric to all observations, each with the same weight.

    A rate is taken as (flipped + 1/2) / (triples + 1), so that its logit is finite.
    """
    features = np.array([one.statistics.features() for one in observations])
    counts = np.array([(one.flipped[metric], one.triples[metric]) for one in observations], dtype=np.float64)
    rates = (counts[:, 0] + 0.5) / (counts[:, 1] + 1)
    groupings = [[getattr(one, name) for one in observations] for name in ("variant", "layers")]
    splits = [
        [np.array([name == left for name in names]) for left in dict.fromkeys(names)] for names in groupings
    ]
    left_out, mean_left_out = np.empty((2, len(rates), 2))
    for way, masks in enumerate(splits):
        for out in masks:
            left_out[out, way] = predicted_rate(_solve(features[~out], rates[~out]), features[out])
            mean_left_out[out, way] = rates[~out].mean()
    coefficients = _solve(features, rates)
    error, of_mean = (_error(found, rates) for found in (left_out, mean_left_out))
    tolerance = max(_LEAST_TOLERANCE, math.ceil(200 * error) / 100)
    fitted = predicted_rate(coefficients, features)
    return Fit(coefficients, rates, fitted, left_out, error, of_mean, tolerance)


def _solve(features: Array, rates: Array) -> Array:
    design = np.column_stack([np.ones(len(features)), features])
    return np.linalg.lstsq(design, np.log(rates / (1 - rates)), rcond=None)[0]


def _error(left_out: Array, rates: Array) -> float:
    return float(np.sqrt(((left_out - rates[:, None]) ** 2).mean(axis=0)).max())
