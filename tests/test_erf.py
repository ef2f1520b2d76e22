"""erf against mpmath, the coefficients against their generator, and the odd inputs."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from oracle import _erf, activations
from oracle._checks import InputTypeError
from oracle._erf import erf

DTYPES = [np.float32, np.float64, np.longdouble]
BOUNDS = {np.float32: 0.51, np.float64: 1.5, np.longdouble: 4.0}  # ULPs, as the docstring states
MP_DIGITS = 40

# (low, high) with borders of every formula inside or at an end; the last is where the result is 1.
REGIONS = [(0, 0.1), (0.1, 0.9), (0.9, 1), (1, 1.1), (1.1, 1.25), (1.25, 2), (2, 4), (4, 6), (6, 9)]


def exact(value: np.floating) -> mpmath.mpf:
    """A float of any kind as an mpf, without rounding (up to 107 bits)."""
    mantissa, exponent = np.frexp(value)
    high = float(mantissa)
    return mpmath.ldexp(mpmath.mpf(high) + float(mantissa - type(value)(high)), int(exponent))


def worst_ulp(x: NDArray) -> tuple[float, float]:
    """The largest error of erf(x) in ULPs of the true value, and where it is."""
    kind, result = x.dtype.type, erf(x)
    worst = (0.0, math.nan)
    with mpmath.workdps(MP_DIGITS):
        for argument, found in zip(x, result, strict=True):
            truth = mpmath.erf(exact(argument))
            unit = mpmath.ldexp(1, mpmath.frexp(truth)[1] - np.finfo(kind).nmant - 1)
            worst = max(worst, (float(abs(exact(found) - truth) / unit), float(argument)))
    return worst


def generator() -> ModuleType:
    path = Path(__file__).with_name("generate_erf_coefficients.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
def test_erf_is_within_its_bound_of_mpmath(kind, region):
    rng = np.random.default_rng(2)
    x = rng.uniform(*region, 150).astype(kind) * rng.choice([-1, 1], 150).astype(kind)
    worst, where = worst_ulp(x)
    assert worst <= BOUNDS[kind], f"{worst:.3f} ULP at {where!r}"


@pytest.mark.parametrize("kind", DTYPES)
def test_erf_at_the_borders_and_at_tiny_arguments(kind):
    info = np.finfo(kind)
    borders = np.array([0.5, 1, 1.25, 6], dtype=kind)
    borders = np.concatenate([borders, np.nextafter(borders, kind(0)), np.nextafter(borders, kind(9))])
    tiny = np.ldexp(kind(1.1), np.linspace(info.minexp, -8, 60).astype(int))
    x = np.concatenate([borders, tiny, -tiny, -borders])
    worst, where = worst_ulp(x)
    assert worst <= BOUNDS[kind], f"{worst:.3f} ULP at {where!r}"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_erf_of_subnormals(kind):
    smallest = np.finfo(kind).smallest_subnormal
    multiples = np.array([1, 2, 3, 5, 1000, 123457], dtype=kind)
    with mpmath.workdps(MP_DIGITS):
        truth = np.array([float(2 / mpmath.sqrt(mpmath.pi) * float(m)) for m in multiples])
    assert np.abs(erf(multiples * smallest) / smallest - truth).max() <= 1


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="longdouble is no wider than float64 here")
def test_erf_is_within_its_bound_of_longdouble_everywhere(kind):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(low, high, 12_000) for low, high in REGIONS]).astype(kind)
    truth = erf(x.astype(np.longdouble))
    errors = np.abs(erf(x) - truth) / np.spacing(truth.astype(kind))
    assert errors.max() <= BOUNDS[kind], f"{errors.max():.3f} ULP at {x[errors.argmax()]!r}"


@pytest.mark.parametrize("kind", DTYPES)
def test_erf_special_values(kind):
    with np.errstate(all="raise"):
        result = erf(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 7, -300, 30], dtype=kind))
    np.testing.assert_array_equal(result, np.array([1, -1, np.nan, 0, 0, erf(kind(7)), -1, 1], dtype=kind))
    assert list(np.signbit(result[3:5])) == [False, True]
    huge = np.array([np.finfo(kind).max, -np.finfo(kind).max], dtype=kind)
    assert list(erf(huge)) == [1, -1]


def test_erf_of_a_signalling_nan_is_silent():
    with np.errstate(all="raise"):
        assert np.isnan(erf(np.array([0x7F800001], dtype=np.uint32).view(np.float32))).all()


@pytest.mark.parametrize("kind", DTYPES)
def test_erf_is_odd_to_the_bit(kind):
    x = np.random.default_rng(4).uniform(0, 7, 4001).astype(kind)
    np.testing.assert_array_equal(erf(-x), -erf(x))


@pytest.mark.parametrize(
    ("kind", "steps"), [(np.float32, 200_001), (np.float64, 50_001), (np.longdouble, 5001)]
)
def test_erf_never_falls(kind, steps):
    # Neighbours whose true values differ by less than the bound may swap: float64 gets one ULP there.
    result = erf(np.linspace(-7, 7, steps, dtype=kind))
    slack = 0 if kind == np.float32 else np.finfo(kind).epsneg
    assert np.diff(result).min() >= -slack
    assert np.abs(result).max() == 1


@pytest.mark.parametrize("kind", DTYPES)
def test_erf_leaves_its_input_alone_and_keeps_dtype_and_shape(kind):
    x = np.random.default_rng(5).normal(size=(7, 11, 13)).astype(kind)
    x.flags.writeable = False
    before, expected = x.copy(), erf(x)
    np.testing.assert_array_equal(x, before)
    assert expected.dtype == kind
    assert expected.shape == x.shape
    assert expected.flags.writeable
    for view in (np.s_[::2, ::-1, 1::3], np.s_[:, :0], np.s_[3, 2, 1:2], np.s_[..., None]):
        np.testing.assert_array_equal(erf(x[view]), expected[view])
    np.testing.assert_array_equal(erf(x.T), expected.T)
    np.testing.assert_array_equal(erf(np.array(x[0, 0, 0])), np.array(expected[0, 0, 0]))
    assert erf(np.array(x[0, 0, 0])).shape == ()


def test_erf_of_more_than_one_block_and_of_the_other_byte_order():
    x = np.random.default_rng(6).normal(size=70_001)
    np.testing.assert_array_equal(erf(x), np.concatenate([erf(part) for part in np.array_split(x, 7)]))
    swapped = erf(x.astype(x.dtype.newbyteorder()))
    np.testing.assert_array_equal(swapped, erf(x))
    assert swapped.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int64, np.float16, bool])
def test_erf_refuses_other_dtypes(dtype):
    with pytest.raises(
        InputTypeError, match=rf"x: expected .*float64.*; found dtype {np.dtype(dtype)}\. Convert"
    ):
        erf(np.zeros(3, dtype=dtype))


def test_the_coefficients_are_what_the_generator_gives():
    fits = generator()
    assert (_erf._CENTRE, _erf._TAIL) == (fits.centre()[0], fits.tail()[0])
    start, limit, pairs, _ = fits.logit()
    assert (activations._START, activations._LIMIT, activations._PAIRS) == (start, limit, pairs)


def test_the_fits_are_good_enough_for_their_bounds():
    fits = generator()
    assert fits.centre()[1] < 2e-17
    assert fits.tail()[1] < 2e-17
    assert fits.logit()[3] < 1e-8


def test_the_constants_are_right_to_fifty_digits():
    with mpmath.workdps(60):
        for text, value in [
            (_erf._TWO_OVER_SQRT_PI, 2 / mpmath.sqrt(mpmath.pi)),
            (_erf._ONE_OVER_SQRT_PI, 1 / mpmath.sqrt(mpmath.pi)),
            (activations._ROOT_HALF, mpmath.sqrt(0.5)),
            (activations._ROOT_8_OVER_PI, mpmath.sqrt(8 / mpmath.pi)),
        ]:
            assert abs(mpmath.mpf(text) - value) < mpmath.mpf(10) ** -45
