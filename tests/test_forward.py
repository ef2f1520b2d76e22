from __future__ import annotations

import tracemalloc
from dataclasses import replace

import naive
import numpy as np
import pytest
from oracle_models import CLS, PAD, SEP, letter_tokenizer, random_model
from wording import refused

from oracle import forward, forward_batch
from oracle.block import embed, feed_forward
from oracle.trace import KEEP_ALL

IDS = [CLS, 9, 4, 44, 21, 17, SEP]
STAGES = [
    "hidden_states",
    "queries",
    "keys",
    "values",
    "scores",
    "attention",
    "value_norm",
    "transformed_norm",
]
# Longest sum: d_ff or d_model products of numbers near 10, through two layers.
BOUND = {"float32": 2e-4, "float64": 4e-13, "longdouble": 4e-13}


@pytest.fixture(scope="module")
def model():
    return random_model()


def assert_same(left, right, keep_left, keep_right):
    """Every array of two traces agrees on the given tokens, to a few roundings of its largest number."""
    for name in KEEP_ALL:
        a, b = getattr(left, name), getattr(right, name)
        for axis, size in reversed(list(enumerate(a.shape))):
            if size == len(keep_left) and axis > 0:
                a = np.compress(keep_left, a, axis=axis)
                b = np.compress(keep_right, b, axis=axis)
        bound = 64 * np.finfo(np.float64).eps * max(1.0, np.abs(b).max())
        np.testing.assert_allclose(a, b, rtol=0, atol=bound, err_msg=name)


def test_the_random_model_has_peaked_rows(model):
    rows = np.array(naive.forward(model, IDS, [0] * 7)["attention"])
    assert (rows.max(axis=-1) > 0.5).mean() > 0.5


@pytest.mark.parametrize("dtype", list(BOUND))
def test_every_stage_against_the_definition(model, dtype):
    types = [0, 0, 1, 1, 2, 2, 0]
    expected = naive.forward(model, IDS, types)
    trace = forward(model.astype(dtype), IDS, token_types=types)
    for stage in STAGES:
        np.testing.assert_allclose(
            getattr(trace, stage), expected[stage], rtol=0, atol=BOUND[dtype], err_msg=stage
        )


def test_the_gram_is_that_of_the_transformed_vectors(model):
    vectors = naive.forward(model, IDS, [0] * 7)["transformed"]  # (layer, head, key, d_model)
    gram = forward(model, IDS, keep=("transformed_gram",)).transformed_gram
    np.testing.assert_allclose(gram, np.einsum("lhjd,lgjd->ljhg", vectors, vectors), atol=1e-12)


def test_norms_of_a_float32_model_are_summed_in_float64(model):
    narrow = model.astype("float32")
    trace = forward(narrow, IDS)
    for layer, head, token in np.ndindex(trace.value_norm.shape):
        vector = trace.values[layer, head, token]
        assert trace.value_norm[layer, head, token] == pytest.approx(
            np.sqrt(naive.dot(vector, vector)), rel=1e-15
        )
    weight = narrow.layers[0].output.weight[:5]
    vectors = (trace.values[0, 0] @ weight).astype(np.float64)
    expected = [np.sqrt(naive.dot(vector, vector)) for vector in vectors]
    np.testing.assert_allclose(trace.transformed_norm[0, 0], expected, rtol=1e-6)


def test_longdouble_is_nearer_to_itself_than_float64(model):
    wide = forward(model.astype("longdouble"), IDS).attention
    narrow = forward(model, IDS).attention
    error = np.abs(wide - narrow).max()
    assert 0 < error < 1e-14


@pytest.mark.parametrize("dtype", list(BOUND))
def test_rows_sum_to_one(model, dtype):
    sums = forward(model.astype(dtype), IDS).attention.sum(axis=-1)
    np.testing.assert_allclose(sums, 1, rtol=0, atol=8 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("side", ["left", "right", "both", "between"])
def test_padding_changes_nothing(model, side):
    mask = {
        "left": [0, 0, 0, 1, 1, 1, 1, 1, 1, 1],
        "right": [1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
        "both": [0, 1, 1, 1, 1, 1, 1, 1, 0, 0],
        "between": [1, 1, 0, 1, 1, 0, 1, 1, 0, 1],
    }[side]
    mask = np.array(mask, bool)
    padded, types = np.full(10, PAD), np.full(10, 1)
    padded[mask], types[mask] = IDS, [0, 2, 2, 1, 1, 0, 0]
    alone = forward(model, IDS, token_types=types[mask], keep=KEEP_ALL)
    trace = forward(model, padded, mask=mask, token_types=types, keep=KEEP_ALL)
    assert_same(trace, alone, mask, np.ones(7, bool))
    np.testing.assert_array_equal(trace.mask, mask)
    np.testing.assert_array_equal(trace.sink_mask[mask], alone.sink_mask)
    assert not trace.sink_mask[~mask].any()


def test_padding_is_invisible(model):
    mask = np.array([0, 1, 1, 1, 0], bool)
    trace = forward(model, [PAD, CLS, 9, SEP, PAD], mask=mask)
    np.testing.assert_array_equal(trace.visible, np.outer(mask, mask))
    assert (trace.attention[..., ~trace.visible] == 0).all()
    assert np.isneginf(trace.scores[..., ~trace.visible]).all()
    assert np.isfinite(trace.hidden_states).all()


def test_what_stands_at_padding_does_not_matter(model):
    mask = [1, 1, 1, 0]
    first, second = (forward(model, [CLS, 9, SEP, filler], mask=mask) for filler in (PAD, 55))
    np.testing.assert_array_equal(first.attention, second.attention)


def test_a_text_of_padding_only_has_no_rows(model):
    trace = forward(model, [PAD, PAD], mask=[0, 0])
    assert (trace.attention == 0).all()
    assert not trace.visible.any()
    assert not trace.sink_mask.any()


def test_a_batch_equals_its_texts(model):
    texts = [IDS, [CLS, 33, SEP], [CLS, 5, 6, 7, SEP]]
    for left in (False, True):
        ids, mask = np.full((3, 9), PAD), np.zeros((3, 9), bool)
        for row, text in enumerate(texts):
            at = slice(9 - len(text), 9) if left else slice(0, len(text))
            ids[row, at], mask[row, at] = text, True
        traces = forward_batch(model, ids, mask, keep=KEEP_ALL)
        assert len(traces) == 3
        for text, real, trace in zip(texts, mask, traces, strict=True):
            alone = forward(model, text, keep=KEEP_ALL)
            assert_same(trace, alone, real, np.ones(len(text), bool))
            np.testing.assert_array_equal(trace.token_ids[real], text)


def test_a_batch_passes_its_options_on(model):
    ids, mask, types = [[CLS, 9, 8]] * 2, [[1, 1, 1]] * 2, [[0, 1, 2], [0, 0, 0]]
    first, second = forward_batch(model, ids, mask, token_types=types, sink="1", keep="attention,keys")
    np.testing.assert_array_equal(first.attention, forward(model, ids[0], token_types=types[0]).attention)
    assert np.abs(first.keys - second.keys).max() > 0.01
    assert first.sink_mask.tolist() == [False, True, False]
    with refused("trace.scores"):
        _ = first.scores


def test_a_batch_names_the_text_whose_sink_is_padding(model):
    with refused("sink", "position 0, which is padding; the first real token is 1", "(text 1 of the batch)"):
        forward_batch(model, [[CLS, 9, 8], [PAD, CLS, 9]], [[1, 1, 1], [0, 1, 1]], sink=[0])


def test_a_batch_of_no_texts_is_no_traces(model):
    assert forward_batch(model, np.zeros((0, 5), int), np.zeros((0, 5), bool)) == []


@pytest.mark.parametrize(
    ("ids", "mask"), [([[2, 9]], [[1]]), ([2, 9], [1, 1]), ([[2, 9]], [1, 1]), ([[[2]]], [[[1]]])]
)
def test_batches_of_other_shapes_are_refused(model, ids, mask):
    with refused("mask", "(batch, token)"):
        forward_batch(model, ids, mask)


def test_a_ragged_batch_is_refused(model):
    with refused("token_ids", "Pad"):
        forward_batch(model, [[2, 9], [2]], [[1, 1], [1, 0]])


@pytest.mark.parametrize("types", [[[0, 0]], [0, 0], [[0], [0]], 0])
def test_token_types_of_another_shape_than_the_batch_are_refused(model, types):
    with refused("token_types", "(2, 2)"):
        forward_batch(model, [[2, 9], [2, 3]], [[1, 1], [1, 1]], token_types=types)


def test_token_types_change_the_embeddings(model):
    plain, typed = (forward(model, IDS, token_types=t).hidden_states[0] for t in (None, [0] * 6 + [1]))
    np.testing.assert_array_equal(plain[:6], typed[:6])
    assert np.abs(plain[6] - typed[6]).max() > 0.1


def test_the_order_of_tokens_matters_through_positions_only(model):
    swapped = [IDS[0], *reversed(IDS[1:-1]), IDS[-1]]
    assert np.abs(forward(model, IDS).attention - forward(model, swapped).attention).max() > 0.01
    table = replace(model.embeddings, positions=np.zeros_like(model.embeddings.positions))
    blind = replace(model, embeddings=table)
    order = [0, 5, 4, 3, 2, 1, 6]
    first, second = forward(blind, IDS).attention, forward(blind, swapped).attention
    np.testing.assert_allclose(first[:, :, order][:, :, :, order], second, rtol=0, atol=1e-13)


def test_no_tokens_and_one_token(model):
    empty, single = forward(model, [], keep=KEEP_ALL), forward(model, [9], keep=KEEP_ALL)
    assert empty.attention.shape == (2, 3, 0, 0)
    assert empty.hidden_states.shape == (3, 0, 13)
    assert empty.value_norm.shape == (2, 3, 0)
    np.testing.assert_array_equal(single.attention, np.ones((2, 3, 1, 1)))


def test_a_text_longer_than_the_positions_is_refused_and_never_cut(model):
    assert len(forward(model, [9] * 37, keep=()).tokens) == 37
    with refused("text", "at most 37 tokens, the positions of random", "38 tokens", "truncate"):
        forward(model, [9] * 38)
    with refused("text", "at most 37 tokens", "42 tokens"):
        forward(replace(model, tokenizer=letter_tokenizer()), "a " * 40)


def test_truncation_is_a_named_option(model):
    long = [CLS, *[9] * 50, SEP]
    assert forward(model, long, truncate=True, keep=()).token_ids.tolist() == long[:37]
    text = forward(replace(model, tokenizer=letter_tokenizer()), "a " * 50, truncate=True, keep=())
    assert text.tokens == ("[CLS]", *["a"] * 35, "[SEP]")


def test_truncation_beside_a_mask_is_refused(model):
    for beside in ({"mask": [1] * 40}, {"token_types": [0] * 40}):
        with refused("truncate", "Cut all of them"):
            forward(model, [9] * 40, truncate=True, **beside)


def test_padding_does_not_count_towards_the_length(model):
    ids, mask = np.full(80, 9), np.arange(80) >= 43
    trace = forward(model, ids, mask=mask, keep=("attention",))
    alone = forward(model, ids[mask], keep=("attention",))
    np.testing.assert_allclose(trace.attention[:, :, 43:, 43:], alone.attention, rtol=0, atol=2e-14)


def test_the_sink_set_is_a_choice(model):
    for sink, expected in (
        ("special", [0, 6]),
        ("first", [0]),
        ("none", []),
        ("2,4", [2, 4]),
        ("token:#44", [3]),
    ):
        assert np.flatnonzero(forward(model, IDS, sink=sink, keep=()).sink_mask).tolist() == expected


def test_inputs_are_read_only_for_the_forward_pass(model):
    given = [np.array(IDS), np.ones(7, bool), np.zeros(7, int)]
    for array in given:
        array.flags.writeable = False
    ids, mask, types = given
    for layer in model.layers:
        layer.query.weight.flags.writeable = False
        layer.query.bias.flags.writeable = False
    trace = forward(model, ids, mask=mask, token_types=types)
    assert not np.shares_memory(trace.token_ids, ids)


def test_strided_ids_are_read_like_their_copy(model):
    spread = np.repeat(IDS, 2)[::2]
    np.testing.assert_array_equal(forward(model, spread).attention, forward(model, IDS).attention)


def test_embed_sums_the_three_tables(model):
    table = model.embeddings
    result = embed(table, np.array([7, 8]), np.array([1, 0]), np.array([2, 1]), 1e-12)
    for row, (token, place, kind) in zip(result, [(7, 1, 2), (8, 0, 1)], strict=True):
        total = naive.add(table.words[token], table.positions[place], table.token_types[kind])
        np.testing.assert_allclose(row, naive.layer_norm(total, *table.norm, 1e-12), atol=1e-14)


def test_the_configuration_decides_the_activation(model):
    x = np.random.default_rng(9).standard_normal((2, 13))
    layer = model.layers[0]
    exact, tanh, relu = (feed_forward(x, layer, name) for name in ("gelu", "gelu_new", "relu"))
    by_hand = [naive.affine([max(u, 0.0) for u in naive.affine(row, *layer.up)], *layer.down) for row in x]
    np.testing.assert_allclose(relu, by_hand, rtol=0, atol=1e-13)
    assert 1e-6 < np.abs(exact - tanh).max() < 1e-2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_512_token_text_needs_at_most_four_times_its_attention(dtype):
    model = random_model(
        n_layers=6, n_heads=12, d_head=32, d_model=384, d_ff=1536, max_positions=512, spread=0.05
    ).astype(dtype)
    ids = np.random.default_rng(0).integers(0, 61, 512)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        trace = forward(model, ids)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert trace.attention.nbytes == 6 * 12 * 512 * 512 * np.dtype(dtype).itemsize
    assert 2 * trace.attention.nbytes < peak <= 4 * trace.attention.nbytes
