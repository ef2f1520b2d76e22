"""The leaf operations of a forward pass, in the dtype of their input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.model import Linear, Norm

__all__ = ["layer_norm", "linear", "rms_norm", "softmax"]

Array = NDArray[Any]


def linear(x: Array, layer: Linear) -> Array:
    """Affine map x W + b over the last axis: (..., d_in) to (..., d_out)."""
    result = x @ layer.weight
    if layer.bias is not None:
        result += layer.bias
    return result


def layer_norm(x: Array, norm: Norm, epsilon: float) -> Array:
    """(x - mean) / sqrt(variance + epsilon), scaled and shifted, over the last axis.

    The variance is the biased one (Ba et al. 2016, arXiv 1607.06450, equation 4).
    """
    width = x.shape[-1]
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.einsum("...d,...d->...", centred, centred)[..., None] / x.dtype.type(width)
    variance += x.dtype.type(epsilon)
    centred /= np.sqrt(variance)
    centred *= norm.weight
    if norm.bias is not None:
        centred += norm.bias
    return centred


def rms_norm(x: Array, norm: Norm, epsilon: float, *, plus_one: bool = False) -> Array:
    """RMSNorm over the last axis: x / sqrt(mean of x^2 + epsilon), times the weight or one plus it.

    Source: Zhang and Sennrich 2019, arXiv 1910.07467, equation 4, with epsilon inside the root.
    """
    kind = x.dtype.type
    square = np.einsum("...d,...d->...", x, x)[..., None] / kind(x.shape[-1])
    square += kind(epsilon)
    result = x / np.sqrt(square)
    result *= norm.weight + kind(1) if plus_one else norm.weight
    return result


def softmax(scores: Array, out: Array | None = None) -> Array:
    """Rows of non-negative numbers that sum to one over the last axis; `scores` is not changed.

    A score of minus infinity gives exactly zero. A row of nothing but minus infinity has no softmax: it
    comes back as zeros, and whoever reads rows must ask `visible` first.
    """
    peak = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    peak[np.isneginf(peak)] = 0
    rows = np.subtract(scores, peak, out=out)
    np.exp(rows, out=rows)
    total = rows.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    rows /= total
    return rows
