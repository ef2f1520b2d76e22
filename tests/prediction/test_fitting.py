"""The fit on observations that obey the form, and what leaving some out shows when others do not."""

import numpy as np
import pytest

from validation.prediction.fitting import Observation, fit_rates, predicted_rate
from validation.prediction.statistics import Statistics

TRUTH = np.array([-0.3, 0.5, 0.7, 0.4, 0.1])
TRIPLES = 10**9  # so that counting rounds nothing away


def observations(noise=0.0, odd=0.0, seed=0):
    """Variants a to d of layers 0 to 2 that obey TRUTH, but for noise and for variant d."""
    rng = np.random.default_rng(seed)
    found = []
    for variant in "abcd":
        for layers in "012":
            drawn = rng.uniform([0.1, 0.05, 0.4, 10], [0.9, 0.3, 0.8, 100])
            statistics = Statistics(*map(float, drawn))
            logit = TRUTH[0] + statistics.features() @ TRUTH[1:] + rng.normal(0, noise)
            rate = 1 / (1 + np.exp(-logit - odd * (variant == "d")))
            flipped = {"jsd": round(float(rate) * TRIPLES)}
            found.append(Observation(variant, layers, "all", statistics, flipped, {"jsd": TRIPLES}))
    return found


def test_a_law_that_holds_is_found():
    fit = fit_rates(observations(), "jsd")
    np.testing.assert_allclose(fit.coefficients, TRUTH, atol=1e-6)
    np.testing.assert_allclose(fit.left_out, np.column_stack([fit.observed, fit.observed]), atol=1e-6)
    assert fit.useful
    assert fit.tolerance == 0.02


def test_a_variant_apart_shows_only_when_it_is_left_out():
    fit = fit_rates(observations(odd=1.5), "jsd")
    of_variant, of_layers = np.abs(fit.left_out - fit.observed[:, None])[-3:].mean(axis=0)
    assert of_variant > of_layers
    assert fit.error > 0.05
    assert 2 * fit.error <= fit.tolerance < 2 * fit.error + 0.01


def test_noise_is_no_use():
    rng = np.random.default_rng(3)
    noisy = [one._replace(flipped={"jsd": int(rng.uniform(0.2, 0.3) * TRIPLES)}) for one in observations()]
    assert not fit_rates(noisy, "jsd").useful


def test_rates_stay_between_none_and_all():
    none = [one._replace(flipped={"jsd": 0}, triples={"jsd": 10}) for one in observations()]
    fit = fit_rates(none, "jsd")
    np.testing.assert_allclose(fit.observed, 0.5 / 11)
    np.testing.assert_allclose(fit.fitted, 0.5 / 11, rtol=1e-9)
    assert predicted_rate(TRUTH, np.zeros((2, 4))) == pytest.approx(1 / (1 + np.exp(0.3)))
