"""exp, log and tanh as plain arithmetic, so that the loops that call them vectorise; errors stated in ULPs.

Each function takes and returns one number; `quotient` takes two. The bounds hold where the processor fuses a
product and a sum into one rounding (elsewhere they are 1.1 ULP); tests/fastpath/test_math.py tries every
float32, and float64 against more digits. The coefficients come from tests/generate_exp_log_coefficients.py.
"""

from __future__ import annotations

import numpy as np

from fastpath._jit import inlined_exact

__all__ = ["exp32", "exp64", "log32", "log64", "quotient", "tanh32", "xlogx32"]

# (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2, constant term first
_EXP32 = (
    0.49999988079071045,
    0.166665181517601,
    0.04166953265666962,
    0.008368915878236294,
    0.0013751407386735082,
)
_EXP64 = (
    0.5000000000000012,
    0.16666666666666483,
    0.04166666666651632,
    0.008333333333451433,
    0.0013888888946678828,
    0.00019841269597118904,
    2.480149034623507e-05,
    2.755750728541229e-06,
    2.7631125446226205e-07,
    2.50246452096493e-08,
)
# (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2), constant term first
_LOG32 = (
    0.3333331048488617,
    -0.25000014901161194,
    0.20002204179763794,
    -0.16667643189430237,
    0.14217890799045563,
    -0.12411268800497055,
    0.1190471202135086,
    -0.11646434664726257,
    0.06675271689891815,
)
# (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2 for sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2), constant first
_LOG64 = (
    0.6666666666666736,
    0.3999999999940507,
    0.2857142874413889,
    0.22222198419192385,
    0.1818357138419732,
    0.15313888042339555,
    0.1479743510950102,
)
# (tanh(y) / y - 1) / y^2 in y^2 for |y| <= 0.55, constant term first
_TANH32 = (
    -0.33333316445350647,
    0.13332580029964447,
    -0.053851865231990814,
    0.02107025310397148,
    -0.006272607482969761,
)
# ln(2) in two parts; the product of the first with any exponent is exact
_LN2_32 = (0.693359375, -0.00021219444170128554)
_LN2_64 = (0.6931471806019545, -4.2009150726810846e-11)

_F = np.float32
_D = np.float64
_I = np.int32

# float32. Numba types a bare 1.0 as float64, hence a name for every constant.
_ZERO, _ONE, _TWO, _HALF = _F(0.0), _F(1.0), _F(2.0), _F(0.5)
_INF, _NAN = _F(np.inf), _F(np.nan)
_LOG2E = _F(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = _F(_LN2_32[0]), _F(_LN2_32[1])
_E0, _E1, _E2, _E3, _E4 = (_F(c) for c in _EXP32)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = (_F(c) for c in _LOG32)
_T0, _T1, _T2, _T3, _T4 = (_F(c) for c in _TANH32)
_TANH_BORDER = _F(0.55)
_EXP_LOW = _F(-87.33654022216797)  # the lowest x whose exp is a normal number
_EXP_HIGH = _F(88.72283172607422)  # the highest x whose exp is finite
_SMALLEST = _F(1.1754943508222875e-38)  # the smallest normal number
_LIFT = _F(8388608.0)  # 2^23
_LIFT_BITS = _F(23.0)
_MANTISSA_BITS, _MANTISSA, _ROOT_HALF = _I(23), _I(0x007FFFFF), _I(0x3F3504F3)

# float64
_LOG2E64 = _D(1.4426950408889634)
_LN2_HIGH64, _LN2_LOW64 = _D(_LN2_64[0]), _D(_LN2_64[1])
_D0, _D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9 = (_D(c) for c in _EXP64)
_EXP_LOW64 = _D(-708.3964185322641)
_EXP_HIGH64 = _D(709.782712893384)
_MANTISSA_BITS64 = np.int64(52)
_W0, _W1, _W2, _W3, _W4, _W5, _W6 = (_D(c) for c in _LOG64)
_SMALLEST64 = _D(2.2250738585072014e-308)
_LIFT64, _LIFT_BITS64 = _D(2.0**54), _D(54.0)
_MANTISSA64, _ROOT_HALF64 = np.int64(0x000F_FFFF_FFFF_FFFF), np.int64(0x3FE6_A09E_667F_3BCD)


@inlined_exact
def exp32(x: np.float32) -> np.float32:
    """exp(x) in float32, within 1 ULP; NaN gives NaN, +inf and all x above 88.7228 give inf.

    A result below the smallest normal number (x below -87.3365, -inf with it) is flushed to zero.
    """
    inside = x if x > _EXP_LOW else _EXP_LOW  # NaN goes the second way, so that the exponent is a number
    inside = inside if inside < _EXP_HIGH else _EXP_HIGH
    exponent = np.rint(inside * _LOG2E)
    r = (x - exponent * _LN2_HIGH) - exponent * _LN2_LOW
    y = _ONE + r * (_ONE + r * (_E0 + r * (_E1 + r * (_E2 + r * (_E3 + r * _E4)))))
    y = _F(_I(_F(y).view(_I) + (_I(exponent) << _MANTISSA_BITS)).view(_F))
    y = _ZERO if x < _EXP_LOW else y
    y = _INF if x > _EXP_HIGH else y
    return y if x == x else x


@inlined_exact
def _log32(x: np.float32, exponent: np.float32) -> np.float32:
    """log(x 2^exponent) of a normal number x above zero."""
    bits = _I(_F(x).view(_I) - _ROOT_HALF)
    k = _F(bits >> _MANTISSA_BITS) + exponent
    f = _F(_I((bits & _MANTISSA) + _ROOT_HALF).view(_F)) - _ONE
    square = f * f
    p = _L4 + f * (_L5 + f * (_L6 + f * (_L7 + f * _L8)))
    p = _L0 + f * (_L1 + f * (_L2 + f * (_L3 + f * p)))
    return k * _LN2_HIGH + (f + (square * (f * p - _HALF) + k * _LN2_LOW))


@inlined_exact
def log32(x: np.float32) -> np.float32:
    """log(x) in float32, within 1 ULP, subnormal x included.

    Zero of either sign gives -inf, a negative number NaN, +inf gives inf, NaN gives NaN.
    """
    good = x if x > _ZERO else _ONE
    small = good < _SMALLEST
    y = _log32(good * _LIFT if small else good, -_LIFT_BITS if small else _ZERO)
    y = y if x > _ZERO else (-_INF if x == _ZERO else _NAN)
    return y if x < _INF else (_NAN if x != x else _INF)


@inlined_exact
def xlogx32(x: np.float32) -> np.float32:
    """The product x log(x) in float32, within 3 ULP; 0 for a finite x up to the smallest normal number."""
    normal = x > _SMALLEST
    return x * _log32(x if normal else _ONE, _ZERO)


@inlined_exact
def tanh32(y: np.float32) -> np.float32:
    """tanh(y) in float32, within 2 ULP, subnormal y included; NaN gives NaN, an infinity 1 or -1."""
    size = y if y > _ZERO else -y
    tail = _ONE - _TWO / (exp32(size + size) + _ONE)
    square = y * y
    near = y + y * (square * (_T0 + square * (_T1 + square * (_T2 + square * (_T3 + square * _T4)))))
    far = tail if y > _ZERO else -tail
    return far if size > _TANH_BORDER else near


@inlined_exact
def exp64(x: np.float64) -> np.float64:
    """exp(x) in float64, within 1 ULP; NaN gives NaN, +inf and all x above 709.7827 give inf.

    A result below the smallest normal number (x below -708.3964, -inf with it) is flushed to zero.
    """
    inside = x if x > _EXP_LOW64 else _EXP_LOW64
    inside = inside if inside < _EXP_HIGH64 else _EXP_HIGH64
    exponent = np.rint(inside * _LOG2E64)
    r = (x - exponent * _LN2_HIGH64) - exponent * _LN2_LOW64
    q = _D4 + r * (_D5 + r * (_D6 + r * (_D7 + r * (_D8 + r * _D9))))
    y = _D(1.0) + r * (_D(1.0) + r * (_D0 + r * (_D1 + r * (_D2 + r * (_D3 + r * q)))))
    y = _D(np.int64(_D(y).view(np.int64) + (np.int64(_I(exponent)) << _MANTISSA_BITS64)).view(_D))
    y = _D(0.0) if x < _EXP_LOW64 else y
    y = _D(np.inf) if x > _EXP_HIGH64 else y
    return y if x == x else x


@inlined_exact
def log64(x: np.float64) -> np.float64:
    """log(x) in float64, within 1 ULP, subnormal x included.

    Zero of either sign gives -inf, a negative number NaN, +inf gives inf, NaN gives NaN.
    """
    good = x if x > _D(0.0) else _D(1.0)
    small = good < _SMALLEST64
    bits = np.int64(_D(good * _LIFT64 if small else good).view(np.int64) - _ROOT_HALF64)
    k = _D(bits >> _MANTISSA_BITS64) - (_LIFT_BITS64 if small else _D(0.0))
    f = _D(np.int64((bits & _MANTISSA64) + _ROOT_HALF64).view(_D)) - _D(1.0)
    s = f / (_D(2.0) + f)
    z = s * s
    w = z * (_W0 + z * (_W1 + z * (_W2 + z * (_W3 + z * (_W4 + z * (_W5 + z * _W6))))))
    half = _D(0.5) * f * f
    y = k * _LN2_HIGH64 + (f - (half - (s * (half + w) + k * _LN2_LOW64)))
    y = y if x > _D(0.0) else (_D(-np.inf) if x == _D(0.0) else _D(np.nan))
    return y if x < _D(np.inf) else (_D(np.nan) if x != x else _D(np.inf))


@inlined_exact
def quotient(x: float, y: float) -> float:
    """The quotient x / y as it stands: a kernel's flags allow x · (1 / y) as well.

    By way of 1 / y equal numbers need not give one, and a subnormal y gives infinity.
    """
    return x / y
