"""When a prediction is withheld, and the words for the others, by the rules that were frozen with it."""

import math

import numpy as np
import pytest

from validation.audit.rule import Floor
from validation.prediction.frozen import load_predictor
from validation.prediction.judging import Prediction, judge_rate, predict_rate
from validation.prediction.statistics import Statistics

PREDICTOR = load_predictor()
INSIDE = Statistics(0.5, 0.2, 0.6, 40.0)
LOW = Floor(np.array([0.01, 0.02, 0.03]))


def predicted(metric="jsd", statistics=INSIDE, floor=LOW, triples=1000, predictor=PREDICTOR):
    return predict_rate(predictor, metric, statistics, floor, triples)


def test_a_prediction_has_the_frozen_rate_and_tolerance():
    found = predicted()
    assert found.why_not == ""
    assert found.rate == PREDICTOR.rate("jsd", INSIDE)
    assert 0.2 < found.rate < 0.4
    assert found.tolerance == PREDICTOR.metrics["jsd"].tolerance == 0.08


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"statistics": INSIDE._replace(sink_share=0.99)}, "outside the fitted range: sink_share"),
        ({"statistics": INSIDE._replace(content_keys=500.0)}, "outside the fitted range: content_keys"),
        (
            {"statistics": Statistics(0.0, 0.0, math.nan, 40.0)},
            "outside the fitted range: sink_share, sink_spread, content_entropy",
        ),
        ({"floor": Floor(np.array([]))}, "no floor: fewer than two texts"),
        ({"floor": Floor(np.array([0.2, 0.26, 0.3]))}, "the floor is above 25%"),
        ({"triples": 99}, "fewer than 100 triples"),
        ({"floor": Floor(np.array([0.1, 0.1, 0.5]))}, "not above the floor"),
        ({"metric": "aitchison", "floor": Floor(np.zeros(3))}, "not above its own tolerance"),
    ],
)
def test_when_it_is_withheld(changes, why):
    found = predicted(**changes)
    assert found.why_not == why
    assert judge_rate(found, found.rate) == "abstained"


def test_a_metric_that_was_no_use_is_withheld():
    metrics = {"jsd": PREDICTOR.metrics["jsd"]._replace(useful=False)}
    found = predicted(predictor=type(PREDICTOR)(PREDICTOR.frozen, metrics, PREDICTOR.ranges, PREDICTOR.data))
    assert found.why_not.startswith("no better than a mean rate")


def test_a_rate_just_at_the_floor_is_withheld_and_one_just_above_is_not():
    rate = predicted().rate
    assert predicted(floor=Floor(np.array([0.1, rate]))).why_not == "not above the floor"
    assert predicted(floor=Floor(np.array([0.1, rate - 1e-9]))).why_not == ""


@pytest.mark.parametrize(
    ("observed", "verdict"),
    [(0.3, "confirmed"), (0.25, "confirmed"), (0.35, "confirmed"), (0.2499, "failed"), (0.3501, "failed")],
)
def test_within_the_tolerance_is_confirmed(observed, verdict):
    assert judge_rate(Prediction(0.3, 0.05 + 1e-12), observed) == verdict


def test_nothing_observed_is_nothing_judged():
    assert judge_rate(Prediction(0.3, 0.05), math.nan) == "abstained"
