from __future__ import annotations

import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import InputTypeError
from oracle._checks import ROW_SUM_SLACK, check_norm, check_norm_values, first_place, row_place, seen_keys
from oracle._results import KeyRange
from oracle.rows import check_rows, check_sinks, check_visible, check_weights

torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')


@pytest.fixture
def rng():
    return np.random.default_rng(21)


@pytest.mark.parametrize(
    ("given", "wide"),
    [
        ("float16", np.float64),
        (ml_dtypes.bfloat16, np.float64),
        ("float32", np.float64),
        ("float64", np.float64),
        ("longdouble", np.longdouble),
    ],
)
def test_rows_are_widened_closed_and_left_alone(rng, given, wide):
    attention = random_rows(rng, 2, 3, 5, 7).astype(given)
    before = attention.copy()
    attention.flags.writeable = False
    rows = check_rows(attention)
    assert rows.dtype == wide
    np.testing.assert_allclose(rows.sum(axis=-1), 1, rtol=0, atol=8 * float(np.finfo(wide).eps))
    widened = before.astype(wide)
    np.testing.assert_allclose(rows, widened / widened.sum(axis=-1, keepdims=True), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(attention, before)


def test_lists_and_tensors_are_rows_too():
    expected = [[0.25, 0.75], [0.5, 0.5]]
    for given in (expected, torch.tensor(expected), torch.tensor(expected).bfloat16()):
        np.testing.assert_array_equal(check_rows(given), expected)


def test_a_strided_view_is_read_like_its_copy(rng):
    view = random_rows(rng, 6, 4, 4)[::2].transpose(0, 2, 1).swapaxes(-1, -2)
    np.testing.assert_array_equal(check_rows(view), check_rows(view.copy()))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3, 3), (0, 2, 3, 3)])
def test_arrays_without_elements(shape):
    assert check_rows(np.zeros(shape)).shape == shape


def test_a_row_of_zeros_is_undefined():
    rows = check_rows([[0.0, 0.0], [0.5, 0.5]])
    assert np.isnan(rows[0]).all()
    np.testing.assert_array_equal(rows[1], [0.5, 0.5])


def test_what_is_not_visible_is_zero_whatever_it_was():
    rows = check_rows([[0.5, 0.5, np.nan], [1.0, 7.0, -3.0]], [[1, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(rows, [[0.5, 0.5, 0], [1, 0, 0]])


def test_a_row_that_sees_nothing_is_undefined():
    rows = check_rows([[0.5, 0.5], [0.5, 0.5]], [[True, True], [False, False]])
    assert np.isnan(rows[1]).all()
    assert not np.isnan(rows[0]).any()


def test_rows_within_a_hundredth_of_one_are_closed():
    rows = check_rows([[0.495, 0.4955], [0.504, 0.505]])
    np.testing.assert_allclose(rows.sum(axis=-1), 1, rtol=1e-15)
    np.testing.assert_allclose(rows[0], np.array([0.495, 0.4955]) / 0.9905)


@pytest.mark.parametrize("total", [1 - 1.01 * ROW_SUM_SLACK, 1 + 1.01 * ROW_SUM_SLACK, 1e-300, 0.5, 2.0])
def test_other_sums_are_refused(total):
    with refused("attention", "0.01", f"{total:.6g}", "query 1", "eval mode"):
        check_rows([[0.5, 0.5], [total / 2, total / 2]])


@pytest.mark.parametrize("total", [1 - ROW_SUM_SLACK, 1 + ROW_SUM_SLACK])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ml_dtypes.bfloat16])
def test_rows_at_the_edge_are_closed_whatever_their_rounding(rng, total, dtype):
    rows = (random_rows(rng, 400, 9) * total).astype(dtype)
    sums = np.abs(rows.astype(np.longdouble).sum(axis=-1) - 1)
    assert (sums > np.longdouble(ROW_SUM_SLACK)).any()  # some are beyond, by rounding alone
    np.testing.assert_allclose(check_rows(rows).sum(axis=-1), 1, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("total", [1 - ROW_SUM_SLACK - 1e-6, 1 + ROW_SUM_SLACK + 1e-6])
def test_rows_just_beyond_the_edge_are_refused(rng, total, dtype):
    with refused("attention", "within 0.01"):
        check_rows((random_rows(rng, 4, 9) * total).astype(dtype))


def test_the_place_of_a_wrong_weight_costs_no_list_of_all():
    rows = np.full((1000, 1000), -1.0)
    tracemalloc.start()
    try:
        with refused("attention", "-1.0 at query 0, key 0 (1000000 in all)"):
            check_rows(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


@pytest.mark.parametrize("wrong", [[[False, True], [True, True]], [[True, False], [False, False]]])
def test_the_first_place_is_that_of_the_first_true(wrong):
    assert first_place(np.array(wrong)) == tuple(np.argwhere(wrong)[0])


def test_the_worst_row_is_named(rng):
    attention = random_rows(rng, 3, 2, 4, 5)
    attention[0, 1, 2] *= 1.03
    attention[2, 0, 3] *= 0.95
    with refused("attention", "0.95 at layer 2, head 0, query 3, the worst of 2"):
        check_rows(attention)


def test_a_sum_that_overflows_is_refused_without_a_warning():
    with refused("attention", "a sum of inf"):
        check_rows([[1e308, 1e308]])


@pytest.mark.parametrize("wrong", [-1e-9, np.nan, np.inf, -np.inf])
def test_a_wrong_weight_is_refused_with_its_place(rng, wrong):
    attention = random_rows(rng, 2, 3, 4, 5)
    attention[1, 2, 3, 4] = wrong
    with refused("attention", f"{wrong} at layer 1, head 2, query 3, key 4 (1 in all)"):
        check_rows(attention)


def test_a_single_row_needs_a_query_axis():
    with refused("attention", "(..., query, key)", "attention[None, :]"):
        check_rows([0.5, 0.5])


def test_numbers_are_needed():
    with refused("attention", error=InputTypeError):
        check_rows([["a", "b"]])


def test_masks_broadcast_against_rows():
    rows = np.zeros((2, 3, 4, 5))
    for shape in [(5,), (4, 5), (1, 5), (3, 4, 5), (3, 1, 5), (2, 3, 4, 5)]:
        assert check_visible(np.ones(shape, bool), rows).shape == shape
        assert check_sinks(np.ones(shape, int), rows).dtype == bool
    assert check_sinks(torch.tensor([True] * 5), rows).all()
    assert check_sinks([0.0, 1.0, 0.0, 0.0, 1.0], rows).tolist() == [False, True, False, False, True]


@pytest.mark.parametrize("shape", [(4,), (5, 5), (2, 4, 5), (1, 2, 3, 4, 5), (1,), ()])
def test_masks_of_other_shapes_are_refused(shape):
    rows = np.zeros((2, 3, 4, 5))
    for argument, check in (("sink_mask", check_sinks), ("visible", check_visible)):
        with refused(argument, "(2, 3, 4, 5)", f"shape {shape}"):
            check(np.ones(shape, bool), rows)


def test_a_position_is_not_taken_for_a_mask():
    with refused("sink_mask", "shape (1,)"):
        check_sinks([0], np.zeros((4, 5)))
    with refused("sink_mask", "found 4", "not positions"):
        check_sinks([0, 4], np.zeros((4, 5)))


@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan])
def test_masks_of_other_values_are_refused(value):
    with refused("visible", "True or False", str(value)):
        check_visible([1, 0, value], np.zeros((2, 3)))


@pytest.mark.parametrize("mask", [["a", "b", "c"], None])
def test_masks_of_other_kinds_are_type_errors(mask):
    with refused("sink_mask", error=InputTypeError):
        check_sinks(mask, np.zeros((2, 3)))


def test_ragged_masks_are_refused():
    with refused("visible", "rectangular"):
        check_visible([[True], [True, False]], np.zeros((2, 2)))


def test_a_range_of_keys_is_the_mask_it_stands_for():
    rows = np.zeros((2, 3, 5))
    seen = check_visible(KeyRange(np.array([0, 1, 4]), np.array([5, 3, 4])), rows)
    np.testing.assert_array_equal(seen, [[1, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(check_visible(KeyRange.causal(5), np.zeros((5, 5))), np.tri(5))
    window = check_visible(KeyRange.causal(5, 2), np.zeros((5, 5)))
    np.testing.assert_array_equal(window, np.tri(5) - np.tri(5, k=-2))
    assert check_visible(KeyRange([3], [1]), np.zeros((1, 5))).sum() == 0
    assert check_visible(KeyRange([], []), np.zeros((0, 5))).shape == (0, 5)
    assert check_visible(KeyRange([0, 0], [0, 0]), np.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_keys_that_are_seen_are_those_of_the_mask(seed):
    rng = np.random.default_rng(seed)
    ranged = KeyRange(*rng.integers(0, 10, (2, 3)))  # some are empty, some end before they begin
    mask = check_visible(ranged, np.zeros((3, 9)))
    np.testing.assert_array_equal(seen_keys(ranged, (3, 9)), mask.any(axis=0))
    np.testing.assert_array_equal(seen_keys(mask, (2, 3, 9)), mask.any(axis=0))
    np.testing.assert_array_equal(seen_keys(mask[0], (2, 3, 9)), mask[0])
    assert not seen_keys(mask[0], (0, 9)).any()


@pytest.mark.parametrize(
    ("start", "stop", "argument", "words"),
    [
        ([0, 0, 0], [1, 2], "visible.start", "each of 2 queries"),
        ([0, 0], [1], "visible.stop", "int64 of shape (1,)"),
        (0, [1, 2], "visible.start", "shape ()"),
        ([0.0, 1.0], [1, 2], "visible.start", "float64 of shape (2,)"),
        ([0, -1], [1, 2], "visible.start", "-1 at query 1 (1 in all)"),
        ([0, 0], [9, 6], "visible.stop", "found 9 at query 0 (2 in all)"),
        ([6, 0], [1, 2], "visible.start", "bounds from 0 to 5, the number of keys"),
    ],
)
def test_wrong_ranges_are_refused(start, stop, argument, words):
    for check in (check_visible, lambda visible, rows: check_rows(rows, visible)):
        with refused(argument, words):
            check(KeyRange(np.array(start), np.array(stop)), np.zeros((3, 2, 5)))


def test_weights_of_any_sum_pass_and_so_does_a_row_of_nothing_but_nan():
    given = np.array([[3.0, 0.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(check_weights(given), given)
    np.testing.assert_array_equal(check_weights([[3.0, np.nan]], [True, False]), [[3.0, 0.0]])
    with refused("weights", "or NaN in a whole row", "nan at query 0, key 1 (1 in all)", "not scores"):
        check_weights([[3.0, np.nan]])
    with refused("weights", "weights[None, :]"):
        check_weights([3.0])


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (2, 1, 5)])
def test_norms_go_with_the_keys_of_their_heads(shape):
    norms = check_norm(np.ones(shape, np.float32), (2, 3, 4, 5))
    assert norms.shape == shape
    assert norms.dtype == np.float64
    assert check_norm(np.ones(shape, np.longdouble), (2, 3, 4, 5)).dtype == np.longdouble


@pytest.mark.parametrize("shape", [(4,), (4, 5), (2, 5), (3, 2, 5), (), (1,)])
def test_norms_of_other_shapes_are_refused(shape):
    with refused("norm", "(..., key) to go with attention (2, 3, 4, 5)", f"{shape}"):
        check_norm(np.ones(shape), (2, 3, 4, 5))


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_wrong_norms_are_refused_with_their_place(wrong):
    with refused("norm", f"{wrong} at head 1, key 2"):
        check_norm_values(np.array([[1.0, 1.0, 1.0], [0.0, 1.0, wrong]]))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((7,), "query 7"),
        ((3, 7), "head 3, query 7"),
        ((0, 3, 7), "layer 0, head 3, query 7"),
        ((2, 0, 3, 7), "text 2, layer 0, head 3, query 7"),
        ((9, 2, 0, 3, 7), "row (9, 2, 0, 3, 7)"),
    ],
)
def test_a_place_is_named_axis_by_axis(index, words):
    assert row_place(index) == words
