"""Activations against mpmath, PyTorch's own rounding error and the odd inputs."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from oracle._checks import InputTypeError
from oracle.activations import ACTIVATIONS, gelu, gelu_tanh, relu, silu

DTYPES = [np.float32, np.float64, np.longdouble]
FUNCTIONS = [gelu, gelu_tanh, relu, silu]


def closed_form(function, x):
    """The textbook formula in mpmath."""
    if function is gelu:
        return x * mpmath.ncdf(x)
    if function is gelu_tanh:
        cubic = mpmath.mpf("0.044715")
        return x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + cubic * x**3)))
    if function is silu:
        return x / (1 + mpmath.exp(-x))
    return max(x, mpmath.mpf(0))


def truth(function, x):
    """closed_form at arguments that float64 holds, as the sum of two float64 numbers; 150 digits bridge
    the cancellation in the left tail."""
    with mpmath.workdps(150):
        values = [closed_form(function, mpmath.mpf(float(v))) for v in x]
        high = np.array([float(v) for v in values], dtype=np.longdouble)
        low = np.array([float(v - float(v)) for v in values], dtype=np.longdouble)
    return high + low


def arguments(kind):
    """Normal inputs, both tails, and values about 0, all exact in float32."""
    rng = np.random.default_rng(7)
    parts = [rng.normal(size=300) * 2, np.linspace(-14, 14, 301), np.geomspace(1e-30, 1e-2, 30)]
    return np.concatenate(parts).astype(np.float32).astype(kind)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", DTYPES)
def test_the_error_is_at_most_three_halves_of_eps_times_x(function, kind):
    x = arguments(kind)
    errors = np.abs(function(x) - truth(function, x)) / np.finfo(kind).eps
    worst = np.divide(errors, np.abs(x), out=np.zeros_like(errors), where=x != 0)
    assert worst.max() <= 1.5, f"{worst.max():.3f} eps |x| at {x[worst.argmax()]!r}"


@pytest.mark.parametrize(
    ("function", "kind", "low", "bound"),
    [
        (gelu, np.float32, -3, 1e-5),
        (gelu, np.float32, -8, 2e-3),
        (gelu_tanh, np.float32, -8, 2e-5),
        (gelu_tanh, np.float64, -14, 1e-13),
        (silu, np.float32, -80, 4e-7),
        (silu, np.float64, -700, 8e-16),
    ],
)
def test_the_left_tail_keeps_its_relative_accuracy(function, kind, low, bound):
    x = np.linspace(low, -0.01, 301).astype(np.float32).astype(kind)
    expected = truth(function, x)
    assert np.abs(function(x) / expected - 1).max() <= bound


def test_float32_gelu_rounds_no_worse_than_twice_torch():
    torch = pytest.importorskip("torch", reason="the reference extra is not installed")
    x = (np.random.default_rng(8).normal(size=200_000) * 2).astype(np.float32)
    expected = gelu(x.astype(np.float64))
    theirs = torch.nn.functional.gelu(torch.from_numpy(x)).numpy()

    def rms(values):
        return np.sqrt(np.mean((values - expected) ** 2))

    assert rms(gelu(x)) <= 2 * rms(theirs)
    assert rms(gelu(x)) <= 7e-8  # measured 5.8e-8


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_the_names_mean_what_they_mean_to_transformers(name):
    pytest.importorskip("torch", reason="the reference extra is not installed")
    activations = pytest.importorskip(
        "transformers.activations", reason="the reference extra is not installed"
    )
    import torch

    x = np.linspace(-9, 9, 2001)
    theirs = activations.ACT2FN[name](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ACTIVATIONS[name](x), theirs, rtol=0, atol=4e-15)


def test_gelu_and_its_tanh_form_differ_by_up_to_4_7e_minus_4():
    x = np.linspace(-6, 6, 4001)
    assert np.abs(gelu(x) - gelu_tanh(x)).max() == pytest.approx(4.73e-4, rel=2e-3)


@pytest.mark.parametrize("kind", DTYPES)
def test_gelu_x_minus_gelu_of_minus_x_is_x(kind):
    x = arguments(kind)
    assert np.all(np.abs(gelu(x) - gelu(-x) - x) <= 3 * np.finfo(kind).eps * np.abs(x))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", DTYPES)
def test_right_of_zero_it_never_falls(function, kind):
    values = function(np.linspace(0, 20, 4001, dtype=kind))
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", DTYPES)
def test_limits_and_silence(function, kind):
    most = np.finfo(kind).max
    tiny = np.finfo(kind).smallest_subnormal
    x = np.array([np.inf, most, 3e4, -3e4, -most, -np.inf, 0, -0.0, np.nan, tiny, -tiny], dtype=kind)
    with np.errstate(all="raise"):
        result = function(x)
    np.testing.assert_array_equal(
        result[:9], np.array([np.inf, most, 3e4, 0, 0, 0, 0, 0, np.nan], dtype=kind)
    )
    assert np.all(np.abs(result[9:]) <= tiny)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", DTYPES)
def test_input_untouched_shape_and_dtype_kept(function, kind):
    x = np.random.default_rng(9).normal(size=(5, 7, 11)).astype(kind)
    x.flags.writeable = False
    before, expected = x.copy(), function(x)
    np.testing.assert_array_equal(x, before)
    assert expected.dtype == kind
    assert expected.shape == x.shape
    # A vector unit's remainder loop may round exp otherwise than its main loop: two ULPs, not none.
    close = {"rtol": 4 * np.finfo(kind).eps, "atol": 4 * np.finfo(kind).eps}
    for view in (np.s_[::2, ::-1, 1::3], np.s_[:, :0], np.s_[3, 2, 1:2], np.s_[..., None]):
        np.testing.assert_allclose(function(x[view]), expected[view], **close)
    np.testing.assert_allclose(function(x.T), expected.T, **close)
    scalar = function(np.array(x[0, 0, 0]))
    assert scalar.shape == ()
    np.testing.assert_allclose(scalar, expected[0, 0, 0], **close)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_blocks_join_without_a_seam(function):
    x = np.random.default_rng(10).normal(size=(3, 32768)).astype(np.float32)
    np.testing.assert_array_equal(function(x.reshape(-1)), np.concatenate([function(row) for row in x]))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_other_dtypes_are_refused(function):
    with pytest.raises(InputTypeError, match=r"x: expected float32 or .*; found dtype float16\. Convert"):
        function(np.zeros(3, dtype=np.float16))
