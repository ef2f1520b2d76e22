"""Fit the coefficients in fastpath/_math.py and fastpath/_jensen.py; run it to print them.

The functions are fitted with mpmath (50 digits) by weighted least squares on Chebyshev nodes, which comes
within a small factor of the minimax fit and needs no search:

* EXP: (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2, weighted by its relative effect; one for each width.
* LOG: (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2), weighted by its relative effect.
* LOG, float64: (2 artanh(s) - 2 s) / s^3 in z = s^2 for sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2), weighted
  by its relative effect.
* TANH: (tanh(y) / y - 1) / y^2 in t = y^2 for |y| <= 0.55, weighted by its relative effect.
* ARTANH: 2 artanh(s) / s in z = s^2, once on the range of LOG and weighted by its absolute effect, once for
  s <= 1/3 and weighted by its relative effect.
* JENSEN: [(1 + a) ln(1 + a) + (1 - a) ln(1 - a)] / (2 a^2) in u = a^2 for a <= 0.36, weighted by its relative
  effect.

ln(2) is split into a high part of so few bits that its product with any exponent is exact, and the rest.
The printed figure is the largest weighted error of each fit on a grid between its nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

__all__ = [
    "artanh_centred",
    "artanh_whole",
    "exp32",
    "exp64",
    "jensen_near",
    "ln2",
    "log32",
    "log64",
    "tanh32",
]

Function = Callable[[Any], Any]
Fit = tuple[tuple[float, ...], float]
DIGITS = 50


def _fit(function: Function, weight: Function, low: Any, high: Any, degree: int, dtype: type) -> Fit:
    """Coefficients of a polynomial on [low, high], rounded to `dtype`, and its worst error."""
    count = 6 * (degree + 1)
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mpmath.cos(mp.pi * (2 * i + 1) / (2 * count))
        for i in range(count)
    ]
    matrix, right = mpmath.matrix(count, degree + 1), mpmath.matrix(count, 1)
    for i, x in enumerate(nodes):
        for j in range(degree + 1):
            matrix[i, j] = weight(x) * x**j
        right[i] = weight(x) * function(x)
    solution = [mpf(float(dtype(c))) for c in mpmath.qr_solve(matrix, right)[0]]
    grid = [low + (high - low) * i / 331 for i in range(332)]
    worst = max(abs(mpmath.polyval(solution[::-1], x) - function(x)) * weight(x) for x in grid)
    return tuple(float(c) for c in solution), float(worst)


def _exp(degree: int, dtype: type) -> Fit:
    edge = mpmath.log(2) / 2

    def function(r: Any) -> Any:
        return mpmath.nsum(lambda n: r**n / mpmath.factorial(n + 2), [0, 40])  # no cancellation at zero

    return _fit(function, lambda r: r**2 / mpmath.exp(r), -edge, edge, degree, dtype)


@mp.workdps(DIGITS)
def exp32() -> Fit:
    """The EXP polynomial of float32 and its worst relative error."""
    return _exp(4, np.float32)


@mp.workdps(DIGITS)
def exp64() -> Fit:
    """The EXP polynomial of float64 and its worst relative error."""
    return _exp(9, np.float64)


@mp.workdps(DIGITS)
def log32() -> Fit:
    """The LOG polynomial of float32 and its worst relative error."""
    tiny = mpf("1e-3")

    def function(f: Any) -> Any:
        if abs(f) < tiny:
            return mpmath.polyval([(-1) ** n * mpf(1) / (n + 3) for n in range(15)][::-1], f)
        return (mpmath.log1p(f) - f + f**2 / 2) / f**3

    def weight(f: Any) -> Any:
        return f**2 if abs(f) < tiny else abs(f**3 / mpmath.log1p(f))

    return _fit(function, weight, mpmath.sqrt(mpf(1) / 2) - 1, mpmath.sqrt(2) - 1, 8, np.float32)


def _artanh(z: Any, skip: int = 0) -> Any:
    """2 artanh(s) / s in z = s^2, without its first `skip` powers and divided by z to that power."""
    return mpmath.fsum(2 * z**n / (2 * (n + skip) + 1) for n in range(30))


def _edge() -> Any:
    root = mpmath.sqrt(2)
    return (root - 1) / (root + 1)


@mp.workdps(DIGITS)
def log64() -> Fit:
    """The LOG polynomial of float64 and twice its worst relative error."""
    return _fit(lambda z: _artanh(z, 1), lambda z: z, mpf(0), _edge() ** 2, 6, np.float64)


@mp.workdps(DIGITS)
def artanh_centred() -> Fit:
    """The ARTANH polynomial up to the square root of two, and its worst absolute effect."""
    return _fit(_artanh, lambda z: mpmath.sqrt(z) + mpf(1) / 1000, mpf(0), _edge() ** 2, 6, np.float64)


@mp.workdps(DIGITS)
def artanh_whole() -> Fit:
    """The ARTANH polynomial up to s = 1/3 and its worst relative error."""
    return _fit(_artanh, lambda z: 1 / _artanh(z), mpf(0), mpf(1) / 9, 9, np.float64)


@mp.workdps(DIGITS)
def jensen_near() -> Fit:
    """The JENSEN polynomial and its worst relative error."""

    def function(u: Any) -> Any:
        return mpmath.fsum(u ** (n - 1) / (2 * n * (2 * n - 1)) for n in range(1, 31))

    return _fit(function, lambda u: 1 / function(u), mpf(0), mpf("0.36") ** 2, 8, np.float64)


@mp.workdps(DIGITS)
def tanh32() -> Fit:
    """The TANH polynomial of float32 and its worst relative error."""

    def function(t: Any) -> Any:
        y = mpmath.sqrt(t)
        return (mpmath.tanh(y) / y - 1) / t if t else -mpf(1) / 3

    return _fit(function, lambda t: t, mpf(0), mpf("0.55") ** 2, 4, np.float32)


@mp.workdps(DIGITS)
def ln2(bits: int, dtype: type) -> tuple[float, float]:
    """ln(2) as a high part of `bits` bits and the rest, rounded to `dtype`."""
    high = mpmath.nint(mpmath.log(2) * 2**bits) / 2**bits
    return float(high), float(dtype(mpmath.log(2) - high))


if __name__ == "__main__":
    fits = {"EXP32": exp32, "EXP64": exp64, "LOG32": log32, "LOG64": log64, "TANH32": tanh32}
    fits |= {"CENTRED": artanh_centred, "WHOLE": artanh_whole, "NEAR": jensen_near}
    for name, fit in fits.items():
        coefficients, error = fit()
        print(f"{name}: worst error {error:.2g} (2^{np.log2(error):.1f})")
        for coefficient in coefficients:
            print(f"    {coefficient}")
    print("LN2, float32:", ln2(9, np.float32))
    print("LN2, float64:", ln2(32, np.float64))
