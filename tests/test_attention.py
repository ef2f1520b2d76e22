from __future__ import annotations

from dataclasses import replace

import naive
import numpy as np
import pytest
from oracle_models import random_model

from oracle.attention import (
    Scoring,
    attend,
    earlier_keys,
    split_heads,
    transformed_gram,
    transformed_vectors,
    visible_keys,
)
from oracle.model import Linear, Norm, Rotary
from oracle.rotary import turns

HEADS, D_HEAD, D_MODEL, TOKENS = 3, 5, 13, 7


@pytest.fixture(scope="module")
def layer():
    return random_model(11, n_layers=1).layers[0]


def run(layer, x, mask=None, dtype="float64", heads=HEADS, visible=None, **scoring):
    count = len(x)
    if visible is None:
        visible = visible_keys(np.ones(count, bool) if mask is None else np.asarray(mask, bool))
    scores, attention = (np.full((heads, count, count), np.nan, dtype) for _ in range(2))
    return attend(x, layer, heads, visible, scores, attention, Scoring(**scoring))


def tokens(count=TOKENS, seed=12):
    return np.random.default_rng(seed).standard_normal((count, D_MODEL))


def test_split_heads_puts_consecutive_columns_into_one_head():
    x = np.arange(TOKENS * HEADS * D_HEAD).reshape(TOKENS, HEADS * D_HEAD)
    heads = split_heads(x, HEADS)
    assert heads.shape == (HEADS, TOKENS, D_HEAD)
    assert np.shares_memory(heads, x)
    for h in range(HEADS):
        for t in range(TOKENS):
            for d in range(D_HEAD):
                assert heads[h, t, d] == x[t, h * D_HEAD + d]


def test_split_heads_of_no_tokens():
    assert split_heads(np.zeros((0, HEADS * D_HEAD)), HEADS).shape == (HEADS, 0, D_HEAD)


def test_only_real_tokens_see_and_are_seen():
    mask = np.array([False, True, True, False, True])
    visible = visible_keys(mask)
    for query in range(5):
        for key in range(5):
            assert visible[query, key] == (mask[query] and mask[key])


def test_rows_sum_to_one_and_scores_are_scaled_products(layer):
    x = tokens()
    heads = run(layer, x)
    for h in range(HEADS):
        own = slice(h * D_HEAD, (h + 1) * D_HEAD)
        q = [naive.affine(row, *layer.query)[own] for row in x]
        k = [naive.affine(row, *layer.key)[own] for row in x]
        expected = [[naive.dot(qi, kj) / 5**0.5 for kj in k] for qi in q]
        np.testing.assert_allclose(heads.scores[h], expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(heads.attention[h], [naive.softmax(row) for row in expected], atol=1e-13)
    np.testing.assert_allclose(heads.attention.sum(axis=-1), 1, rtol=1e-15)


def test_masked_keys_get_nothing_and_masked_queries_have_no_row(layer):
    x, mask = tokens(), np.array([True, True, False, True, True, True, False])
    heads, alone = run(layer, x, mask), run(layer, x[mask])
    assert np.isneginf(heads.scores[:, :, ~mask]).all()
    assert np.isneginf(heads.scores[:, ~mask]).all()
    assert (heads.attention[:, ~mask] == 0).all()
    assert (heads.attention[:, :, ~mask] == 0).all()
    np.testing.assert_allclose(heads.attention[np.ix_(range(HEADS), mask, mask)], alone.attention, atol=1e-14)
    np.testing.assert_allclose(heads.output[mask], alone.output, rtol=0, atol=1e-13)


def test_the_output_is_what_the_transformed_vectors_add_up_to(layer):
    heads = run(layer, tokens())
    vectors = transformed_vectors(heads.values, layer.output.weight)
    rebuilt = np.einsum("hij,hjd->id", heads.attention, vectors) + layer.output.bias
    np.testing.assert_allclose(heads.output, rebuilt, rtol=0, atol=1e-13)


def test_results_are_written_into_the_given_arrays(layer):
    x = tokens()
    visible = visible_keys(np.ones(TOKENS, bool))
    scores, attention = np.empty((2, HEADS, TOKENS, TOKENS))
    heads = attend(x, layer, HEADS, visible, scores, attention)
    assert heads.scores is scores
    assert heads.attention is attention


@pytest.mark.parametrize("dtype", ["float32", "longdouble"])
def test_everything_stays_in_the_dtype_of_the_model(dtype):
    layer = random_model(11, n_layers=1).astype(dtype).layers[0]
    heads = run(layer, tokens().astype(dtype), dtype=dtype)
    assert {array.dtype for array in heads} == {np.dtype(dtype)}


@pytest.mark.parametrize("count", [0, 1])
def test_no_token_and_one_token(layer, count):
    heads = run(layer, tokens(count))
    assert heads.output.shape == (count, D_MODEL)
    np.testing.assert_array_equal(heads.attention, np.ones((HEADS, count, count)))


LONG = 300  # more queries than are scored together
MASKS = {
    "all real": np.ones(LONG, bool),
    "padding before": np.arange(LONG) >= 140,
    "padding after": np.arange(LONG) < 130,
    "padding between": (np.arange(LONG) + 20) % 50 > 30,
}


@pytest.mark.parametrize("order", ["both ways", "causal", "window"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_long_text_has_the_rows_of_its_queries_alone(layer, mask, order):
    x, visible = tokens(LONG), visible_keys(mask)
    if order != "both ways":
        visible &= earlier_keys(mask, 9 if order == "window" else None)
    heads = run(layer, x, visible=visible)
    scores = np.where(visible, heads.queries @ heads.keys.transpose(0, 2, 1) / 5**0.5, -np.inf)
    np.testing.assert_allclose(heads.scores, scores, rtol=0, atol=1e-13)
    rows = np.zeros_like(scores)
    for query in np.flatnonzero(visible.any(axis=1)):
        weights = np.exp(scores[:, query, visible[query]])
        rows[:, query, visible[query]] = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(heads.attention, rows, rtol=0, atol=1e-13)
    context = (heads.attention @ heads.values).transpose(1, 0, 2).reshape(LONG, -1)
    expected = context @ layer.output.weight + layer.output.bias
    np.testing.assert_allclose(heads.output, expected, rtol=0, atol=1e-13)


def test_the_input_is_not_changed(layer):
    x = tokens()
    before = x.copy()
    x.flags.writeable = False
    run(layer, x)
    np.testing.assert_array_equal(x, before)


def test_transformed_vectors_use_each_heads_own_rows_of_the_output_weight():
    rng = np.random.default_rng(13)
    values = rng.standard_normal((HEADS, TOKENS, D_HEAD))
    weight = rng.standard_normal((HEADS * D_HEAD, D_MODEL))
    vectors = transformed_vectors(values, weight)
    assert vectors.shape == (HEADS, TOKENS, D_MODEL)
    for h in range(HEADS):
        for j in range(TOKENS):
            own = weight[h * D_HEAD : (h + 1) * D_HEAD]
            np.testing.assert_allclose(vectors[h, j], naive.affine(values[h, j], own, [0.0] * D_MODEL))


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_transformed_vectors_are_widened_before_they_are_multiplied(dtype):
    rng = np.random.default_rng(15)
    values = rng.standard_normal((HEADS, TOKENS, D_HEAD)).astype(dtype)
    weight = rng.standard_normal((HEADS * D_HEAD, D_MODEL)).astype(dtype)
    vectors = transformed_vectors(values, weight)
    assert vectors.dtype == np.result_type(dtype, np.float64)
    for h in range(HEADS):
        own = weight[h * D_HEAD : (h + 1) * D_HEAD]
        for j in range(TOKENS):
            expected = naive.affine(values[h, j], own, [0.0] * D_MODEL)
            np.testing.assert_allclose(vectors[h, j], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_gram_holds_all_inner_products_at_each_key(dtype):
    rng = np.random.default_rng(14)
    values = rng.standard_normal((HEADS, TOKENS, D_HEAD)).astype(dtype)
    weight = rng.standard_normal((HEADS * D_HEAD, D_MODEL)).astype(dtype)
    vectors, gram = transformed_vectors(values, weight), transformed_gram(values, weight)
    assert gram.shape == (TOKENS, HEADS, HEADS)
    assert gram.dtype == np.result_type(dtype, np.float64)
    for j in range(TOKENS):
        for h in range(HEADS):
            for g in range(HEADS):
                assert gram[j, h, g] == pytest.approx(naive.dot(vectors[h, j], vectors[g, j]), abs=1e-12)


def test_earlier_keys_are_those_up_to_the_query():
    mask = np.array([True, True, False, True, True])
    np.testing.assert_array_equal(earlier_keys(mask), np.tri(5, dtype=bool))
    near = earlier_keys(mask, 2)
    for query, keys in {0: [0], 1: [0, 1], 3: [1, 2, 3], 4: [3, 4]}.items():  # place 2 is padding
        assert np.flatnonzero(near[query]).tolist() == keys
    assert earlier_keys(np.ones(0, bool)).shape == (0, 0)


def test_four_heads_share_two_keys_in_order():
    rng = np.random.default_rng(16)
    full = random_model(11, n_layers=1, n_heads=4).layers[0]
    part = {name: Linear(rng.normal(size=(D_MODEL, 10)), rng.normal(size=10)) for name in ("key", "value")}
    repeated = {
        name: Linear(*(array[..., [*range(5)] * 2 + [*range(5, 10)] * 2] for array in linear))
        for name, linear in part.items()
    }
    x = tokens()
    shared, whole = (run(replace(full, **maps), x, heads=4) for maps in (part, repeated))
    for name in shared._fields:
        np.testing.assert_allclose(getattr(shared, name), getattr(whole, name), rtol=0, atol=1e-13)
    norms = np.linalg.norm(shared.values, axis=-1)
    np.testing.assert_array_equal(norms[[0, 2]], norms[[1, 3]])
    assert (norms[0] != norms[2]).all()


def test_scores_are_capped_before_the_mask(layer):
    visible = np.tri(TOKENS, dtype=bool)
    plain = run(layer, tokens(), visible=visible).scores
    found = run(layer, tokens(), visible=visible, cap=2.0)
    seen = np.broadcast_to(visible, plain.shape)
    np.testing.assert_allclose(found.scores[seen], 2 * np.tanh(plain[seen] / 2), rtol=1e-14)
    assert np.isneginf(found.scores[~seen]).all()
    assert (found.attention[~seen] == 0).all()


def test_scores_over_another_scale(layer):
    plain = run(layer, tokens()).scores
    np.testing.assert_allclose(run(layer, tokens(), scalar=20.0).scores, plain / 2, rtol=1e-14)
    np.testing.assert_allclose(run(layer, tokens(), divisor=3.0).scores, plain / 3, rtol=1e-14)


def test_queries_and_keys_are_normed_and_then_turned(layer):
    x, weights = tokens(), np.random.default_rng(17).uniform(0.5, 1.5, (2, D_HEAD))
    normed = replace(layer, query_norm=Norm(weights[0]), key_norm=Norm(weights[1]))
    plain, found = run(layer, x), run(normed, x, norm_epsilon=1e-3)
    for name, weight in zip(("queries", "keys"), weights, strict=True):
        vectors = getattr(plain, name)
        root = np.sqrt((vectors**2).mean(axis=-1, keepdims=True) + 1e-3)
        np.testing.assert_allclose(getattr(found, name), vectors / root * weight, rtol=1e-13)
    tables = turns(Rotary(7.0, 4), np.arange(TOKENS), np.float64)
    turned = run(normed, x, norm_epsilon=1e-3, turns=tables)
    np.testing.assert_array_equal(turned.queries[:, 0], found.queries[:, 0])
    np.testing.assert_array_equal(turned.keys[..., 4], found.keys[..., 4])
    np.testing.assert_array_equal(turned.values, found.values)
    assert np.abs(turned.keys - found.keys).max() > 0.1
    lengths = [np.linalg.norm(heads.keys[..., :4], axis=-1) for heads in (found, turned)]
    np.testing.assert_allclose(*lengths, rtol=1e-14)
