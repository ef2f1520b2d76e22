"""Logits, log likelihoods and perplexity, by definition and beside transformers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import naive
import numpy as np
import pytest
from oracle_models import random_model
from wording import refused

from oracle import Model, forward, load_model, logits, perplexity
from oracle.language_model import log_likelihood
from oracle.model import Head, Linear, Norm

IDS = [9, 4, 44, 21, 17, 3]


@pytest.fixture(scope="module")
def model() -> Model:
    """A causal model in float64 with a final norm, a projection, its own map to the words and a cap."""
    rng = np.random.default_rng(1)
    plain = random_model(norm_place="pre", causal=True)
    head = Head(
        norm=Norm(rng.uniform(0.5, 1.5, 13), rng.normal(size=13)),
        project=Linear(rng.normal(size=(13, 7)), rng.normal(size=7)),
        words=Linear(rng.normal(size=(7, 61))),
    )
    return replace(plain, head=head, config=replace(plain.config, logit_cap=5.0))


def by_definition(model: Model, states: np.ndarray) -> list[list[float]]:
    """Norm, projection, words and cap, written out."""
    head, rows = model.head, []
    for row in states:
        normed = naive.layer_norm(row, *head.norm, model.config.norm_epsilon)
        projected = naive.affine(normed, *head.project)
        words = naive.affine(projected, head.words.weight, [0.0] * 61)
        rows.append([5 * math.tanh(score / 5) for score in words])
    return rows


def test_logits_by_definition(model: Model) -> None:
    trace = forward(model, IDS)
    expected = by_definition(model, trace.hidden_states[-1])
    np.testing.assert_allclose(logits(model, trace), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(logits(model, trace.hidden_states[-1]), logits(model, trace))
    both = np.stack([trace.hidden_states[-1]] * 2)
    np.testing.assert_allclose(logits(model, both)[1], expected, rtol=0, atol=1e-12)
    assert logits(model.astype("float32"), trace).dtype == np.float32


def test_tied_words_are_the_embeddings(model: Model) -> None:
    tied = replace(model, head=Head(), config=replace(model.config, tied_head=True, logit_cap=None))
    states = forward(tied, IDS).hidden_states[-1]
    np.testing.assert_allclose(logits(tied, states), states @ model.embeddings.words.T, rtol=1e-14)


def test_a_cast_reaches_the_head(model: Model) -> None:
    narrow = model.astype("float32")
    assert narrow.head is not None
    assert narrow.head.words is not None
    assert narrow.head.words.weight.dtype == np.float32


def test_log_likelihoods_in_high_precision() -> None:
    rng = np.random.default_rng(2)
    scores, ids = 30 * rng.normal(size=(70, 11)), rng.integers(11, size=70)
    found = log_likelihood(scores, ids)
    assert found.shape == (69,)
    with mpmath.workdps(40):
        for place in range(69):
            total = mpmath.fsum(mpmath.exp(mpmath.mpf(score)) for score in scores[place])
            expected = mpmath.mpf(scores[place, ids[place + 1]]) - mpmath.log(total)
            assert float(abs(found[place] - expected)) < 1e-13


def test_log_likelihoods_of_float32_are_float64_and_do_not_overflow() -> None:
    scores = np.array([[1e4, 0, -1e4], [88.0, 89.0, 90.0]], np.float32)
    found = log_likelihood(scores, [0, 2])
    assert found.dtype == np.float64
    assert found.tolist() == [-2e4]
    assert log_likelihood(scores.astype(np.longdouble), [0, 2]).dtype == np.longdouble
    np.testing.assert_array_equal(scores[0], [1e4, 0, -1e4])


def test_perplexity_by_definition(model: Model) -> None:
    rows = by_definition(model, forward(model, IDS).hidden_states[-1])
    chosen = [math.log(naive.softmax(row)[after]) for row, after in zip(rows, IDS[1:], strict=False)]
    expected = math.exp(-math.fsum(chosen) / 5)
    assert perplexity(model, IDS) == pytest.approx(expected, rel=1e-12)
    assert perplexity(model.astype("float32"), IDS) == pytest.approx(expected, rel=1e-4)
    assert perplexity(model, IDS) >= 1


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary(model: Model) -> None:
    head = replace(model.head, words=Linear(np.zeros((7, 61))))
    assert perplexity(replace(model, head=head), IDS) == pytest.approx(61, rel=1e-14)


@pytest.mark.parametrize("ids", [[], [9]])
def test_fewer_than_two_tokens_predict_nothing(model: Model, ids: list[int]) -> None:
    assert math.isnan(perplexity(model, ids))
    assert log_likelihood(np.zeros((len(ids), 61)), ids).shape == (0,)


def test_a_text_that_is_too_long_is_cut_only_when_asked(model: Model) -> None:
    with refused("text", "at most 37 tokens"):
        perplexity(model, [9] * 38)
    assert perplexity(model, [9] * 38, truncate=True) == perplexity(model, [9] * 37)


def test_models_and_states_that_do_not_fit_are_refused(model: Model) -> None:
    with refused("model", "random, a model of another kind"):
        logits(random_model(), np.zeros((3, 13)))
    with refused("model", "random, saved without one"):
        logits(replace(model, head=Head()), np.zeros((3, 13)))
    for states in (np.zeros((3, 12)), np.zeros(13)):
        with refused("hidden_or_trace", "trace.hidden_states[-1]"):
            logits(model, states)
    with refused("trace.hidden_states"):
        logits(model, forward(model, IDS, keep="attention"))
    for ids in ([1, 2], [1.0, 2.0, 3.0], [[1, 2, 3]]):
        with refused("token_ids", "logits (3, 61)"):
            log_likelihood(np.zeros((3, 61)), ids)


def test_transformers_has_the_same_loss(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra 'reference'")
    from family_models import saved

    from validation.reference import Reference

    sizes = {"num_hidden_layers": 2, "intermediate_size": 29, "max_position_embeddings": 61}
    config = sizes | {"vocab_size": 97, "hidden_size": 30, "num_attention_heads": 3, "num_key_value_heads": 1}
    folder = saved(tmp_path, "llama", config)
    ids = np.random.default_rng(3).integers(97, size=47)
    scores = torch.from_numpy(Reference.load(folder, "float64").logits(ids[None])[0])
    loss = torch.nn.functional.cross_entropy(scores[:-1], torch.from_numpy(ids[1:]))
    assert perplexity(load_model(folder, dtype="float64"), ids) == pytest.approx(float(loss.exp()), rel=1e-12)
