"""How far two float64 computations of a distance between heads may be apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._distance_checks import read_texts
from oracle.rows import check_visible
from validation.cases import texts_of

__all__ = ["distance_bound"]

_EPS = float(np.finfo(np.float64).eps)


def distance_bound(metric: str, given: Mapping[str, Any], summed: bool) -> tuple[float, float]:
    """What a distance may be off, absolutely and relative to itself; `summed`: a sum over rows, not a mean.

    Closing a row of n keys twice changes its weights by (4 n + 16) eps of themselves at most, which is e; a
    row distance of theirs changes by less than 2 e, a root of one by less than 8 e. An entropy changes by 2 e
    times L, the largest |logarithm| of a part. Centred logarithms are off by c = e L each, so that a squared
    Aitchison distance d² changes by 2 c sqrt(n+1) d + c² (n+1), which is at most c sqrt(n+1) (1 + d²) +
    c² (n+1). The kernels themselves are good to (40 + 12 L) eps, or to less than e.
    """
    texts = [np.asarray(text) for text in texts_of(given)]
    n_keys = max(text.shape[-1] for text in texts)
    rows = max((text.shape[-2] for text in texts), default=0) if summed else 1
    largest = _largest(given, metric)
    e = (4 * n_keys + 16) * _EPS
    relative = (40 + 12 * largest + sum(text.shape[-2] for text in texts)) * _EPS
    if metric.startswith("aitchison"):
        c = e * largest
        absolute = c * np.sqrt(n_keys + 1) + c * c * (n_keys + 1)
        return rows * absolute, relative + c * np.sqrt(n_keys + 1)
    if metric == "entropy":
        return rows * 2 * e * largest, relative
    return rows * (8 if metric in ("root_jsd", "hellinger") else 2) * e, relative


def _largest(given: Mapping[str, Any], metric: str) -> float:
    """The largest |ln weight| of a positive part or, where they are used, |score|; at least one.

    Keys that are not visible are no parts, and several sinks are one.
    """
    found = [1.0]
    rows, names = next(iter(given.values())), ("sink_mask", "visible", "scores")
    for text in read_texts(rows, *(given.get(name) for name in names)):
        from_scores = text.scores is not None and metric.startswith("aitchison")
        values: NDArray[Any] = np.asarray(text.scores if from_scores else text.rows, np.float64)
        seen = True if text.visible is None else check_visible(text.visible, values)
        if not from_scores:
            on_sink = np.where(seen & text.sink_mask, values, 0).sum(axis=-1, keepdims=True)
            values = np.concatenate([np.where(seen & ~text.sink_mask, values, 0), on_sink], axis=-1)
            values = np.log(values, where=values > 0, out=np.zeros_like(values))
        found.append(float(np.abs(np.where(seen, values, 0) if from_scores else values).max(initial=1)))
    if given.get("delta"):
        found.append(abs(float(np.log(given["delta"]))))
    return max(found)
