from __future__ import annotations

import math

import naive
import numpy as np
import pytest

from oracle.model import Linear, Norm
from oracle.ops import layer_norm, linear, rms_norm, softmax

DTYPES = ["float32", "float64", "longdouble"]


def eps(dtype):
    return float(np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_is_the_sum_over_inputs_plus_bias(dtype):
    rng = np.random.default_rng(1)
    x, weight, bias = rng.standard_normal((2, 3, 7)), rng.standard_normal((7, 5)), rng.standard_normal(5)
    result = linear(x.astype(dtype), Linear(weight.astype(dtype), bias.astype(dtype)))
    expected = [[naive.affine(row, weight, bias) for row in block] for block in x]
    assert result.shape == (2, 3, 5)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, rtol=0, atol=32 * max(eps(dtype), eps("float64")))


def test_linear_leaves_its_input_and_its_bias_alone():
    x, bias = np.ones((2, 3)), np.ones(4)
    linear(x, Linear(np.ones((3, 4)), bias))
    assert (x == 1).all()
    assert (bias == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_logarithms_gives_the_weights_back(dtype):
    weights = np.array([[1, 2, 3, 4], [5, 0.5, 4, 0.5]], dtype=dtype)
    rows = softmax(np.log(weights))
    assert rows.dtype == dtype
    np.testing.assert_allclose(rows, weights / 10, rtol=16 * eps(dtype))


def test_softmax_against_the_definition():
    scores = 5 * np.random.default_rng(2).standard_normal((3, 11))
    expected = [naive.softmax(row) for row in scores]
    np.testing.assert_allclose(softmax(scores), expected, rtol=32 * eps("float64"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_huge_scores_neither_overflows_nor_loses_the_sum(dtype):
    top = float(np.finfo(dtype).max) / 4 if dtype != "longdouble" else 1e300
    rows = softmax(np.array([[top, top, -top], [-top, -top, -top]], dtype=dtype))
    np.testing.assert_array_equal(rows[0], [0.5, 0.5, 0])
    np.testing.assert_allclose(rows[1], np.full(3, 1 / 3), rtol=4 * eps("float32"))


def test_softmax_gives_exactly_zero_at_minus_infinity():
    rows = softmax(np.array([[0.0, -np.inf, 0.0], [-np.inf, -np.inf, 7.0]]))
    np.testing.assert_array_equal(rows, [[0.5, 0, 0.5], [0, 0, 1]])


def test_softmax_of_a_row_of_nothing_but_minus_infinity_is_zeros():
    rows = softmax(np.array([[-np.inf] * 3, [0.0, 0.0, -np.inf]]))
    np.testing.assert_array_equal(rows, [[0, 0, 0], [0.5, 0.5, 0]])


def test_softmax_keeps_nan_in_its_row():
    rows = softmax(np.array([[math.nan, 0.0], [0.0, 0.0]]))
    assert np.isnan(rows[0]).all()
    np.testing.assert_array_equal(rows[1], [0.5, 0.5])


def test_softmax_of_one_key_is_one():
    np.testing.assert_array_equal(softmax(np.array([[3.0], [-9.0]])), [[1], [1]])


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 4)])
def test_softmax_of_nothing_is_nothing(shape):
    assert softmax(np.zeros(shape)).shape == shape


def test_softmax_never_changes_its_input():
    scores = np.random.default_rng(3).standard_normal((4, 5))
    before = scores.copy()
    scores.flags.writeable = False
    out = np.empty_like(scores)
    assert softmax(scores, out=out) is out
    np.testing.assert_array_equal(scores, before)
    np.testing.assert_array_equal(out, softmax(before))


def test_softmax_of_a_strided_view_is_that_of_its_copy():
    scores = np.random.default_rng(4).standard_normal((6, 10))[::2, ::3]
    np.testing.assert_array_equal(softmax(scores), softmax(scores.copy()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_against_the_definition(dtype):
    rng = np.random.default_rng(5)
    x, weight, bias = rng.standard_normal((2, 3, 7)), rng.standard_normal(7), rng.standard_normal(7)
    norm = Norm(weight.astype(dtype), bias.astype(dtype))
    result = layer_norm(x.astype(dtype), norm, 1e-3)
    expected = [[naive.layer_norm(row, weight, bias, 1e-3) for row in block] for block in x]
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, rtol=0, atol=32 * max(eps(dtype), eps("float64")))


def test_layer_norm_adds_epsilon_to_the_biased_variance():
    # The variance of (-1, 1) is 1 and not 2; with an epsilon of 3 the divisor is 2.
    result = layer_norm(np.array([[-1.0, 1.0]]), Norm(np.ones(2), np.zeros(2)), 3.0)
    np.testing.assert_array_equal(result, [[-0.5, 0.5]])


def test_layer_norm_of_a_constant_row_is_the_bias():
    bias = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(layer_norm(np.full((1, 3), 8.0), Norm(np.ones(3), bias), 1e-12), [bias])


def test_layer_norm_leaves_its_input_alone():
    x = np.random.default_rng(6).standard_normal((2, 3))
    before = x.copy()
    x.flags.writeable = False
    layer_norm(x, Norm(np.ones(3), np.ones(3)), 1e-12)
    np.testing.assert_array_equal(x, before)


def test_layer_norm_of_no_tokens_is_no_tokens():
    assert layer_norm(np.zeros((0, 3)), Norm(np.ones(3), np.ones(3)), 1e-12).shape == (0, 3)


def test_linear_and_layer_norm_without_a_bias():
    x, weight = np.random.default_rng(7).standard_normal((2, 4, 3))
    np.testing.assert_array_equal(linear(x, Linear(weight.T)), x @ weight.T)
    full, bare = (layer_norm(x, Norm(np.arange(1.0, 4.0), bias), 1e-3) for bias in (np.zeros(3), None))
    np.testing.assert_array_equal(full, bare)


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_rms_norm_against_the_definition(dtype):
    rng = np.random.default_rng(8)
    x, weight = rng.standard_normal((2, 3, 7)).astype(dtype), rng.standard_normal(7).astype(dtype)
    x.flags.writeable = False
    for plus_one in (False, True):
        result = rms_norm(x, Norm(weight), 1e-3, plus_one=plus_one)
        assert result.dtype == dtype
        for found, row in zip(result.reshape(-1, 7), x.reshape(-1, 7), strict=True):
            root = math.sqrt(naive.dot(row, row) / 7 + 1e-3)
            expected = [float(v) / root * (float(w) + plus_one) for v, w in zip(row, weight, strict=True)]
            np.testing.assert_allclose(found, expected, rtol=0, atol=32 * max(eps(dtype), eps("float64")))


def test_rms_norm_takes_no_mean_off():
    # The mean square of (1, 7) is 25; with an epsilon of 11 the divisor is 6.
    result = rms_norm(np.array([[1.0, 7.0]]), Norm(np.array([6.0, 12.0])), 11.0)
    np.testing.assert_array_equal(result, [[1.0, 14.0]])
    assert rms_norm(np.zeros((0, 3)), Norm(np.ones(3)), 1e-12).shape == (0, 3)
