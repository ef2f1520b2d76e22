"""What a prediction is worth beside an observation: confirmed, failed, or not made at all."""

from __future__ import annotations

import math
from typing import NamedTuple

from validation.audit.rule import MIN_TRIPLES, Floor
from validation.prediction.frozen import Predictor
from validation.prediction.statistics import Statistics

__all__ = ["ABSTAINED", "CONFIRMED", "FAILED", "RULES", "Judged", "Prediction", "judge_rate", "predict_rate"]

CONFIRMED, ABSTAINED, FAILED = "confirmed", "abstained", "failed"

RULES = (
    "abstained: a statistic lies outside the fitted range or is undefined; or there is no floor (fewer than "
    "two texts) or it is above 25%; or fewer than 100 triples; or the predicted rate is not above the worst "
    "split-half floor under keep, or not above its own tolerance; or the metric was frozen as not predicted",
    "confirmed: the observed rate is within the tolerance of the predicted one (absolute)",
    "failed: it is not",
)

# Of the median, as it was frozen with the predictor: a rule that is changed later tests nothing. An audit has
# another (`rule.FLOOR_TOO_HIGH`, of the worst split), as a high floor hides an effect from what is
# called safe; a prediction has to stand above the worst split in any case.
_FLOOR_TOO_HIGH = 0.25


class Prediction(NamedTuple):
    """A predicted rate (NaN if a statistic is undefined); `why_not` says why it is withheld, or is ""."""

    rate: float
    tolerance: float
    why_not: str = ""


class Judged(NamedTuple):
    """One metric: what was predicted from keep alone, then what was seen, and the verdict."""

    metric: str
    prediction: Prediction
    observed: float
    floors: tuple[Floor, Floor]  # keep, drop
    law: float  # arccos(rho) / pi, mean over the anchors; nothing of it was fitted
    triples: int
    verdict: str


def predict_rate(
    predictor: Predictor, metric: str, statistics: Statistics, floor: Floor, triples: int
) -> Prediction:
    """Predict the flip rate of `metric`; `floor` is that under keep. Nothing under drop is looked at."""
    fitted = predictor.metrics[metric]
    outside = predictor.outside(statistics)
    rate = predictor.rate(metric, statistics)
    return Prediction(
        rate, fitted.tolerance, _why_not(fitted.useful, outside, rate, fitted.tolerance, floor, triples)
    )


def judge_rate(prediction: Prediction, observed: float) -> str:
    """CONFIRMED, ABSTAINED or FAILED, as RULES say."""
    if prediction.why_not or math.isnan(observed):
        return ABSTAINED
    return CONFIRMED if abs(observed - prediction.rate) <= prediction.tolerance else FAILED


def _why_not(
    useful: bool, outside: tuple[str, ...], rate: float, tolerance: float, floor: Floor, triples: int
) -> str:
    if not useful:
        return "no better than a mean rate when it was fitted"
    if outside:
        return f"outside the fitted range: {', '.join(outside)}"
    if not len(floor.known):
        return "no floor: fewer than two texts"
    if floor.median > _FLOOR_TOO_HIGH:
        return f"the floor is above {_FLOOR_TOO_HIGH:.0%}"
    if triples < MIN_TRIPLES:
        return f"fewer than {MIN_TRIPLES} triples"
    if rate <= floor.high:
        return "not above the floor"
    return "not above its own tolerance" if rate <= tolerance else ""
