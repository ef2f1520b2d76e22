from __future__ import annotations

import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import KeyRange, replace_zeros
from oracle.rows import check_rows
from oracle.zeros import closed_content, handle_zeros, keep_parts

SINK = np.array([True, False, False, False])


def test_the_flagged_row_stays_and_the_other_is_replaced():
    found = replace_zeros([[0, 0, 0, 0], [0, 0.5, 0.5, 0]], SINK, 1 / 16)
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], [0.0625, 0, 0.4375, 0.4375, 0.0625])


def test_replacement_keeps_the_sum_and_the_ratios():
    rows = random_rows(np.random.default_rng(0), 3, 5, 9)
    rows[..., 4:6] = 0
    rows /= rows.sum(axis=-1, keepdims=True)
    found = replace_zeros(rows, np.arange(9) < 2, 1e-3)
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-15)
    assert (found[..., 5:7] == 1e-3).all()
    assert (found[..., 1:3] == 0).all()  # the sinks are in part 0
    np.testing.assert_allclose(found[..., 3:5], rows[..., 2:4] * (1 - 2e-3), rtol=1e-15)
    np.testing.assert_allclose(found[..., 0], rows[..., :2].sum(axis=-1) * (1 - 2e-3), rtol=1e-15)


def test_a_row_without_content_has_no_content_made_up():
    rows = [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0]]
    found = replace_zeros(rows, SINK, 0.25)
    np.testing.assert_array_equal(np.isnan(found).all(axis=-1), [True, False, True])
    np.testing.assert_array_equal(found[1], [0.25, 0, 0.25, 0.25, 0.25])
    assert np.isnan(
        replace_zeros(rows[:1], SINK, 0.4)
    ).all()  # three zeros of 0.4 are none of a composition's
    assert np.isnan(replace_zeros(rows[:1], SINK, 0.25, SINK)).all()  # it sees its sink alone


def test_what_is_no_part_is_never_replaced():
    rows, seen = [[0, 1, 0, 0, 9.0], [1, 0, 0, 0, 0]], [[0, 1, 1, 1, 0], [1, 1, 0, 0, 0]]
    found = replace_zeros(rows, [1, 0, 0, 0, 0], 0.125, seen)
    np.testing.assert_array_equal(found[0], [0, 0, 0.75, 0.125, 0.125, 0])  # it sees no sink
    assert np.isnan(found[1]).all()  # it has no content
    by_range = replace_zeros([[1.0, 7.0, 0], [0.5, 0.5, 0]], [0, 1, 0], 0.25, KeyRange.causal(2))
    np.testing.assert_array_equal(by_range, [[0, 1, 0, 0], [0.5, 0.5, 0, 0]])


@pytest.mark.parametrize("delta", [0, -1e-3, 1, 2.0, np.nan, np.inf, None, "small", True])
def test_a_delta_that_is_no_fraction_is_refused(delta):
    with refused("delta", "above zero and below one", repr(delta)):
        replace_zeros([[0.5, 0.5, 0, 0]], SINK, delta)


def test_a_delta_that_leaves_nothing_is_refused():
    rows = np.array([[[0.25, 0.25, 0.25, 0.25], [0, 1, 0, 0]]])
    assert np.isfinite(replace_zeros(rows, SINK, 0.33)).all()
    with refused("delta", "0.34 for each of 3 zeros at head 0, query 1"):
        replace_zeros(rows, SINK, 0.34)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_dtype_and_input(dtype):
    rows = np.array([[0.5, 0.25, 0.25, 0]], dtype)
    rows.flags.writeable = False
    found = replace_zeros(rows, SINK, 1e-3)
    assert found.dtype == (np.longdouble if dtype == "longdouble" else np.float64)
    np.testing.assert_array_equal(rows, [[0.5, 0.25, 0.25, 0]])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_arrays_without_elements(shape):
    found = replace_zeros(np.zeros(shape), np.zeros(shape[-1], bool), 1e-3)
    assert found.shape == (*shape[:-1], shape[-1] + 1)
    assert np.isnan(found).all()


def test_parts_say_which_they_are():
    rows = check_rows(random_rows(np.random.default_rng(1), 2, 3, 4))
    parts = keep_parts(rows, SINK)
    np.testing.assert_array_equal(parts.present, [1, 0, 1, 1, 1])
    np.testing.assert_array_equal(parts.weights[..., 0], rows[..., 0])
    causal = np.tri(3, 4, dtype=bool)
    weights, present = keep_parts(check_rows(np.where(causal, 1, 0) / [[1], [2], [3]]), SINK, causal)
    np.testing.assert_array_equal(present, [[1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 1, 1, 0]])
    np.testing.assert_allclose(weights[2], [1 / 3, 0, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(closed_content(parts).sum(axis=-1), 1, rtol=1e-15)


def test_only_counted_rows_with_content_are_refused():
    rows = check_rows([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    parts = keep_parts(rows, SINK)
    with refused("rows[3]", "zero at query 0, key 2 (2 in all)"):
        handle_zeros(parts, "rows[3]")
    counted = np.array([False, True, True])
    assert handle_zeros(parts, "attention", counted=counted) is parts
    assert handle_zeros(parts, "attention", "common-support") is parts


def test_a_zero_sink_is_named():
    parts = keep_parts(check_rows([[[0, 0.25, 0.25, 0.5]]]), SINK)
    with refused("x", "zero at head 0, query 0, the sink (1 in all)"):
        handle_zeros(parts, "x")
