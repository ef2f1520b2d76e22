from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.compare import compare

ROWS = np.arange(12.0).reshape(3, 4)


def test_equal_arrays_are_within_no_bound_at_all() -> None:
    found = compare(ROWS, ROWS.copy())
    assert found.within
    assert (found.max_absolute, found.max_ulps, found.rms, found.worst) == (0, 0, 0, None)


def test_a_wrong_shape_is_refused_first() -> None:
    found = compare(ROWS, np.full((4, 3), np.nan, np.float32), same_dtype=True, absolute=math.inf)
    assert not found.within
    assert not found.shape_ok
    assert found.message == "shape: expected (3, 4), found (4, 3)"
    assert math.isnan(found.max_absolute)


def test_a_shape_that_would_broadcast_is_refused() -> None:
    assert not compare(ROWS, ROWS[:1], absolute=math.inf).within
    assert not compare(ROWS, 0.0, absolute=math.inf).within


def test_a_wrong_dtype_is_refused_second_and_only_when_asked() -> None:
    narrow = ROWS.astype(np.float32)
    narrow[0, 0] = np.nan
    found = compare(ROWS, narrow, same_dtype=True)
    assert (found.shape_ok, found.dtype_ok, found.special_ok, found.within) == (True, False, True, False)
    assert found.message == "dtype: expected float64, found float32"
    assert compare(ROWS, ROWS.astype(np.float32)).within


@pytest.mark.parametrize(
    ("expected", "found"),
    [(1.0, np.nan), (np.nan, 1.0), (1.0, np.inf), (np.inf, -np.inf), (np.inf, np.nan), (-np.inf, 1.0)],
)
def test_nan_or_infinity_elsewhere_is_refused_third(expected: float, found: float) -> None:
    first, second = ROWS.copy(), ROWS + 1
    first[1, 2], second[1, 2] = expected, found
    result = compare(first, second, absolute=math.inf)
    assert (result.shape_ok, result.dtype_ok, result.special_ok, result.within) == (True, True, False, False)
    assert "(1, 2)" in result.message
    assert f"expected {expected}, found {found}" in result.message


def test_nan_and_infinity_at_the_same_places_are_equal() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare(special, special.copy()).within
    moved = special.copy()
    moved[3] = 2
    found = compare(special, moved, absolute=0.5)
    assert (found.within, found.worst, found.max_absolute, found.rms) == (False, (3,), 1, 1)


def test_a_wrong_value_is_named_with_both_values_and_ulps() -> None:
    wrong = ROWS.copy()
    wrong[2, 1] = np.nextafter(np.nextafter(9.0, 10), 10)
    found = compare(ROWS, wrong)
    assert (found.within, found.worst, found.expected, found.found) == (False, (2, 1), 9.0, wrong[2, 1])
    assert found.max_ulps == found.ulps == 2
    assert found.message.startswith(
        "outside its bound: worst at (2, 1), expected 9.0, found 9.000000000000004, 2 ULPs"
    )


def test_ulps_are_those_of_the_less_precise_side() -> None:
    truth = np.array([1.0 + 2.0**-25, 1.0])
    found = compare(truth, truth.astype(np.float32), absolute=1e-7)
    assert found.max_ulps == 0.25
    assert "ULPs of float32" in found.message


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_ulps_of_every_float_type(dtype: type) -> None:
    limits = np.finfo(dtype)
    for value in (0, limits.smallest_subnormal, limits.tiny, 0.3, 1, 1.5, limits.max / 4):
        one = np.array([value], dtype)
        assert compare(one, np.nextafter(one, dtype(np.inf)), absolute=math.inf).max_ulps == 1


def test_ulps_of_bfloat16() -> None:
    types = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes")
    found = compare(np.array([1.0, 2.0], types.bfloat16), np.array([1.0, 2.0 + 2.0**-6]), absolute=1)
    assert found.max_ulps == 1


def test_bounds_add_up() -> None:
    expected, found = np.array([0.0, 100.0]), np.array([0.5, 101.5])
    assert not compare(expected, found, absolute=0.5).within
    assert not compare(expected, found, relative=0.015).within
    assert compare(expected, found, absolute=0.5, relative=0.01).within


def test_a_relative_bound_with_a_scale_of_its_own() -> None:
    expected, found = np.array([[3.0, 0.0], [0.3, 0.4]]), np.array([[3.0, 0.01], [0.3, 0.4]])
    scale = np.linalg.norm(expected, axis=-1, keepdims=True)
    assert compare(expected, found, relative=0.004, scale=scale).within
    assert not compare(expected, found, relative=0.003, scale=scale).within
    assert not compare(expected, found, relative=0.004).within


def test_worst_is_the_largest_part_of_what_is_allowed() -> None:
    found = compare(np.array([1000.0, 1.0]), np.array([1001.0, 1.5]), relative=0.1)
    assert (found.worst, found.max_absolute, found.used) == ((1,), 1, 5)
    assert found.max_relative == 0.5


def test_where_only_the_expected_value_is_zero_the_relative_error_is_infinite() -> None:
    assert compare([0.0, 1.0], [1e-9, 1.0], absolute=1).max_relative == math.inf


def test_a_nan_bound_holds_nothing() -> None:
    assert not compare([1.0], [1.5], absolute=math.nan).within
    assert not compare([1.0], [1.5], relative=1, scale=math.nan).within


def test_empty_arrays_are_equal_only_in_one_shape() -> None:
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))).within
    assert not compare(np.zeros((0, 3)), np.zeros((3, 0))).within
    assert not compare(np.zeros((0, 3)), np.zeros((0, 3), np.float32), same_dtype=True).within


def test_integers_compare_exactly() -> None:
    found = compare([2**62], [2**62 + 1])
    assert (found.within, found.max_absolute, found.max_ulps) == (False, 1, 1)
    assert compare([True, False], [True, False]).within
    assert not compare([True, False], [True, True]).within


def test_inputs_are_not_changed_and_may_be_read_only_or_strided() -> None:
    first = np.arange(24.0).reshape(4, 6)[::2, ::3]
    first.flags.writeable = False
    second = np.asfortranarray(first + 1)
    found = compare(first, second)
    assert (found.within, found.max_absolute) == (False, 1)
    np.testing.assert_array_equal(second, first + 1)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))
def test_one_value_is_within_exactly_when_the_error_is(expected: float, found: float, bound: float) -> None:
    result = compare(np.array([expected]), np.array([found]), absolute=bound)
    assert result.within == (abs(found - expected) <= bound)
    assert (result.used <= 1) == result.within
