"""What one part adds to a divergence, against 50 digits: over the whole range and for close weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numba
import numpy as np
from numpy.typing import NDArray

from fastpath import _jensen
from fastpath._jit import compiled_parallel

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)


@compiled_parallel
def mixture_all(p: Array, q: Array, log_p: Array, log_q: Array, out: Array) -> None:
    for i in numba.prange(p.shape[0]):
        out[i] = _jensen.mixture(p[i], q[i], log_p[i], log_q[i])


@compiled_parallel
def close_all(p: Array, q: Array, log_p: Array, log_q: Array, out: Array) -> None:
    for i in numba.prange(p.shape[0]):
        out[i] = _jensen.jensen_close(p[i], q[i], log_p[i], log_q[i])


def run(function: Callable[..., None], p: Array, q: Array) -> Array:
    logs = [np.where(x > 0, np.log(np.where(x > 0, x, 1)), _jensen.LOG_ZERO) for x in (p, q)]
    out = np.empty_like(p)
    function(p, q, *logs, out)
    return out


def pairs() -> tuple[Array, Array]:
    """Weights of all sizes in all ratios, close ones among them, and both sides of a = 0.36."""
    rng = np.random.default_rng(5)
    p = np.exp(-rng.uniform(0, 30, 400))
    ratio = np.concatenate([np.exp(-rng.uniform(0, 20, 150)), 1 - np.exp(-rng.uniform(0, 30, 150))])
    edge = 0.64 / 1.36 * (1 + rng.uniform(-1e-3, 1e-3, 100))
    q = p * np.concatenate([ratio, edge])
    return np.concatenate([p, q]), np.concatenate([q, p])


def exact_jensen(p: float, q: float) -> Any:
    x, y = mpmath.mpf(p), mpmath.mpf(q)
    return x * mpmath.log(2 * x / (x + y)) + y * mpmath.log(2 * y / (x + y))


def outside(p: Array, q: Array, found: Array) -> list[tuple[float, float]]:
    """Pairs whose value is further from the exact one than `jensen_close` may be."""
    left = []
    with mpmath.workdps(60):
        for x, y, value in zip(p.tolist(), q.tolist(), found.tolist(), strict=True):
            exact = exact_jensen(x, y)
            allowed = (40 + 12 * abs(np.log(min(x, y)))) * EPS
            if not abs(mpmath.mpf(value) - exact) <= allowed * exact:
                left.append((x, y))
    return left


def test_close_is_relatively_exact_at_any_distance() -> None:
    p, q = pairs()
    found = run(close_all, p, q)
    assert outside(p, q, found) == []
    assert len(outside(p, q, found * (1 + 2e-13))) == len(p), "the check cannot fail"
    assert outside(p, q, found + 1e-16 * p), "nor where weights are close"


def test_mixture_within_its_bound() -> None:
    p, q = pairs()
    found = run(mixture_all, p, q)
    with mpmath.workdps(50):
        for x, y, value in zip(p.tolist(), q.tolist(), found.tolist(), strict=True):
            t = mpmath.mpf(x) + mpmath.mpf(y)
            exact = t * mpmath.log(t) - mpmath.log(2) / 2 * t
            allowed = 2 * EPS * (x + y) * (1 + abs(np.log(max(x, y))))
            assert abs(mpmath.mpf(value) - exact) <= allowed, (x, y)


def test_the_order_of_the_two_changes_no_bit() -> None:
    p, q = pairs()
    for function in (mixture_all, close_all):
        np.testing.assert_array_equal(run(function, p, q), run(function, q, p))


def test_equal_weights_and_zeros() -> None:
    p = np.array([0.0, 0.25, 1.0, 5e-324, 1e-310, 0.5, 0.0, 0.75])
    q = np.array([0.0, 0.25, 1.0, 5e-324, 1e-310, 0.0, 1.0, 5e-324])
    wanted = np.array([0, 0, 0, 0, 0, 0.5, 1, 0.75]) * np.log(2)
    np.testing.assert_array_equal(run(close_all, p, q)[:5], 0)
    np.testing.assert_allclose(run(close_all, p, q), wanted, rtol=1e-15)
    t = p + q
    exact = np.where(t > 0, t * np.log(np.where(t > 0, t, 1)), 0) - t * np.log(2) / 2
    np.testing.assert_allclose(run(mixture_all, p, q), exact, rtol=1e-15, atol=1e-309)
