"""exp, log and tanh of the fast path on every float32 (a sample by default), and their coefficients."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import mpmath
import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from fastpath import _jensen, _math
from fastpath._jit import compiled_parallel

Array = NDArray[Any]

BLOCK = 1 << 20
STRIDE = 4099 if not numba.config.DISABLE_JIT else 1_000_003  # a prime, so that every exponent is met
SMALLEST = np.finfo(np.float32).smallest_normal
LARGEST = np.finfo(np.float32).max
SMALLEST64 = np.finfo(np.float64).smallest_normal
BOUND = 1.0 if not numba.config.DISABLE_JIT else 1.1  # without fused products, as the module says


@compiled_parallel
def exp32_all(x: Array, out: Array) -> None:
    for i in numba.prange(x.shape[0]):
        out[i] = _math.exp32(x[i])


@compiled_parallel
def log32_all(x: Array, out: Array) -> None:
    for i in numba.prange(x.shape[0]):
        out[i] = _math.log32(x[i])


@compiled_parallel
def xlogx32_all(x: Array, out: Array) -> None:
    for i in numba.prange(x.shape[0]):
        out[i] = _math.xlogx32(x[i])


@compiled_parallel
def tanh32_all(x: Array, out: Array) -> None:
    for i in numba.prange(x.shape[0]):
        out[i] = _math.tanh32(x[i])


@compiled_parallel
def exp64_all(x: Array, out: Array) -> None:
    for i in numba.prange(x.shape[0]):
        out[i] = _math.exp64(x[i])


@compiled_parallel
def log64_all(x: Array, out: Array) -> None:
    for i in numba.prange(x.shape[0]):
        out[i] = _math.log64(x[i])


def run(function: Callable[[Array, Array], None], x: Array) -> Array:
    out = np.empty_like(x)
    with np.errstate(all="ignore"):  # with the JIT off, NumPy's scalars warn where compiled code does not
        function(x, out)
    return out


def ulps(found: Array, exact: Array) -> Array:
    """Distance of float32 results from exact ones (float64, finite, not zero) in ULPs of the exact binade."""
    binade = (exact.view(np.int64) & np.int64(0x7FF0_0000_0000_0000)).view(np.float64)
    return np.abs(found - exact) / (binade * 2.0**-23)


class Survey(NamedTuple):
    """What a sweep found; `worst` over results that are normal numbers, the counts over all the rest."""

    worst: float
    where: float
    subnormal: int  # exact results below the smallest normal number
    flushed: int  # of those, given as zero
    mismatches: int  # places where NaN, infinity or zero does not stand as it should


def survey(
    function: Callable[[Array, Array], None], reference: Callable[[Array], Array], bits: Any
) -> Survey:
    worst, where, subnormal, flushed, mismatches = 0.0, np.nan, 0, 0, 0
    for block in bits:
        x = block.view(np.float32)
        with np.errstate(all="ignore"):  # signalling NaNs among them
            found = run(function, x).astype(np.float64)
            exact = reference(x.astype(np.float64))
            rounded = exact.astype(np.float32)
            size = np.abs(exact)
            normal = (size >= SMALLEST) & (np.abs(rounded) <= LARGEST)
            small = (size < SMALLEST) & (size > 0)
            error = np.where(normal, ulps(found, exact), 0)
        rest = ~(normal | small)
        mismatches += int((rest & ~((found == rounded) | (np.isnan(found) & np.isnan(rounded)))).sum())
        mismatches += int((normal & ~(np.isfinite(found))).sum())
        subnormal += int(small.sum())
        flushed += int((found[small] == 0).sum())
        place = int(np.nanargmax(error))
        if error[place] > worst:
            worst, where = float(error[place]), float(x[place])
    return Survey(worst, where, subnormal, flushed, mismatches)


def sample() -> list[Array]:
    return [np.arange(0, 1 << 32, STRIDE, dtype=np.uint64).astype(np.uint32)]


def every() -> Any:
    for start in range(0, 1 << 32, BLOCK):
        yield np.arange(start, start + BLOCK, dtype=np.uint64).astype(np.uint32)


def xlogx(x: Array) -> Array:
    """Zero up to the smallest normal number; -inf, which is not promised, comes out as NaN."""
    return np.where(x > SMALLEST, x * np.log(x), np.where(np.isfinite(x), 0, np.nan))


class Claim(NamedTuple):
    """What the docstring of a function says, beside the exact function."""

    function: Callable[[Array, Array], None]
    reference: Callable[[Array], Array]
    bound: float  # in ULPs
    flushes: bool  # subnormal results to zero; else none of them


CLAIMS = {
    "exp32": Claim(exp32_all, np.exp, BOUND, True),
    "log32": Claim(log32_all, np.log, BOUND, False),
    "xlogx32": Claim(xlogx32_all, xlogx, 3 * BOUND, True),
    "tanh32": Claim(tanh32_all, np.tanh, 2 * BOUND, False),
}


def check(name: str, found: Survey) -> None:
    assert found.worst <= CLAIMS[name].bound, (name, found)
    assert found.mismatches == 0, (name, found)
    assert found.flushed == (found.subnormal if CLAIMS[name].flushes else 0), (name, found)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_sample_of_all_float32(name: str) -> None:
    found = survey(*CLAIMS[name][:2], sample())
    check(name, found)
    assert found.worst > 0.5, "correctly rounded everywhere? the survey cannot be right"


@pytest.mark.slow
def test_every_float32(capsys: pytest.CaptureFixture[str]) -> None:
    table = {name: survey(*claim[:2], every()) for name, claim in CLAIMS.items()}
    with capsys.disabled():
        print(
            f"\n{'function':9} {'worst ULP':>10} {'at x':>16} {'subnormal':>10} {'flushed':>8}"
            f" {'odd and wrong':>14}"
        )
        for name, row in table.items():
            print(
                f"{name:9} {row.worst:10.4f} {row.where:16.9g} {row.subnormal:10d} "
                f"{row.flushed:8d} {row.mismatches:14d}"
            )
    for name, row in table.items():
        check(name, row)


def test_the_survey_notices_a_wrong_function() -> None:
    def shifted(x: Array, out: Array) -> None:
        out[:] = np.exp(x.astype(np.float64) + 5e-7)

    def deaf(x: Array, out: Array) -> None:
        out[:] = np.where(np.isnan(x), 0, np.exp(x.astype(np.float64)))

    bits = np.arange(0, 1 << 32, 100_003, dtype=np.uint64).astype(np.uint32)
    assert survey(shifted, np.exp, [bits]).worst > 2
    assert survey(deaf, np.exp, [bits]).mismatches > 0
    assert survey(deaf, np.exp, [bits]).flushed < survey(deaf, np.exp, [bits]).subnormal


def test_borders_of_exp32() -> None:
    low, high = np.float32(-87.33654), np.float32(88.72283)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    x = np.array(
        [low, np.nextafter(low, down), high, np.nextafter(high, up), down, up, np.nan, 0, -0.0], np.float32
    )
    found = run(exp32_all, x)
    assert SMALLEST <= found[0] < SMALLEST * 1.0001
    assert LARGEST * 0.999 < found[2] <= LARGEST
    np.testing.assert_array_equal(
        found[[1, 3, 4, 5, 6, 7, 8]], np.array([0, np.inf, 0, np.inf, np.nan, 1, 1])
    )


def test_log32_of_subnormals_and_of_what_has_no_log() -> None:
    tiny = np.array([1, 2, 3, 1000, 0x7FFFFF], np.uint32).view(np.float32)
    exact = np.log(tiny.astype(np.float64))
    assert ulps(run(log32_all, tiny).astype(np.float64), exact).max() <= BOUND
    odd = np.array([0, -0.0, -1, -np.inf, np.inf, np.nan, -1e-42, 1], np.float32)
    np.testing.assert_array_equal(
        run(log32_all, odd),
        np.array([-np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan, np.nan, 0], np.float32),
    )


def test_tanh32_of_small_and_odd_numbers() -> None:
    small = np.array([1, 1000, 0x7FFFFF, 0x8000_0001, 0], np.uint32).view(np.float32)
    np.testing.assert_array_equal(run(tanh32_all, small).view(np.uint32), small.view(np.uint32))
    odd = np.array([np.nan, np.inf, -np.inf, 1e38, -1e38, 20], np.float32)
    np.testing.assert_array_equal(run(tanh32_all, odd), np.array([np.nan, 1, -1, 1, -1, 1], np.float32))


def test_exp64_against_longdouble() -> None:
    rng = np.random.default_rng(3)
    count = 200_000 if not numba.config.DISABLE_JIT else 5_000
    x = np.concatenate(
        [rng.uniform(-708.39, 709.78, count), rng.uniform(-1, 1, count), rng.normal(size=count) * 1e-6]
    )
    exact = np.exp(x.astype(np.longdouble))
    found = run(exp64_all, x)
    error = np.abs(found - exact) / np.spacing(exact.astype(np.float64))
    assert 0.5 < error.max() <= BOUND
    odd = np.array([np.nan, np.inf, -np.inf, 0, -0.0, -708.4, 709.79, -1e300, 1e300])
    np.testing.assert_array_equal(
        run(exp64_all, odd), np.array([np.nan, np.inf, 0, 1, 1, 0, np.inf, 0, np.inf])
    )


def dense_sample_of_float64(count: int) -> Array:
    """Positive numbers of every size, close to one, between the roots of two, and subnormal ones."""
    rng = np.random.default_rng(4)
    return np.concatenate(
        [
            np.exp2(rng.uniform(-1022, 1024, count)),
            rng.uniform(0.5, 2, count),
            rng.uniform(1.4, 1.42, count),
            1 + rng.normal(size=count) * 1e-3,
            1 + rng.normal(size=count) * 1e-9,
            rng.integers(1, 1 << 52, count).view(np.float64),
            np.array([5e-324, SMALLEST64, np.nextafter(SMALLEST64, 0), np.finfo(np.float64).max]),
            np.nextafter([1.0, 1.0, 2**0.5, 2**-0.5], [0, 2, 0, 1]),
        ]
    )


def test_log64_against_longdouble_on_a_dense_sample() -> None:
    x = dense_sample_of_float64(100_000 if not numba.config.DISABLE_JIT else 1_000)
    exact = np.log(x.astype(np.longdouble))
    error = np.abs(run(log64_all, x) - exact) / np.spacing(np.abs(exact).astype(np.float64))
    assert 0.5 < error.max() <= BOUND


def test_log64_against_50_digits() -> None:
    x = dense_sample_of_float64(150)
    found = run(log64_all, x)
    with mpmath.workdps(50):
        for value, logarithm in zip(x.tolist(), found.tolist(), strict=True):
            exact = mpmath.log(mpmath.mpf(value))
            assert abs(mpmath.mpf(logarithm) - exact) <= BOUND * np.spacing(abs(float(exact))), value


def test_log64_of_what_has_no_log() -> None:
    odd = np.array([0, -0.0, -1, -np.inf, np.inf, np.nan, -5e-324, 1])
    np.testing.assert_array_equal(
        run(log64_all, odd), np.array([-np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan, np.nan, 0])
    )


def generator() -> ModuleType:
    path = Path(__file__).parents[1] / "generate_exp_log_coefficients.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_coefficients_come_from_the_generator() -> None:
    made = generator()
    for fit, written, bound in (
        (made.exp32, _math._EXP32, 2**-27),
        (made.exp64, _math._EXP64, 2**-56),
        (made.log32, _math._LOG32, 2**-29),
        (made.tanh32, _math._TANH32, 2**-28),
        (made.log64, _math._LOG64, 2**-58),
        (made.artanh_centred, _jensen._CENTRED, 2**-53),
        (made.artanh_whole, _jensen._WHOLE, 2**-53),
        (made.jensen_near, _jensen._NEAR, 2**-50),
    ):
        coefficients, error = fit()
        np.testing.assert_array_equal(written, coefficients)
        assert error < bound
    assert made.ln2(9, np.float32) == _math._LN2_32
    assert made.ln2(32, np.float64) == _math._LN2_64
