from __future__ import annotations

import inspect
import math
import sys
import time

import naive
import numpy as np
import pytest
from oracle_models import CLS, PAD, SEP, random_model, random_rows
from wording import refused

import oracle
from oracle import (
    forward,
    head_summed_norm,
    norm_odds_ratio,
    sink_share,
    undeclared_sinks,
    value_norm_ratio,
    weight_share,
    weighted_rows,
)
from oracle.trace import KEEP_ALL

torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')

LAYERS, HEADS, QUERIES, KEYS = 2, 3, 5, 7
EPS = float(np.finfo(np.float64).eps)
SINKS = np.array([True, False, False, False, False, True, False])


@pytest.fixture
def rng():
    return np.random.default_rng(31)


@pytest.fixture
def attention(rng):
    return random_rows(rng, LAYERS, HEADS, QUERIES, KEYS)


@pytest.fixture
def norm(rng):
    return rng.uniform(0.1, 9, (LAYERS, HEADS, KEYS))


@pytest.fixture
def visible(rng):
    seen = rng.random((QUERIES, KEYS)) < 0.6
    seen[:, 3] = True
    return seen


def closed(attention, visible):
    rows = np.where(visible, attention, 0)
    return rows / rows.sum(axis=-1, keepdims=True)


# --- weights and shares by the definition ---------------------------------------------------------


def test_weighted_rows_multiply_each_weight_by_its_keys_norm(attention, norm):
    weights = weighted_rows(attention, norm)
    for layer, head, query, key in np.ndindex(attention.shape):
        expected = attention[layer, head, query, key] * norm[layer, head, key]
        assert weights[layer, head, query, key] == pytest.approx(expected, rel=4 * EPS)


def test_weights_without_a_norm_are_the_closed_rows(attention):
    np.testing.assert_allclose(weighted_rows(attention * 1.004), attention, rtol=8 * EPS)


@pytest.mark.parametrize("with_norm", [False, True])
@pytest.mark.parametrize("with_visible", [False, True])
def test_shares_against_the_definition(attention, norm, visible, with_norm, with_visible):
    seen = visible if with_visible else np.ones_like(visible)
    given = closed(attention, seen)
    shares = sink_share(given, SINKS, norm if with_norm else None, visible if with_visible else None)
    assert shares.shape == (LAYERS, HEADS, QUERIES)
    for layer, head, query in np.ndindex(shares.shape):
        row, norms = given[layer, head, query], norm[layer, head] if with_norm else np.ones(KEYS)
        at = np.flatnonzero(seen[query])
        expected = naive.share([row[j] * norms[j] for j in at], SINKS[at])
        assert shares[layer, head, query] == pytest.approx(expected, rel=16 * EPS)


def test_one_norm_for_all_heads_and_one_head_alone(attention, norm):
    for_all = sink_share(attention, SINKS, norm[0, 0])
    for layer, head in np.ndindex(LAYERS, HEADS):
        alone = sink_share(attention[layer, head], SINKS, norm[0, 0])
        np.testing.assert_array_equal(for_all[layer, head], alone)


def test_sinks_may_differ_by_query(attention):
    per_query = np.eye(QUERIES, KEYS, dtype=bool)
    shares = sink_share(attention, per_query)
    for query in range(QUERIES):
        np.testing.assert_allclose(shares[..., query], attention[..., query, query], rtol=8 * EPS)


def test_the_weighting_does_not_see_the_size_of_the_norms(attention, norm):
    first, second = (sink_share(attention, SINKS, scale * norm) for scale in (1, 1024))
    np.testing.assert_array_equal(first, second)


def test_norms_of_one_give_the_attention_share_bit_for_bit(attention):
    plain, weighted = (
        sink_share(attention, SINKS),
        sink_share(attention, SINKS, np.ones((LAYERS, HEADS, KEYS))),
    )
    np.testing.assert_array_equal(plain, weighted)


def test_the_share_of_any_weights_needs_no_row_sum(attention, norm):
    weights = 37 * weighted_rows(attention, norm)
    np.testing.assert_allclose(weight_share(weights, SINKS), sink_share(attention, SINKS, norm), rtol=8 * EPS)
    assert weight_share([[3.0, 1.0], [0.0, 8.0]], [True, False]).tolist() == [0.75, 0.0]
    assert weight_share([[3.0, 1.0, 4.0]], [1, 0, 0], [1, 1, 0]).tolist() == [0.75]


# --- the odds law ---------------------------------------------------------------------------------


def test_the_odds_ratio_against_the_definition(attention, norm, visible):
    given = closed(attention, visible)
    ratios = norm_odds_ratio(given, SINKS, norm, visible)
    assert ratios.shape == (LAYERS, HEADS, QUERIES)
    for layer, head, query in np.ndindex(ratios.shape):
        at = np.flatnonzero(visible[query])
        expected = naive.odds_ratio(given[layer, head, query, at], norm[layer, head, at], SINKS[at])
        assert ratios[layer, head, query] == pytest.approx(expected, rel=32 * EPS, nan_ok=True)


def test_the_odds_law_holds(attention, norm):
    before, after = sink_share(attention, SINKS), sink_share(attention, SINKS, norm)
    ratio = norm_odds_ratio(attention, SINKS, norm)
    np.testing.assert_allclose(after / (1 - after), ratio * before / (1 - before), rtol=1e-12)
    np.testing.assert_array_equal(after > before, ratio > 1)


def test_a_content_without_norm_has_an_infinite_ratio():
    row, sinks = [[0.5, 0.5]], [True, False]
    assert norm_odds_ratio(row, sinks, [2.0, 0.0]).tolist() == [math.inf]
    assert norm_odds_ratio(row, sinks, [0.0, 2.0]).tolist() == [0.0]
    assert np.isnan(norm_odds_ratio(row, sinks, [0.0, 0.0])).all()
    assert np.isnan(sink_share(row, sinks, [0.0, 0.0])).all()


# --- odd rows -------------------------------------------------------------------------------------


def test_a_row_without_a_visible_sink_has_share_zero_and_no_ratio(attention, norm):
    for sinks, seen in ((np.zeros(KEYS, bool), None), (SINKS, ~SINKS)):
        given = attention if seen is None else closed(attention, seen)
        assert (sink_share(given, sinks, None, seen) == 0).all()
        assert (sink_share(given, sinks, norm, seen) == 0).all()
        assert np.isnan(norm_odds_ratio(given, sinks, norm, seen)).all()


def test_a_row_that_is_all_sink_has_share_one_and_no_ratio(attention, norm):
    for sinks, seen in ((np.ones(KEYS, bool), None), (SINKS, SINKS)):
        given = attention if seen is None else closed(attention, seen)
        assert (sink_share(given, sinks, None, seen) == 1).all()
        assert (sink_share(given, sinks, norm, seen) == 1).all()
        assert np.isnan(norm_odds_ratio(given, sinks, norm, seen)).all()


def test_a_row_without_mass_is_undefined_and_the_others_are_not():
    rows = np.array([[0.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    sinks, norms = np.array([True, False, False]), np.array([1.0, 2.0, 3.0])
    for share in (
        sink_share(rows, sinks),
        sink_share(rows, sinks, norms),
        weight_share(rows, sinks),
        norm_odds_ratio(rows, sinks, norms),
    ):
        assert np.isnan(share).tolist() == [True, False]
    np.testing.assert_array_equal(np.isnan(weighted_rows(rows, norms)), [[True] * 3, [False] * 3])


def test_a_row_that_sees_nothing_is_undefined(attention, norm):
    seen = np.ones((QUERIES, KEYS), bool)
    seen[2] = False
    for share in (sink_share(attention, SINKS, norm, seen), norm_odds_ratio(attention, SINKS, norm, seen)):
        assert np.isnan(share[..., 2]).all()
        assert not np.isnan(share[..., [0, 1, 3, 4]]).any()
    assert np.isnan(weighted_rows(attention, norm, seen)[..., 2, :]).all()


@pytest.mark.parametrize(("is_sink", "share"), [(True, 1.0), (False, 0.0)])
def test_one_key(is_sink, share):
    rows = np.ones((2, 1, 1))
    assert (sink_share(rows, [is_sink], [3.0]) == share).all()
    assert np.isnan(norm_odds_ratio(rows, [is_sink], [3.0])).all()
    assert np.isnan(value_norm_ratio([3.0], [is_sink])).all()


def test_rows_of_nan_stay_undefined_in_a_share_of_weights(attention, norm):
    weights = weighted_rows(attention, norm)
    weights[0, 1, 2] = np.nan
    share = weight_share(weights, SINKS)
    assert np.isnan(share[0, 1, 2])
    assert np.isnan(share).sum() == 1
    weights[1, 1, 1, 4] = np.nan
    with refused("weights", "NaN in a whole row", "nan at layer 1, head 1, query 1, key 4 (1 in all)"):
        weight_share(weights, SINKS)


@pytest.mark.parametrize("wrong", [-0.5, np.inf, np.nan])
def test_wrong_weights_are_refused_unless_they_are_not_visible(wrong):
    weights = np.array([[1.0, 1.0, wrong]])
    with refused("weights", f"{wrong} at query 0, key 2 (1 in all)"):
        weight_share(weights, [1, 0, 0])
    assert weight_share(weights, [1, 0, 0], [1, 1, 0]).tolist() == [0.5]
    rows = np.array([[0.5, 0.5, wrong]])
    with refused("attention", f"{wrong} at query 0, key 2"):
        sink_share(rows, [1, 0, 0])
    assert sink_share(rows, [1, 0, 0], None, [1, 1, 0]).tolist() == [0.5]


def test_a_single_row_of_weights_needs_a_query_axis():
    with refused("weights", "weights[None, :]"):
        weight_share([0.5, 0.5], [1, 0])


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf, 1e308])
def test_a_norm_that_no_query_sees_does_not_matter(attention, norm, wrong):
    seen = np.ones((QUERIES, KEYS), bool)
    seen[:, 5:] = False
    expected = [
        measure(closed(attention, seen), SINKS, norm, seen) for measure in (sink_share, norm_odds_ratio)
    ]
    norm[..., 5:] = wrong
    for visible in (seen, seen[0], seen[None].astype(int), oracle.KeyRange([0] * QUERIES, [5] * QUERIES)):
        for measure, share in zip((sink_share, norm_odds_ratio), expected, strict=True):
            np.testing.assert_array_equal(measure(closed(attention, seen), SINKS, norm, visible), share)
        found = oracle.row_measures(closed(attention, seen), SINKS, {"value_norm": norm}, visible)
        np.testing.assert_array_equal(found.shares["value_norm"], expected[0])
        assert (weighted_rows(closed(attention, seen), norm, visible)[..., 5:] == 0).all()


def test_a_norm_that_one_query_sees_is_judged(attention, norm):
    seen = np.zeros((LAYERS, HEADS, QUERIES, KEYS), bool)
    seen[..., :5] = True
    seen[1, 2, 3, 6] = True
    norm[..., 6] = np.nan
    with refused("norm", "nan at layer 1, head 2, key 6"):
        sink_share(closed(attention, seen), SINKS, norm, seen)
    with refused("norm", "nan at head 0, key 6"):
        sink_share(closed(attention, seen), SINKS, norm[:, :1][1], seen)  # one norm for all matrices
    with refused("norm", "nan at key 6"):
        sink_share(closed(attention, seen), SINKS, norm[0, 0], seen)
    norm[1, 2, 6] = 1
    assert not np.isnan(sink_share(closed(attention, seen), SINKS, norm, seen)).any()


def test_errors_name_their_argument(attention, norm):
    for measure in (sink_share, norm_odds_ratio):
        with refused("attention", "a sum of 0.5"):
            measure(0.5 * attention, SINKS, norm)
        with refused("norm", "(2, 3, 6)"):
            measure(attention, SINKS, norm[..., :-1])
        with refused("norm", "-1.0"):
            measure(attention, SINKS, -np.ones(KEYS))
        with refused("sink_mask", "(6,)"):
            measure(attention, SINKS[:-1], norm)
        with refused("visible", "(3, 7)"):
            measure(attention, SINKS, norm, np.ones((3, KEYS), bool))


# --- what holds for every measure ------------------------------------------------------------------


def all_of_the_rows(rows, sinks, norms):
    """Every array of `row_measures` in one: (part, ..., query)."""
    found = oracle.row_measures(rows, sinks, {"value_norm": norms}, entropies=True)
    return np.stack([*found.shares.values(), *found.ratios.values(), *found.entropy])


def calls(dtype="float64"):
    """Every measure of this module with good arguments: name -> (function, arguments)."""
    rng = np.random.default_rng(32)
    rows = random_rows(rng, LAYERS, HEADS, KEYS, KEYS).astype(dtype)
    norms = rng.uniform(0.1, 9, (LAYERS, HEADS, KEYS)).astype(dtype)
    vectors = rng.standard_normal((LAYERS, KEYS, HEADS, 11))
    gram = (vectors @ vectors.swapaxes(-1, -2)).astype(dtype)
    return {
        "head_summed_norm": (head_summed_norm, [rows, gram]),
        "norm_odds_ratio": (norm_odds_ratio, [rows, SINKS, norms]),
        "row_measures": (all_of_the_rows, [rows, SINKS, norms]),
        "sink_share": (sink_share, [rows, SINKS, norms]),
        "undeclared_sinks": (undeclared_sinks, [rows, SINKS]),
        "value_norm_ratio": (value_norm_ratio, [norms, SINKS]),
        "weight_share": (weight_share, [rows, SINKS]),
        "weighted_rows": (weighted_rows, [rows, norms]),
    }


def test_the_list_of_measures_is_complete():
    functions = {
        name for name in oracle.measures.__all__ if inspect.isfunction(getattr(oracle.measures, name))
    }
    assert set(calls()) == functions


@pytest.mark.parametrize("name", sorted(calls()))
def test_inputs_are_never_changed_and_may_be_read_only_or_strided(name):
    function, arguments = calls()[name]
    expected = function(*arguments)
    copies = [argument.copy() for argument in arguments]
    strided = [np.repeat(argument, 2, axis=-1)[..., ::2] for argument in arguments]
    for argument in arguments + strided:
        argument.flags.writeable = False
    for given in (arguments, strided):
        np.testing.assert_array_equal(function(*given), expected)
    for argument, copy in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(argument, copy)


@pytest.mark.parametrize("name", sorted(set(calls()) - {"undeclared_sinks"}))
@pytest.mark.parametrize(
    ("given", "wide"),
    [("float16", "float64"), ("float32", "float64"), ("float64", "float64"), ("longdouble", "longdouble")],
)
def test_float64_out_whatever_comes_in_and_longdouble_for_longdouble(name, given, wide):
    function, arguments = calls(given)[name]
    assert function(*arguments).dtype == wide


@pytest.mark.parametrize("name", sorted(calls()))
def test_torch_tensors_and_lists_are_inputs_too(name):
    function, arguments = calls()[name]
    expected = function(*arguments)
    np.testing.assert_array_equal(function(*[torch.tensor(argument) for argument in arguments]), expected)
    np.testing.assert_array_equal(function(*[argument.tolist() for argument in arguments]), expected)


@pytest.mark.parametrize("shape", [(2, 3, 0, 0), (2, 3, 0, 4), (0, 3, 4, 4), (2, 0, 4, 4)])
def test_arrays_without_elements(shape):
    rows, sinks, norms = np.zeros(shape), np.zeros(shape[-1], bool), np.zeros((*shape[:2], shape[-1]))
    assert weighted_rows(rows, norms).shape == shape
    assert sink_share(rows, sinks, norms).shape == shape[:-1]
    assert weight_share(rows, sinks).shape == shape[:-1]
    assert norm_odds_ratio(rows, sinks, norms).shape == shape[:-1]
    assert value_norm_ratio(norms, sinks).shape == (*shape[:2], 0)
    assert undeclared_sinks(rows, sinks) == []
    gram = np.zeros((shape[0], shape[-1], shape[1], shape[1]))
    assert head_summed_norm(rows, gram).shape == (shape[0], *shape[2:])


# --- norms of sinks and of all heads together -------------------------------------------------------


def test_the_norm_ratio_of_each_sink_against_the_mean_of_the_content(norm):
    ratios = value_norm_ratio(norm, SINKS)
    assert ratios.shape == (LAYERS, HEADS, 2)
    for layer, head in np.ndindex(LAYERS, HEADS):
        content = [norm[layer, head, j] for j in range(KEYS) if not SINKS[j]]
        for place, sink in enumerate((0, 5)):
            expected = norm[layer, head, sink] / (math.fsum(content) / 5)
            assert ratios[layer, head, place] == pytest.approx(expected, rel=8 * EPS)


def test_the_norm_ratio_leaves_padding_out(norm):
    real = np.array([True, True, True, True, False, False, True])
    expected = value_norm_ratio(norm[..., real], SINKS[real])
    padded = norm.copy()
    padded[..., ~real] = [np.nan, -1]
    for seen in (
        real,
        np.outer(real, real),
        np.outer(real, real).astype(int),
        np.outer(real, real)[None, None],
    ):
        np.testing.assert_array_equal(value_norm_ratio(padded, SINKS, seen), expected)


@pytest.mark.parametrize("seen", [None, [False, True, True, True, True, False, True]])
def test_no_visible_sink_gives_no_ratios(norm, seen):
    sinks = np.zeros(KEYS, bool) if seen is None else SINKS
    assert value_norm_ratio(norm, sinks, seen).shape == (LAYERS, HEADS, 0)


def test_no_content_gives_nan(norm):
    ratios = value_norm_ratio(norm, SINKS, SINKS)
    assert ratios.shape == (LAYERS, HEADS, 2)
    assert np.isnan(ratios).all()
    assert np.isnan(value_norm_ratio([0.0, 0.0], [True, False])).all()
    assert value_norm_ratio([1.0, 0.0], [True, False]).tolist() == [math.inf]


def test_the_norm_ratio_refuses_what_it_cannot_read(norm):
    with refused("norm", "single number"):
        value_norm_ratio(3.0, [True])
    with refused("norm", "nan at layer 1, head 2, key 3"):
        broken = norm.copy()
        broken[1, 2, 3] = np.nan
        value_norm_ratio(broken, SINKS)
    with refused("sink_mask", "(6,)"):
        value_norm_ratio(norm, SINKS[:-1])
    with refused("sink_mask", "found 5"):
        value_norm_ratio(norm, [0, 5])
    for visible in (np.ones(KEYS - 1, bool), np.ones((KEYS, KEYS - 1), bool), True):
        with refused("visible"):
            value_norm_ratio(norm, SINKS, visible)


def test_the_head_summed_norm_against_the_vectors_themselves(rng):
    attention = random_rows(rng, LAYERS, HEADS, QUERIES, KEYS)
    vectors = rng.standard_normal((LAYERS, HEADS, KEYS, 11))
    gram = np.einsum("lhkd,lgkd->lkhg", vectors, vectors)
    norms = head_summed_norm(attention, gram)
    assert norms.shape == (LAYERS, QUERIES, KEYS)
    for layer, i, j in np.ndindex(norms.shape):
        total = [
            math.fsum(attention[layer, h, i, j] * vectors[layer, h, j, d] for h in range(HEADS))
            for d in range(11)
        ]
        assert norms[layer, i, j] == pytest.approx(math.sqrt(naive.dot(total, total)), rel=1e-12)


def test_one_head_summed_is_the_weighted_row():
    trace = forward(random_model(n_heads=1, d_head=13), [CLS, 9, 4, 44, SEP], keep=KEEP_ALL)
    summed = head_summed_norm(trace.attention, trace.transformed_gram)
    weighted = weighted_rows(trace.attention, trace.transformed_norm)[:, 0]
    np.testing.assert_allclose(summed, weighted, rtol=1e-12)


def test_the_head_summed_norm_sees_what_is_visible(rng, attention, visible):
    vectors = rng.standard_normal((LAYERS, HEADS, KEYS, 11))
    gram = np.einsum("lhkd,lgkd->lkhg", vectors, vectors)
    visible[:, 6] = False
    expected = head_summed_norm(closed(attention, visible), gram)
    gram[:, 6] = np.nan
    garbage = np.where(visible, closed(attention, visible), np.nan)
    for seen in (visible, np.broadcast_to(visible, attention.shape), visible[None].astype(int)):
        np.testing.assert_allclose(head_summed_norm(garbage, gram, seen), expected, rtol=1e-14)
    nobody = visible.copy()
    nobody[2] = False
    assert np.isnan(head_summed_norm(garbage, gram, nobody)[:, 2]).all()
    with refused("gram", "nan at index (0, 6, 0, 0)"):
        head_summed_norm(attention, gram)
    visible[4, 6] = True
    with refused("gram", "nan at index (0, 6, 0, 0)"):
        head_summed_norm(closed(attention, visible), gram, visible)


def test_heads_that_cancel_are_clamped_at_zero():
    rows = np.array([[[0.1, 0.9]], [[0.1, 0.9]], [[0.1, 0.9]]])
    vector = np.array([1.1, 0.3, 0.7])
    vectors = np.array([vector, vector, -2 * vector])
    gram = np.broadcast_to(vectors @ vectors.T, (2, 3, 3))
    norms = head_summed_norm(rows, gram)
    assert ((norms >= 0) & (norms < 1e-7)).all()


def test_a_form_that_rounding_makes_negative_is_clamped_at_zero(rng):
    # Two heads whose vectors are opposite up to their length, weighted so that they cancel: f, -t f.
    lengths = rng.uniform(0.2, 5, 501)
    first = lengths / (1 + lengths)
    rows = np.array([first, 1 / (1 + lengths)]) / first.sum()
    rows = np.concatenate([rows, 1 - rows.sum(axis=-1, keepdims=True)], axis=-1).clip(0)
    rows /= rows.sum(axis=-1, keepdims=True)
    signs = np.array([np.full(502, 1.0), -rows[0] / rows[1].clip(1e-9)])  # (head, key)
    gram = signs.T[:, :, None] * signs.T[:, None, :]
    at_key = rows.T[:, :, None]
    assert (at_key * (gram @ at_key)).sum(axis=-2).min() < 0
    norms = head_summed_norm(rows[:, None, :], gram)
    assert ((norms >= 0) & (norms < 1e-8)).all()


def test_a_padded_text_has_head_summed_shares():
    mask = np.array([1, 1, 1, 1, 0, 0], bool)
    trace = forward(random_model(), [CLS, 9, 4, SEP, PAD, PAD], mask=mask, keep=KEEP_ALL)
    alone = forward(random_model(), [CLS, 9, 4, SEP], keep=KEEP_ALL)
    summed = head_summed_norm(trace.attention, trace.transformed_gram)
    assert np.isnan(summed[:, 4:]).all()
    expected = weight_share(head_summed_norm(alone.attention, alone.transformed_gram), alone.sink_mask)
    for visible in (None, trace.visible):
        share = weight_share(summed, trace.sink_mask, visible)
        np.testing.assert_allclose(share[:, :4], expected, rtol=1e-12)
        assert np.isnan(share[:, 4:]).all()


@pytest.mark.parametrize("shape", [(2, 7, 3, 4), (7, 3, 3), (2, 3, 3), (2, 3, 7, 7), (2, 5, 3, 3)])
def test_a_gram_of_another_shape_is_refused(attention, shape):
    with refused("gram", "(..., key, head, head)", f"{shape}", "transformed_gram"):
        head_summed_norm(attention, np.zeros(shape))


def test_a_gram_needs_heads(attention):
    with refused("gram"):
        head_summed_norm(attention[0, 0], np.zeros((7, 1, 1)))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_gram_that_is_not_finite_is_refused(attention, wrong):
    gram = np.ones((LAYERS, KEYS, HEADS, HEADS))
    gram[1, 2, 0, 1] = wrong
    with refused("gram", f"{wrong} at index (1, 2, 0, 1)"):
        head_summed_norm(attention, gram)


# --- undeclared sinks -------------------------------------------------------------------------------


def undeclared_by_hand(rows, sinks, real):
    found = []
    for layer in range(rows.shape[0]):
        for key in range(rows.shape[-1]):
            later = [i for i in range(key + 1, rows.shape[-2]) if real[i]]
            if sinks[key] or len(later) < 16:
                continue
            weight = math.fsum(rows[layer, h, i, key] for h in range(rows.shape[1]) for i in later)
            weight /= rows.shape[1] * len(later)
            if weight > 0.3:
                found.append((layer, key, weight))
    return sorted(found, key=lambda item: -item[2])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [0, 3])
def test_undeclared_sinks_against_the_definition(rng, causal, padding):
    count = 29
    real = np.arange(count) < count - padding
    visible = np.outer(real, real) & (np.tri(count, dtype=bool) | (not causal))
    scores = rng.standard_normal((3, 5, count, count))
    scores[0, :, :, 4] += 6
    scores[1, :, :, 9] += 4
    scores[1, :, :, 2] += 4
    scores[2, :, :, 0] += 7
    rows = closed(np.exp(scores), visible | ~real[:, None]) * real[:, None]
    sinks = np.arange(count) == 0
    found, expected = undeclared_sinks(rows, sinks, visible), undeclared_by_hand(rows, sinks, real)
    assert {(0, 4), (1, 9), (1, 2)} == {(layer, key) for layer, key, _ in found}
    assert [item[:2] for item in found] == [item[:2] for item in expected]
    np.testing.assert_allclose([w for *_, w in found], [w for *_, w in expected], rtol=1e-12)


@pytest.mark.parametrize(("rows_after", "reported"), [(15, False), (16, True)])
def test_an_undeclared_sink_needs_sixteen_later_rows(rows_after, reported):
    rows = np.zeros((1, 1, rows_after + 1, rows_after + 1))
    rows[..., 0] = 1
    expected = [(0, 0, 1.0)] if reported else []
    assert undeclared_sinks(rows, np.zeros(rows_after + 1, bool)) == expected


@pytest.mark.parametrize(("weight", "reported"), [(0.295, False), (0.305, True)])
def test_an_undeclared_sink_takes_three_tenths(weight, reported):
    rows = np.zeros((1, 1, 20, 20))
    rows[..., 0], rows[..., 19] = weight, 1 - weight
    assert [item[:2] for item in undeclared_sinks(rows, np.zeros(20, bool))] == [(0, 0)] * reported


def test_a_key_that_only_looks_at_itself_is_no_sink():
    assert undeclared_sinks(np.eye(30)[None, None], np.zeros(30, bool)) == []


def test_declared_sinks_are_not_reported():
    rows = np.zeros((1, 1, 30, 30))
    rows[..., 0] = 1
    assert undeclared_sinks(rows, np.arange(30) == 0) == []


def test_undeclared_sinks_take_one_text(attention):
    with refused("attention", "(layer, head, query, key)"):
        undeclared_sinks(attention[0], SINKS)


@pytest.mark.parametrize("broken_head", [0, 1])
def test_a_row_without_mass_in_one_head_hides_no_sink(broken_head):
    rows = np.zeros((2, 2, 20, 20))
    rows[..., 5] = 1
    rows[0, broken_head, 6:] = 0  # every later query of one head of one layer
    rows[1, broken_head, 10] = 0
    found = undeclared_sinks(rows, np.zeros(20, bool))
    assert found == []  # fourteen later queries
    rows = np.pad(rows, ((0, 0), (0, 0), (0, 2), (0, 0)))
    rows = np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, 2)))
    rows[:, :, 20:, 5] = 1
    rows[0, broken_head, 6:] = 0
    assert undeclared_sinks(rows, np.zeros(22, bool)) == [(0, 5, 1.0), (1, 5, 1.0)]


def test_undeclared_sinks_average_over_the_rows_that_there_are():
    rows = np.zeros((1, 2, 20, 20))
    rows[0, 0, :, 0], rows[0, 0, :, 19] = 0.5, 0.5
    rows[0, 1, :, 0], rows[0, 1, :, 19] = 0.2, 0.8
    rows[0, 1, 4:] = 0
    ((layer, key, weight),) = undeclared_sinks(rows, np.zeros(20, bool))
    assert (layer, key) == (0, 0)
    assert weight == pytest.approx((19 * 0.5 + 3 * 0.2) / 22)
    rows[0, :, 4] = 0  # no head has this query: eighteen are left
    assert len(undeclared_sinks(rows, np.zeros(20, bool))) == 1
    rows[0, :, 5:8] = 0
    assert undeclared_sinks(rows, np.zeros(20, bool)) == []


def test_a_layer_is_judged_by_itself(rng):
    rows = random_rows(rng, 3, 2, 24, 24)
    rows[:, :, :, 3] = rows[:, :, :, 3] + 2
    rows /= rows.sum(axis=-1, keepdims=True)
    rows[0, 1, 9:] = 0
    rows[1, :, 6] = 0
    sinks = np.zeros((3, 1, 1, 24), bool)
    sinks[2, ..., 3] = True
    together = undeclared_sinks(rows, sinks)
    alone = [
        (layer, key, weight)
        for layer in range(3)
        for _, key, weight in undeclared_sinks(rows[layer : layer + 1], sinks[layer : layer + 1])
    ]
    assert sorted(together) == sorted(alone)
    assert {item[:2] for item in together} == {(0, 3), (1, 3)}


def test_undeclared_sinks_do_not_walk_over_single_keys(rng):
    """The calls that are made do not become more with the length of the text."""

    def calls_for(count):
        rows, calls = random_rows(rng, 1, 2, count, count), []
        sys.setprofile(lambda frame, event, argument: calls.append(event) if "call" in event else None)
        try:
            undeclared_sinks(rows, np.zeros(count, bool))
        finally:
            sys.setprofile(None)
        return len(calls)

    calls_for(20)
    assert 20 < calls_for(160) < calls_for(20) + 50  # and 140 more keys


@pytest.mark.timing
def test_undeclared_sinks_are_quick_on_a_long_text(rng):
    rows = random_rows(rng, 2, 12, 512, 512)
    sinks = np.zeros(512, bool)
    undeclared_sinks(rows[:1, :1], sinks)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        undeclared_sinks(rows, sinks)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1


# --- everything at once ---------------------------------------------------------------------------


def test_row_measures_are_the_single_measures(attention, norm, visible):
    norms = {"value_norm": norm, "transformed_norm": norm[..., ::-1]}
    found = oracle.row_measures(closed(attention, visible), SINKS, norms, visible, entropies=True)
    given = (closed(attention, visible), SINKS)
    assert list(found.shares) == ["attention", "value_norm", "transformed_norm"]
    assert list(found.ratios) == ["value_norm", "transformed_norm"]
    np.testing.assert_array_equal(found.shares["attention"], sink_share(*given, None, visible))
    for name, one in norms.items():
        np.testing.assert_array_equal(found.shares[name], sink_share(*given, one, visible))
        np.testing.assert_array_equal(found.ratios[name], norm_odds_ratio(*given, one, visible))
    for one, other in zip(found.entropy, oracle.entropy_split(*given, visible), strict=True):
        np.testing.assert_array_equal(one, other)


def test_row_measures_without_norms_or_entropies(attention):
    found = oracle.row_measures(attention, SINKS)
    assert list(found.shares) == ["attention"]
    assert found.ratios == {}
    assert found.entropy is None


def test_row_measures_refuse_what_the_single_measures_refuse(attention, norm):
    with refused("norms", "other than attention"):
        oracle.row_measures(attention, SINKS, {"attention": norm})
    with refused("value_norm", "at least zero"):
        oracle.row_measures(attention, SINKS, {"value_norm": -norm})
    with refused("attention", "eval mode"):
        oracle.row_measures(attention * 2, SINKS)


def test_a_range_of_keys_stands_for_its_mask_everywhere(attention, norm):
    ranged = oracle.KeyRange(np.array([0, 1, 0, 2, 3]), np.array([7, 5, 3, 2, 7]))
    mask = (ranged.start[:, None] <= np.arange(KEYS)) & (np.arange(KEYS) < ranged.stop[:, None])
    rows = np.nan_to_num(closed(attention, mask | (mask.sum(axis=-1, keepdims=True) == 0)))
    for call in (
        lambda seen: weighted_rows(rows, norm, seen),
        lambda seen: sink_share(rows, SINKS, norm, seen),
        lambda seen: weight_share(rows * 3, SINKS, seen),
        lambda seen: norm_odds_ratio(rows, SINKS, norm, seen),
        lambda seen: value_norm_ratio(norm, SINKS, seen),
        lambda seen: np.array(undeclared_sinks(rows, SINKS, seen)),
    ):
        np.testing.assert_array_equal(call(ranged), call(mask))


def test_a_row_without_mass_passes_on_whatever_its_keys_see(attention, norm, visible):
    attention = np.where(visible, attention, 0)
    attention /= attention.sum(axis=-1, keepdims=True)
    attention[0, 1, 2] = 0
    weights = weighted_rows(attention, norm, visible)
    expected = weight_share(weights, SINKS)
    assert np.isnan(expected).sum() == 1
    np.testing.assert_array_equal(weight_share(weights, SINKS, visible), expected)
    weights[0, 0, 2, 3] = np.nan  # one key of a row that has others
    with refused("weights", "layer 0, head 0, query 2, key 3"):
        weight_share(weights, SINKS, visible)


def test_vectors_in_place_of_norms_are_named(attention, norm):
    with refused("norm", "look like vectors", "np.linalg.norm"):
        sink_share(attention, SINKS, np.repeat(norm[..., None], 8, axis=-1))
