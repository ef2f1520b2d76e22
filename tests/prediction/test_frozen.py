"""The frozen file: its hash, its numbers from its own observations, and refusal of any other file."""

import json
import math

import numpy as np
import pytest
from wording import refused

from validation.prediction.frozen import FROZEN_SHA256, load_predictor, read_predictor
from validation.prediction.statistics import Statistics
from validation.studies.fit_predictor import differences, fit_all, fitted_file, ranges_of, read_observations
from validation.studies.predictor_subjects import GROUPS, LENGTHS, PREDICTED, VARIANTS

SHIPPED = load_predictor()
INSIDE = Statistics(0.5, 0.2, 0.6, 40.0)


@pytest.fixture
def changed(tmp_path):
    """Writes the frozen file with one thing changed; its path."""

    def write(change):
        data = json.loads(json.dumps(SHIPPED.data))
        change(data)
        path = tmp_path / "predictor.json"
        path.write_text(json.dumps(data, indent=1) + "\n")
        return path

    return write


def test_the_shipped_file_is_the_frozen_one(changed):
    assert SHIPPED.frozen.sha256 == FROZEN_SHA256
    assert load_predictor(changed(lambda data: None)).data == SHIPPED.data


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["metrics"]["jsd"].update(tolerance=0.09),
        lambda data: data["metrics"]["jsd"]["coefficients"].reverse(),
        lambda data: data.update(made="2026-01-01"),
        lambda data: data["ranges"].update(sink_share=[0.0, 1.0]),
    ],
)
def test_a_changed_file_is_refused(changed, change):
    with refused("predictor", "the frozen file", FROZEN_SHA256[:16], "a changed one"):
        load_predictor(changed(change))


def test_a_missing_file_is_refused(tmp_path):
    with refused("predictor", "No such file"):
        load_predictor(tmp_path / "none.json")


def test_its_numbers_are_those_of_its_observations():
    observations = read_observations(SHIPPED.data)
    assert len(observations) == len(VARIANTS) * len(LENGTHS) * len(GROUPS)
    about = {key: SHIPPED.data[key] for key in ("made", "versions", "models", "texts")}
    assert json.loads(json.dumps(fitted_file(observations, about))) == SHIPPED.data
    for metric, fit in fit_all(observations).items():
        np.testing.assert_allclose(SHIPPED.metrics[metric].coefficients, fit.coefficients, atol=5.1e-5)
        assert SHIPPED.metrics[metric].useful
    assert SHIPPED.ranges == ranges_of(observations)


def test_one_model_is_in_it_and_says_so():
    assert [model["name"] for model in SHIPPED.data["models"]] == ["minilm-l6"]
    assert SHIPPED.models == (SHIPPED.data["models"][0]["sha256"],)


def test_another_fit_is_told_apart():
    again = json.loads(json.dumps(SHIPPED.data))
    assert differences(SHIPPED.data, again) == []
    again["metrics"]["l1"]["coefficients"][2] += 0.01
    again["texts"]["texts_sha256"] = "0"
    (texts, number) = differences(SHIPPED.data, again)
    assert texts == "texts"
    assert number.startswith("metrics.l1.coefficients.2: ")


def test_statistics_give_the_stated_rate():
    for metric in PREDICTED:
        constant, share, spread, entropy, keys = SHIPPED.metrics[metric].coefficients
        logit = constant + share * math.log(0.3 / 0.7) + spread * math.log(0.1) + entropy * 0.7
        rate = 1 / (1 + math.exp(-logit - keys * math.log(50)))
        assert SHIPPED.rate(metric, Statistics(0.3, 0.1, 0.7, 50.0)) == pytest.approx(rate, rel=1e-12)


def test_ranges_are_kept_statistic_by_statistic():
    assert SHIPPED.outside(INSIDE) == ()
    for name, (low, high) in SHIPPED.ranges.items():
        assert SHIPPED.outside(INSIDE._replace(**{name: low})) == ()
        for value in (low - 1e-6, high + 1e-6, float("nan")):
            assert SHIPPED.outside(INSIDE._replace(**{name: value})) == (name,)
    assert SHIPPED.outside(Statistics(0.0, 0.0, float("nan"), 40.0))[:2] == ("sink_share", "sink_spread")


def test_other_bytes_can_be_read_without_a_hash(changed):
    data = changed(lambda data: data["metrics"]["jsd"].update(tolerance=0.5)).read_bytes()
    assert read_predictor(data).metrics["jsd"].tolerance == 0.5
