"""The activation functions of transformer blocks, under the names that model configurations use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._blocks import Kernel, elementwise
from oracle._erf import ERF_KERNELS

__all__ = ["ACTIVATIONS", "gelu", "gelu_tanh", "relu", "silu"]

Array = NDArray[Any]

# log(Phi(x) / Phi(-x)) / -x = _START + x^2 (_LIMIT + a1 / (x^2 + b1 + a2 / (x^2 + b2 + a3 / (x^2 + b3)))),
# Phi being the normal distribution function; fitted by tests/generate_erf_coefficients.py.
_START = -1.5957691216057308
_LIMIT = -0.016071917204217655
_PAIRS = (
    (-3.5436101443789823, 69.23527341330423),
    (-303.77488751930133, 13.589176818818785),
    (141.5602747832095, 4.3892109012207134),
)

_ROOT_HALF = "0.70710678118654752440084436210484903928483593768847"
_ROOT_8_OVER_PI = "1.5957691216057307117597842397375274739034345246597"
_CUBIC = "0.044715"  # of Hendrycks and Gimpel (2016), the tanh form


def _finite_below(block: Array, out: Array) -> None:
    """-inf becomes the lowest number: the limit of x times something that vanishes is 0, inf * 0 is NaN."""
    np.clip(block, np.finfo(block.dtype).min, np.inf, out=out)


def _gate(variable: Array, exponent: Array) -> None:
    """Leave variable / (1 + exp(exponent)) in `exponent`; where exp saturates that is -0."""
    np.exp(exponent, out=exponent)
    exponent += 1
    np.divide(variable, exponent, out=exponent)


def _gelu_float32(block: Array, out: Array, scratch: Array) -> None:
    """Phi(x) as a gate: a quarter of the passes of the erf form, and no cancellation for x < 0."""
    variable, square = scratch[:2]
    _finite_below(block, variable)
    np.multiply(variable, variable, out=square)
    a, b = _PAIRS[-1]
    np.add(square, b, out=out)
    np.divide(a, out, out=out)
    for a, b in _PAIRS[-2::-1]:
        out += square
        out += b
        np.divide(a, out, out=out)
    out += _LIMIT
    out *= square
    out += _START
    out *= variable
    _gate(variable, out)


def _gelu_erf(block: Array, out: Array, scratch: Array) -> None:
    variable = scratch[3]
    _finite_below(block, variable)
    variable *= block.dtype.type(_ROOT_HALF)
    ERF_KERNELS[block.dtype.type](variable, out, scratch)
    out += 1
    out *= 0.5
    _finite_below(block, variable)
    out *= variable


def _gelu_tanh(block: Array, out: Array, scratch: Array) -> None:
    """0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    kind = block.dtype.type
    variable = scratch[0]
    scale = -kind(_ROOT_8_OVER_PI)
    _finite_below(block, variable)
    np.multiply(variable, variable, out=out)
    out *= scale * kind(_CUBIC)
    out += scale
    out *= variable
    _gate(variable, out)


def _relu(block: Array, out: Array, scratch: Array) -> None:
    np.clip(block, 0, np.inf, out=out)


def _silu(block: Array, out: Array, scratch: Array) -> None:
    variable = scratch[0]
    _finite_below(block, variable)
    np.negative(variable, out=out)
    _gate(variable, out)


def _all_dtypes(kernel: Kernel) -> Mapping[type, Kernel]:
    return {np.float32: kernel, np.float64: kernel, np.longdouble: kernel}


_GELU: Mapping[type, Kernel] = {**_all_dtypes(_gelu_erf), np.float32: _gelu_float32}
_GELU_TANH, _RELU, _SILU = _all_dtypes(_gelu_tanh), _all_dtypes(_relu), _all_dtypes(_silu)


def gelu(x: Array) -> Array:
    """The exact form, x Phi(x) = x (1 + erf(x / sqrt(2))) / 2, elementwise.

    Any shape; float32, float64 or longdouble, computed in that dtype and returned in it. The error is at
    most 1.5 eps |x|; in float32 the RMS error on normal inputs is half of PyTorch's. gelu(-inf) is 0, its
    limit; gelu(inf) is inf; NaN stays NaN. Other dtypes raise InputTypeError. Source: Hendrycks and
    Gimpel (2016), section 2.
    """
    return elementwise("x", x, _GELU)


def gelu_tanh(x: Array) -> Array:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), elementwise: up to 4.8e-4 away from `gelu`.

    Shapes, dtypes, limits, errors and source as for `gelu`.
    """
    return elementwise("x", x, _GELU_TANH)


def relu(x: Array) -> Array:
    """max(x, 0), elementwise and exact; shapes, dtypes, NaN and errors as for `gelu`."""
    return elementwise("x", x, _RELU)


def silu(x: Array) -> Array:
    """The sigmoid-weighted x / (1 + exp(-x)), elementwise; also called swish.

    Shapes, dtypes, limits and errors as for `gelu`. Where exp(-x) overflows (x < -88.7 in float32) the
    result is -0. Source: Elfwing, Uchibe and Doya (2018), equation 1.
    """
    return elementwise("x", x, _SILU)


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "swish": silu,
}
