"""Rows as compositions: the entropy of a row, split into its sink and its content."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._results import EntropySplit
from oracle.rows import check_rows, check_sinks

__all__ = ["entropy_split"]

Array = NDArray[Any]


def entropy_split(rows: Any, sink_mask: Any, visible: Any = None) -> EntropySplit:
    """Entropy of each row over n+1 parts (the content keys, and the sink as one): (..., query), in nats.

    H = h(s) + (1 - s) H(content), with s the sink share, h(s) = -s ln s - (1-s) ln(1-s) in [0, ln 2], and
    content the closed content weights, H(content) in [0, ln n]; 0 ln 0 = 0 (the chain rule of Shannon 1948,
    section 6). `total` is H, `binary` h(s), `content` H(content).

    A row without sink has s = 0 and binary 0, a row without content mass has total 0, binary 0 and content
    NaN, a row without any mass NaN throughout. `rows` (..., query, key) are attention rows, `sink_mask`
    (key,) and `visible` are those of `sink_share`, and InputError is raised as there.
    """
    weights = check_rows(rows, visible)
    sinks = check_sinks(sink_mask, weights)
    if not weights.shape[-1]:
        return EntropySplit(*(np.full(weights.shape[:-1], np.nan, weights.dtype) for _ in range(3)))
    on_sink = np.where(sinks, weights, 0).sum(axis=-1)
    kept = np.where(sinks, 0, weights)
    mass = kept.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share, rest = on_sink / (on_sink + mass), mass / (on_sink + mass)
        binary = _surprise(share, rest) + _surprise(rest, share)
        content = _entropy(kept / mass[..., None])
    total = binary + np.where(mass == 0, 0, rest * content)
    return EntropySplit(total, binary, content)


def _entropy(parts: Array) -> Array:
    """-sum p ln p over the last axis, to full relative accuracy where one part is nearly everything."""
    top = parts.argmax(axis=-1)[..., None]
    others = parts.copy()
    np.put_along_axis(others, top, 0, axis=-1)
    largest = np.take_along_axis(parts, top, axis=-1)[..., 0]
    # The largest part's own share is taken from what it leaves over: ln(1 - q) of a rounded 1 - q loses q.
    return _surprise(others, 1 - others).sum(axis=-1) + _surprise(largest, others.sum(axis=-1))


def _surprise(part: Array, rest: Array) -> Array:
    """-part ln part, where part + rest = 1; above one half the logarithm is taken from `rest`."""
    logarithm = np.where(part > 0.5, np.log1p(-rest), np.log(part))
    return np.where(part == 0, 0, -part * logarithm)
