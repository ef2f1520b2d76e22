"""Statistics of heads on made-up shares and entropies, and the features of the linear form."""

import math

import numpy as np
import pytest

from validation.prediction.statistics import FEATURES, Statistics, describe_heads, log_content_keys


def test_statistics_of_three_heads():
    share, entropy = np.array([0.2, 0.4, 0.6]), np.array([1.0, np.nan, 2.0])
    found = describe_heads(share, entropy, math.log(20))
    assert found.sink_share == pytest.approx(0.4, rel=1e-15)
    assert found.sink_spread == pytest.approx(math.sqrt(0.08 / 3), rel=1e-14)
    assert found.content_entropy == pytest.approx(1.5 / math.log(20), rel=1e-15)
    assert found.content_keys == pytest.approx(20, rel=1e-14)


def test_features_are_in_the_stated_order():
    logit, log_spread, entropy, log_keys = Statistics(0.2, 0.1, 0.7, 30.0).features()
    assert len(FEATURES) == 4
    assert logit == pytest.approx(math.log(0.25), rel=1e-14)
    assert (log_spread, entropy, log_keys) == pytest.approx((math.log(0.1), 0.7, math.log(30)), rel=1e-15)


def test_no_sink_and_no_content_are_undefined_without_a_warning():
    found = describe_heads(np.zeros(3), np.full(3, np.nan), math.log(5))
    assert math.isnan(found.content_entropy)
    assert found.features()[:2].tolist() == [-math.inf, -math.inf]
    assert math.isnan(describe_heads(np.ones(2), np.ones(2), 0.0).content_entropy)


def test_content_keys_are_visible_and_no_sinks():
    sinks = np.array([True, False, False, False])
    np.testing.assert_allclose(np.exp(log_content_keys(sinks, np.tri(4, dtype=bool))), [1, 1, 2, 3])
