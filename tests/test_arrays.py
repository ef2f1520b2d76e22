from __future__ import annotations

import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import InputTypeError, read_attention, sink_share

torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')

LAYERS, BATCH, HEADS, TOKENS = 2, 3, 5, 7


@pytest.fixture
def five():
    """(layer, batch, head, query, key)"""
    return random_rows(np.random.default_rng(51), LAYERS, BATCH, HEADS, TOKENS, TOKENS)


def assert_read(read, expected):
    """`expected` is (batch, layer, head, query, key)."""
    assert read.attention.shape == expected.shape
    assert read.attention.dtype == np.float64
    np.testing.assert_allclose(read.attention, expected, rtol=1e-14)
    assert read.visible.shape == (len(expected), *expected.shape[-2:])
    assert read.visible.all()
    assert read.undefined == 0


# --- which axis is which ----------------------------------------------------------------------------


def test_a_bare_array_of_four_axes_is_layer_head_query_key(five):
    read = read_attention(five[:, 1])
    assert_read(read, five[None, :, 1])
    assert read.notes == ("axes read as (layer, head, query, key) from shape (2, 5, 7, 7)",)


def test_a_list_of_four_axes_is_one_batch_per_layer(five):
    for given in (list(five), tuple(five), [torch.tensor(layer) for layer in five]):
        read = read_attention(given)
        assert_read(read, five.swapaxes(0, 1))
        assert read.notes[0] == "axes read as (layer, batch, head, query, key) from shape (2, 3, 5, 7, 7)"


def test_a_list_of_three_axes_is_one_text(five):
    assert_read(read_attention(list(five[:, 1])), five[None, :, 1])


def test_five_axes_are_layer_batch_head_query_key(five):
    assert_read(read_attention(five), five.swapaxes(0, 1))


def test_three_axes_are_one_layer_of_one_text(five):
    assert_read(read_attention(five[0, 1]), five[None, :1, 1])


def test_nested_lists_of_numbers_are_an_array(five):
    assert_read(read_attention(five[:, 1].tolist()), five[None, :, 1])


def test_a_layout_overrides_the_reading(five):
    assert_read(read_attention(five[0], layout="batch head query key"), five[0][:, None])
    assert_read(read_attention(five.swapaxes(0, 1), layout="batch layer head query key"), five.swapaxes(0, 1))
    assert_read(
        read_attention(five.transpose(4, 3, 2, 1, 0), layout="key query head batch layer"),
        five.swapaxes(0, 1),
    )
    per_text = list(five.swapaxes(0, 1))
    assert_read(read_attention(per_text, layout="batch layer head query key"), five.swapaxes(0, 1))


@pytest.mark.parametrize(
    "layout",
    ["layer head query", "layer head query token", "batch layer", "layer layer head query key", "bhqk"],
)
def test_layouts_of_other_names_are_refused(five, layout):
    with refused("attention", "layout"):
        read_attention(five[:, 1], layout=layout)
    with refused("attention", "layout"):
        read_attention(list(five), layout=layout)


def test_a_layout_of_another_length_is_refused(five):
    with refused("attention", "the 4 axes of layout 'layer head query key'", "(2, 3, 5, 7, 7)"):
        read_attention(five, layout="layer head query key")
    with refused("attention", "the 4 axes", "(2, 3, 5, 7, 7)"):
        read_attention(list(five), layout="layer head query key")


@pytest.mark.parametrize("shape", [(7, 7), (7,), (1, 1, 1, 1, 7, 7)])
def test_other_numbers_of_axes_are_refused(shape):
    with refused("attention", "3 to 5 axes", f"{shape}", "layout="):
        read_attention(np.full(shape, 1 / 7))


def test_layers_of_other_shapes_are_refused(five):
    with refused("attention", "a list of (batch, head, query, key)", "(7, 7)"):
        read_attention([five[0, 0, 0]])
    with refused("attention", "one shape for all layers", "(3, 5, 7, 7)", "(2, 5, 7, 7)"):
        read_attention([five[0], five[1, :2]])


def test_more_queries_than_keys_are_refused(five):
    with refused(
        "attention",
        "as many queries as keys, 6",
        "7 queries",
        "(layer, head, query, key) from shape (2, 5, 7, 6)",
    ):
        read_attention(five[:, 1, :, :, :-1])


def test_sizes_that_agree_are_read(five):
    read = read_attention(list(five), n_keys=TOKENS, n_layers=LAYERS, n_heads=HEADS)
    assert_read(read, five.swapaxes(0, 1))
    assert_read(read_attention(five[0, 1], n_layers=1), five[None, :1, 1])


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"n_keys": 9}, ["9 on the query axis and 9 on the key axis", "found 7 and 7"]),
        ({"n_layers": 3}, ["3 on the layer axis", "found 2"]),
        ({"n_heads": 4}, ["4 on the head axis", "found 5"]),
    ],
)
def test_sizes_that_contradict_are_refused_with_the_readings(five, known, words):
    four = "(layer, head, query, key) or (batch, head, query, key)"
    with refused("attention", *words, "layout=", four):
        read_attention(five[:, 1], **known)
    with refused("attention", *words, "(layer, batch, head, query, key) or (batch, layer, head, query, key)"):
        read_attention(five, **known)


# --- what is not there ------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, [None, None], (None,), (), []])
def test_missing_rows_say_how_to_get_them(given):
    with refused("attention", "one array of rows per layer", 'attn_implementation="eager"'):
        read_attention(given)


def test_what_is_no_array_is_a_type_error():
    with refused("attention", error=InputTypeError):
        read_attention("rows.npz")


# --- what is visible --------------------------------------------------------------------------------


def causal_rows(count=6, seed=52):
    rows = random_rows(np.random.default_rng(seed), LAYERS, HEADS, count, count) * np.tri(count)
    return rows / rows.sum(axis=-1, keepdims=True)


def test_an_upper_triangle_of_zeros_is_taken_as_causal():
    read = read_attention(causal_rows())
    np.testing.assert_array_equal(read.visible[0], np.tri(6, dtype=bool))
    assert "the upper triangle is zero in every head: taken as causal" in read.notes
    almost = causal_rows()
    almost[1, 2, 0, 5] = almost[1, 2, 0, 0] / 2
    almost[1, 2, 0, 0] /= 2
    read = read_attention(almost)
    assert read.visible.all()
    assert len(read.notes) == 1


def test_columns_of_zeros_are_taken_as_padding():
    rows = np.zeros((LAYERS, HEADS, 6, 6))
    rows[..., :4, :4] = random_rows(np.random.default_rng(53), LAYERS, HEADS, 4, 4)
    rows[..., 4:, :4] = 0.25
    read = read_attention(rows)
    real = np.arange(6) < 4
    np.testing.assert_array_equal(read.visible[0], np.outer(real, real))
    assert "2 columns are zero in every head and row: taken as padding" in read.notes
    assert (read.attention[..., 4:, :] == 0).all()
    assert read.undefined == 0


def test_padding_is_found_text_by_text():
    rows = random_rows(np.random.default_rng(54), LAYERS, 2, HEADS, 5, 5)
    rows[:, 1, :, :, 4] = 0
    rows /= rows.sum(axis=-1, keepdims=True)
    read = read_attention(list(rows))
    assert read.visible[0].all()
    np.testing.assert_array_equal(read.visible[1], np.outer([1, 1, 1, 1, 0], [1, 1, 1, 1, 0]).astype(bool))


def test_a_single_token_is_not_causal():
    read = read_attention(np.ones((LAYERS, HEADS, 1, 1)))
    assert read.visible.all()
    assert len(read.notes) == 1


def test_given_visibility_is_used_and_nothing_is_guessed(five):
    for seen in (np.tri(TOKENS), np.tri(TOKENS, dtype=bool)[None], torch.tensor(np.tri(TOKENS)).bool()):
        rows = five[:, 0] * np.tri(TOKENS)
        rows /= rows.sum(axis=-1, keepdims=True)
        read = read_attention(rows, visible=seen)
        np.testing.assert_array_equal(read.visible[0], np.tri(TOKENS, dtype=bool))
        assert len(read.notes) == 1


def test_visibility_may_differ_by_text(five):
    seen = np.ones((BATCH, TOKENS, TOKENS), bool)
    seen[1] = np.outer(np.arange(TOKENS) < 4, np.arange(TOKENS) < 4)
    rows = np.where(seen[:, None], five, 0)
    rows = rows / np.maximum(rows.sum(axis=-1, keepdims=True), 1e-300)
    read = read_attention(list(rows), visible=seen)
    np.testing.assert_array_equal(read.visible, seen)
    np.testing.assert_allclose(read.attention[1], rows[:, 1], rtol=1e-14)
    assert read.undefined == 0


def test_what_stands_where_nothing_is_visible_does_not_matter(five):
    real = np.arange(TOKENS) < 5
    seen = np.outer(real, real)
    rows = np.where(seen, five[:, 1], 0)
    rows[..., :5, :] /= rows[..., :5, :].sum(axis=-1, keepdims=True)
    broken = np.where(seen, rows, np.nan)
    np.testing.assert_array_equal(
        read_attention(broken, visible=seen).attention, read_attention(rows, visible=seen).attention
    )


@pytest.mark.parametrize(
    "shape", [(6,), (), (2, 5, 7, 7), (6, 6), (2, 7, 7), (7, 1), (2, 7), (3, 1, 7), (1, 1, 7)]
)
def test_visibility_of_other_shapes_is_refused(five, shape):
    with refused("visible", f"{shape}"):
        read_attention(list(five), visible=np.ones(shape, bool))


def test_a_mask_of_real_tokens_says_nothing_of_causality():
    rows = causal_rows()
    expected = read_attention(rows)
    for real in (np.ones(6), np.ones((1, 6), bool)):
        read = read_attention(rows, visible=real)
        np.testing.assert_array_equal(read.visible, expected.visible)
        assert read.notes == expected.notes
    left = np.full((1, 2, HEADS, 6, 6), 1 / 6)  # Hugging Face's rows of padding on the left: even, or NaN
    left[0, :, :, 2:] = np.where(np.arange(6) < 2, 0, causal_rows()[..., 2:, :])
    left[0, :, :, 2:] /= left[0, :, :, 2:].sum(axis=-1, keepdims=True)
    left[0, 1, :, 0] = np.nan
    read = read_attention(left[0], visible=np.arange(6) >= 2)
    np.testing.assert_array_equal(
        read.visible[0], np.tri(6, dtype=bool) & np.outer(np.arange(6) >= 2, np.arange(6) >= 2)
    )
    assert read.notes[1:] == ("the upper triangle is zero in every head: taken as causal",)
    alone = np.arange(6) == 2  # one token says nothing of a triangle
    assert len(read_attention(np.eye(6)[None, None], visible=alone).notes) == 1


def test_a_mask_per_text_is_never_stretched_over_queries(five):
    real = np.arange(TOKENS) < np.array([[7], [5], [6]])
    rows = five * real[:, None, None, :]
    rows /= rows.sum(axis=-1, keepdims=True)
    read = read_attention(list(rows), visible=real)
    np.testing.assert_array_equal(read.visible, real[:, :, None] & real[:, None, :])
    with refused("visible", "(3, 1, 7)", "mask[:, :, None] & mask[:, None, :]"):
        read_attention(list(rows), visible=real[:, None, :])
    square = random_rows(np.random.default_rng(5), 1, 4, 1, 4, 4)
    with refused("visible", "(query, key) or, for 4 texts, (batch, key)", "mask[None]"):
        read_attention(square, visible=np.ones((4, 4)))
    assert read_attention(square, visible=np.ones((1, 4, 4))).visible.all()


# --- what is closed, undefined, refused --------------------------------------------------------------


def test_rows_are_closed_and_counted(five):
    rows = five[:, 1].copy()
    rows[0, 3, 2] *= 1.004
    rows[1, 0, 6] *= 0.993
    read = read_attention(rows)
    assert read.closed == 2
    assert "rows closed to sum to one: 2, the largest deviation 7.0e-03" in read.notes
    np.testing.assert_allclose(read.attention, five[None, :, 1], rtol=1e-14)


def test_a_batch_that_is_read_as_layers_is_warned_of():
    """Hugging Face's rows of one layer, two texts of which the second is padded, as a bare 4-D array."""
    batch = random_rows(np.random.default_rng(8), 2, 3, 6, 6)
    batch[1, :, :, 4:] = 0
    batch /= batch.sum(axis=-1, keepdims=True)

    def warned(attention, **options):
        return [note for note in read_attention(attention, **options).notes if note.startswith("WARNING")]

    (warning,) = warned(batch)
    assert 'layout="batch head query key"' in warned(batch)[0] == warning
    assert warned(batch, layout="batch head query key") == []
    assert warned(batch, layout="layer head query key") == []
    assert warned(batch, visible=np.ones((6, 6), bool)) == []
    assert warned(list(batch)) == warned(batch[None]) == warned(batch[:1]) == warned(batch[1:]) == []
    whole = batch.copy()
    whole[1] = 0  # a layer without any mass is no padding
    assert warned(whole) == []


@pytest.mark.parametrize("count", [2, 512])
def test_rounding_is_not_counted_as_closing(count):
    rows = random_rows(np.random.default_rng(55), 1, 2, count, count)
    assert read_attention(rows).closed == 0


def test_rows_without_mass_are_zeros_and_counted(five):
    rows = five[:, 1].copy()
    rows[1, 2, 3] = 0
    read = read_attention(rows)
    assert read.undefined == 1
    assert read.closed == 0
    assert "rows without mass, undefined: 1" in read.notes
    assert (read.attention[0, 1, 2, 3] == 0).all()
    assert np.isnan(sink_share(read.attention, np.arange(TOKENS) == 0)).sum() == 1


def test_refusals_name_the_text_the_layer_the_head_and_the_query(five):
    rows = five.copy()
    rows[1, 2, 4, 6] *= 0.945
    with refused("attention", "a sum of 0.945 at text 2, layer 1, head 4, query 6", "eval mode"):
        read_attention(list(rows))
    rows[1, 2, 4, 6, 3] = np.inf
    rows[1, 2, 4, 6, 5] = -np.inf
    with refused("attention", "inf at text 2, layer 1, head 4, query 6, key 3 (2 in all)"):
        read_attention(list(rows))


# --- kinds of arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32", "float64", "longdouble"])
def test_every_float_is_widened_exactly(five, dtype):
    given = five.astype(dtype)
    wide = np.longdouble if dtype == "longdouble" else np.float64
    read = read_attention(list(given))
    assert read.attention.dtype == wide
    exact = given.astype(wide).swapaxes(0, 1)
    np.testing.assert_allclose(read.attention, exact / exact.sum(axis=-1, keepdims=True), rtol=0, atol=1e-15)


def test_the_input_is_not_changed_and_may_be_read_only_or_strided(five):
    before, expected = five.copy(), read_attention(five).attention
    five.flags.writeable = False
    strided = np.repeat(five, 2, axis=-1)[..., ::2]
    for given in (five, strided, np.asfortranarray(five), list(five)):
        np.testing.assert_array_equal(read_attention(given).attention, expected)
    np.testing.assert_array_equal(five, before)
    assert read_attention(five).attention.flags.writeable


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("visible", [None, np.ones((96, 96), bool)])
def test_nothing_of_the_results_size_is_made_but_the_result(listed, visible):
    rows = random_rows(np.random.default_rng(56), 8, 2, 5, 96, 96).astype(np.float32)
    given = list(rows) if listed else rows
    tracemalloc.start()
    try:
        read = read_attention(given, visible=visible)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.25 * read.attention.nbytes


def test_the_axes_of_the_input_are_a_field(five):
    assert read_attention(five[:, 1]).axes == ("layer", "head", "query", "key")
    assert read_attention(list(five)).axes == ("layer", "batch", "head", "query", "key")
    assert read_attention(five[0], layout="batch head query key").axes == ("batch", "head", "query", "key")


def test_rows_at_the_edge_of_closing_are_read_in_every_float(five):
    for dtype in ("float16", "float32", "float64"):
        rows = (five[:, 1] * 0.99).astype(dtype)
        assert read_attention(rows).closed == rows[..., 0].size


@pytest.mark.parametrize("shape", [(2, 5, 0, 0), (0, 5, 7, 7), (2, 0, 7, 7), (2, 0, 5, 7, 7)])
@pytest.mark.parametrize("with_visible", [False, True])
def test_arrays_without_elements(shape, with_visible):
    seen = np.ones(shape[-2:], bool) if with_visible else None
    read = read_attention(np.zeros(shape), visible=seen)
    assert read.attention.size == 0
    assert read.attention.ndim == 5
    assert read.visible.shape == (len(read.attention), *shape[-2:])
    assert (read.closed, read.undefined) == (0, 0)
