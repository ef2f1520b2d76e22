"""Fit the coefficients in oracle/_erf.py and oracle/activations.py; run it to print them.

Three functions are fitted with mpmath (80 digits), each by weighted least squares on Chebyshev nodes, which
comes within a small factor of the minimax fit and needs no search:

* CENTRE: erf(x) / x - 1 in t = x^2 on [0, 1]. Adding x * CENTRE to x rounds the large part once only.
* TAIL: log(erfc(x)) in x - 1 on [1, 6], weighted by erfc(x), because 1 - exp(TAIL) forgives the rest.
* LOGIT: (R(0) - R(x)) / x^2 in t = x^2 on [0, 64], where x R(x) = log(Phi(x) / Phi(-x)) and Phi is the
  normal distribution function, so that gelu(x) = x / (1 + exp(-x R(x))). It is a quotient of two cubics,
  weighted by the effect on gelu(x) but never less than 1e-6 of x, which keeps the left tail sound. The
  quotient is unrolled into a continued fraction: nine operations for seven coefficients.

The printed figure is the largest weighted error of each fit on a grid between its nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mp, mpf

__all__ = ["centre", "logit", "tail"]

Function = Callable[[Any], Any]


def _fit(function: Function, weight: Function, high: int, upper: int, lower: int = 0) -> tuple[Any, Any, Any]:
    """Coefficients of a quotient of polynomials (degrees upper / lower) on [0, high], and its worst error.

    The denominator's leading coefficient is 1. With a denominator the equations are linearised and solved
    again with the last denominator as weight, until it has settled.
    """
    count = 4 * (upper + lower + 1)
    nodes = [mpf(high) / 2 * (1 - mpmath.cos(mp.pi * (2 * i + 1) / (2 * count))) for i in range(count)]
    values, weights = [function(x) for x in nodes], [weight(x) for x in nodes]
    below = [mpf(1)] * count
    for _ in range(9 if lower else 1):
        matrix, right = mpmath.matrix(count, upper + lower + 1), mpmath.matrix(count, 1)
        for i, (x, value) in enumerate(zip(nodes, values, strict=True)):
            scale = weights[i] / below[i]
            for j in range(upper + 1):
                matrix[i, j] = scale * x**j
            for j in range(lower):
                matrix[i, upper + 1 + j] = -scale * value * x**j
            right[i] = scale * value * x**lower
        solution = list(mpmath.qr_solve(matrix, right)[0])
        numerator, denominator = solution[: upper + 1], [*solution[upper + 1 :], mpf(1)]
        below = [mpmath.polyval(denominator[::-1], x) for x in nodes]
    grid = [mpf(high) * i / 300 for i in range(1, 301)]
    worst = max(
        abs(mpmath.polyval(numerator[::-1], x) / mpmath.polyval(denominator[::-1], x) - function(x))
        * weight(x)
        for x in grid
    )
    return numerator, denominator, worst


def _unroll(numerator: list[Any], denominator: list[Any]) -> tuple[Any, list[tuple[Any, Any]]]:
    """c and pairs (a, b) with numerator / denominator = c + a1 / (t + b1 + a2 / (t + b2 + ...))."""
    c = numerator[-1]  # the denominator is monic
    rest = [p - c * q for p, q in zip(numerator, denominator, strict=True)][:-1]
    pairs = []
    while rest:
        a = rest[-1]
        rest = [r / a for r in rest]
        b = denominator[-2] - (rest[-2] if len(rest) > 1 else 0)
        shifted = [mpf(0), *rest]
        left = [q - s - b * r for q, s, r in zip(denominator, shifted, [*rest, mpf(0)], strict=True)]
        pairs.append((a, b))
        denominator, rest = rest, left[:-2]
    return c, pairs


@mp.workdps(80)
def centre() -> tuple[tuple[float, ...], float]:
    """The CENTRE polynomial, constant term first, and its worst absolute error."""
    numerator, _, worst = _fit(lambda t: mpmath.erf(mpmath.sqrt(t)) / mpmath.sqrt(t) - 1, lambda t: 1, 1, 11)
    return tuple(float(c) for c in numerator), float(worst)


@mp.workdps(80)
def tail() -> tuple[tuple[float, ...], float]:
    """The TAIL polynomial, constant term first, and its worst effect on erf."""
    numerator, _, worst = _fit(lambda u: mpmath.log(mpmath.erfc(u + 1)), lambda u: mpmath.erfc(u + 1), 5, 17)
    return tuple(float(c) for c in numerator), float(worst)


@mp.workdps(80)
def logit() -> tuple[float, float, tuple[tuple[float, float], ...], float]:
    """-R(0), the LOGIT constant, its pairs from the outside in, and its worst effect on gelu(x)."""
    start = 4 / mpmath.sqrt(2 * mp.pi)

    def function(t: Any) -> Any:
        x = mpmath.sqrt(t)
        return (start - mpmath.log(mpmath.ncdf(x) / mpmath.ncdf(-x)) / x) / t

    def weight(t: Any) -> Any:
        x = mpmath.sqrt(t)
        return t * x * max(mpmath.ncdf(-x), mpf("1e-6"))

    numerator, denominator, worst = _fit(function, weight, 64, 3, 3)
    c, pairs = _unroll(numerator, denominator)
    return float(-start), float(c), tuple((float(a), float(b)) for a, b in pairs), float(worst)


if __name__ == "__main__":
    for name, fit in {"CENTRE": centre, "TAIL": tail, "LOGIT": logit}.items():
        *coefficients, error = fit()
        print(f"{name}: worst error {error:.2g}")
        for coefficient in coefficients:
            print(f"    {coefficient}")
