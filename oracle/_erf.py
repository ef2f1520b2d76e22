"""The error function, which NumPy lacks: vectorised, in float32, float64 and longdouble."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._blocks import Kernel, elementwise

__all__ = ["ERF_KERNELS", "erf"]

Array = NDArray[Any]

# Both fitted by tests/generate_erf_coefficients.py, constant term first.
# erf(x) / x - 1 as a polynomial in x^2, for |x| <= 1.
_CENTRE = (
    0.12837916709551256,
    -0.37612638903183543,
    0.1128379167094513,
    -0.026866170643256995,
    0.005223977607269946,
    -0.0008548325982543225,
    0.00012055295112667001,
    -1.4924740785377576e-05,
    1.6447471190594618e-06,
    -1.6208829856810202e-07,
    1.3721520406351094e-08,
    -7.798543850549947e-10,
)
# log(1 - erf(x)) as a polynomial in x - 1, for 1 <= x <= 6.
_TAIL = (
    -1.8496055099332482,
    -2.6389675142347744,
    -0.8431072563594868,
    -0.04156109802356125,
    0.010033825163216803,
    -0.001977901117529822,
    0.00023731604488850123,
    2.6297375124214334e-05,
    -2.720095113932413e-05,
    9.67405896444351e-06,
    -2.134585285128484e-06,
    2.0671940943277644e-07,
    5.7010203325599016e-08,
    -3.3013941449174867e-08,
    8.419664887250823e-09,
    -1.3019201033622317e-09,
    1.1756291244225365e-10,
    -4.7841387941070134e-12,
)

_SERIES_END = 1.25  # longdouble: Taylor series below, continued fraction above
_TWO_OVER_SQRT_PI = "1.12837916709551257389615890312154517168810125865800"
_ONE_OVER_SQRT_PI = "0.56418958354775628694807945156077258584405062932900"


def _polynomial(coefficients: tuple[float, ...], variable: Array, out: Array) -> None:
    np.multiply(variable, coefficients[-1], out=out)
    for coefficient in coefficients[-2:0:-1]:
        out += coefficient
        out *= variable
    out += coefficients[0]


def _float64(block: Array, out: Array, scratch: Array) -> None:
    """Both formulas on every element: gathering the elements of one range costs more than it saves."""
    size, inner, work = scratch[:3]
    np.abs(block, out=size)
    outside = ~(size < 1.0)
    np.clip(block, -1.0, 1.0, out=inner)
    np.multiply(inner, inner, out=work)
    _polynomial(_CENTRE, work, out)
    out *= inner
    out += inner
    np.clip(size, 1.0, 6.0, out=size)  # 1 - erf(6) is below a quarter of an ULP
    size -= 1.0
    _polynomial(_TAIL, size, work)
    np.exp(work, out=work)
    np.subtract(1.0, work, out=work)
    np.copysign(work, block, out=work)
    np.copyto(out, work, where=outside)


def _float32(block: Array, out: Array, scratch: Array) -> None:
    wide = block.astype(np.float64)
    result = np.empty_like(wide)
    _float64(wide, result, np.empty((3, wide.size)))
    out[:] = result


def _longdouble(block: Array, out: Array, scratch: Array) -> None:
    """Lengths follow from the type's epsilon, which differs between machines (53, 64 or 113 bits)."""
    kind = block.dtype.type
    size, inner, work = scratch[:3]
    bits = -math.log(float(np.finfo(kind).eps) / 4)

    # 2 / sqrt(pi) * x * sum of (-x^2)^n / (n! (2 n + 1))
    np.clip(block, -_SERIES_END, _SERIES_END, out=inner)
    np.multiply(inner, -inner, out=work)
    length = 1
    while length * math.log(_SERIES_END**2) - math.lgamma(length + 1) > -bits:
        length += 1
    out[:] = 0
    for n in range(length, -1, -1):
        # Summed as nested quotients: a factorial would not be exact.
        out *= work
        out /= n + 1
        out += kind(1) / (2 * n + 1)
    out *= inner
    out *= kind(_TWO_OVER_SQRT_PI)

    # 1 - erf(x) = exp(-x^2) / sqrt(pi) / (x + (1/2) / (x + (2/2) / (x + (3/2) / ...)))
    np.abs(block, out=size)
    outside = ~(size < _SERIES_END)
    np.clip(size, _SERIES_END, math.sqrt(bits) + 1, out=size)
    np.copyto(work, size)
    for n in range(
        math.ceil((bits / _SERIES_END) ** 2 / 8), 0, -1
    ):  # its error is about exp(-4 x sqrt(n / 2))
        np.divide(kind(n) / 2, work, out=work)
        work += size
    size *= size
    np.negative(size, out=size)
    np.exp(size, out=size)
    size *= kind(_ONE_OVER_SQRT_PI)
    size /= work
    np.subtract(kind(1), size, out=size)
    np.copysign(size, block, out=size)
    np.copyto(out, size, where=outside)


ERF_KERNELS: Mapping[type, Kernel] = {np.float32: _float32, np.float64: _float64, np.longdouble: _longdouble}


def erf(x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, elementwise.

    Any shape; float32, float64 or longdouble, and the same comes back. Range [-1, 1]; erf(±inf) is ±1,
    erf(±0) is ±0, NaN stays NaN. Error bounds, tested against mpmath: float32 0.51 ULP (computed in
    float64), float64 1.5 ULP, longdouble 4 ULP. Other dtypes raise InputTypeError.
    """
    return elementwise("x", x, ERF_KERNELS)
