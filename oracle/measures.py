"""Sink shares under three weightings, the odds law that links them, and the norms behind them.

Every measure takes attention with the key axis last, computes in float64 (longdouble when given
longdouble) and returns all queries. What is undefined is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import at_least_float64, reject
from oracle.rows import check_norm, check_norm_values, check_rows, check_sinks, check_visible

__all__ = [
    "head_summed_norm",
    "norm_odds_ratio",
    "sink_share",
    "undeclared_sinks",
    "value_norm_ratio",
    "weight_share",
    "weighted_rows",
]

Array = NDArray[Any]

UNDECLARED_WEIGHT = 0.3
UNDECLARED_ROWS = 16


def weighted_rows(attention: Any, norm: Any = None, visible: Any = None) -> Array:
    """Attention weights times the norm of what each key hands on, not normalised: (..., query, key).

    w[i,j] = a[i,j] · ‖v_j‖ with `norm` the value norms, a[i,j] · ‖f_j‖ with the transformed norms
    (Kobayashi et al. 2020, arXiv 2004.10102, section 2), and a[i,j] itself without `norm`.

    Parameters: `attention` (..., query, key), rows that sum to one within 0.01 (they are closed) or to
    exactly zero (NaN); `norm` (..., key), finite and not negative; `visible` broadcasts against attention.
    Keys that are not visible get zero. Raises InputError for anything else.
    """
    rows = check_rows(attention, visible)
    return rows if norm is None else rows * check_norm(norm, rows)[..., None, :]


def weight_share(weights: Any, sink_mask: Any, visible: Any = None) -> Array:
    """Share of the sink in any non-negative weights: sum over the sink / sum over all visible keys.

    `weights` (..., query, key) need not sum to one (head-summed norms do not). Returns (..., query) in
    [0, 1]; a row without sink gives 0, a row whose visible weights are all zero gives NaN. Negative or
    non-finite weights raise InputError.
    """
    weights = _check_weights(weights)
    sinks = check_sinks(sink_mask, weights)
    if visible is not None:
        weights = np.where(check_visible(visible, weights), weights, 0)
    return _share(weights, sinks)


def sink_share(attention: Any, sink_mask: Any, norm: Any = None, visible: Any = None) -> Array:
    """Share s of each row's weight that lies on the sink: (..., query), in [0, 1], no unit.

    s = sum_S w / sum_(S+C) w, with w as in `weighted_rows`. A row that sees no sink gives 0, a row with
    no content mass 1, a row with no mass at all NaN. `sink_mask` (key,) broadcasts against attention.
    Raises InputError as `weighted_rows` does.
    """
    weights = weighted_rows(attention, norm, visible)
    return _share(weights, check_sinks(sink_mask, weights))


def norm_odds_ratio(attention: Any, sink_mask: Any, norm: Any, visible: Any = None) -> Array:
    """How weighting by `norm` multiplies the odds of the sink: r, (..., query), at least 0, no unit.

    r = (mean norm over the sink, weighted by a) / (mean norm over the content, weighted by a), so that
    s' / (1 - s') = r · s / (1 - s) exactly: a row's share grows if and only if r > 1. A row without sink
    mass or without content mass has no r: NaN. Content of zero norm gives infinity (NaN if the sink's is
    zero too). Raises InputError as `weighted_rows` does.
    """
    rows = weighted_rows(attention, None, visible)
    sinks = check_sinks(sink_mask, rows)
    norms = check_norm(norm, rows)[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [
            np.where(part, rows * norms, 0).sum(axis=-1) / np.where(part, rows, 0).sum(axis=-1)
            for part in (sinks, ~sinks)
        ]
        return means[0] / means[1]


def value_norm_ratio(norm: Any, sink_mask: Any, visible: Any = None) -> Array:
    """Norm of each sink key over the mean norm of the content keys: (..., sink), at least 0, no unit.

    `norm` is (..., key), one text; the last axis of the result runs over the sink keys in their order.
    `visible` is a mask over keys (key,) or over (..., query, key), where a key counts if any query sees it;
    sinks that nobody sees are left out. A text without content gives NaN. Raises InputError for
    negative or non-finite norms of visible keys.
    """
    norms = at_least_float64("norm", norm)
    sinks = np.asarray(sink_mask)
    if norms.ndim == 0 or sinks.shape != norms.shape[-1:] or sinks.dtype != bool:
        reject(
            "sink_mask",
            expected=f"booleans of shape (key,) for norms of shape {norms.shape}",
            found=f"{sinks.dtype} of shape {sinks.shape}",
            todo="Pass trace.sink_mask.",
        )
    given = np.ones(sinks.shape, dtype=bool) if visible is None else np.asarray(visible, dtype=bool)
    seen: NDArray[np.bool_] = np.any(given, axis=tuple(range(given.ndim - 1)))
    content = seen & ~sinks
    norms = np.where(seen, norms, 1)
    check_norm_values(norms)
    if not content.any():
        return np.full((*norms.shape[:-1], int((sinks & seen).sum())), np.nan, norms.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        return norms[..., sinks & seen] / norms[..., content].mean(axis=-1, keepdims=True)


def head_summed_norm(attention: Any, gram: Any) -> Array:
    """Norm of what all heads of a layer together take from each key: ‖sum_h a_h f_h‖, (..., query, key).

    From the Gram matrix at each key, ‖sum_h a_h f_h‖² = sum_(h,g) a_h a_g f_h·f_g, so that nothing of
    shape (query, key, d_model) is built (Kobayashi et al. 2020, arXiv 2004.10102, section 2; the sum over
    heads is taken before the norm). `attention` is (..., head, query, key), `gram` (..., key, head, head).
    The quadratic form is clamped at zero, which rounding can undercut. Raises InputError on other shapes.
    """
    rows = check_rows(attention, None)
    inner = at_least_float64("gram", gram)
    expected = (*rows.shape[:-3], rows.shape[-1], *rows.shape[-3:-2] * 2) if rows.ndim >= 3 else None
    if inner.shape != expected:
        reject(
            "gram",
            expected="(..., key, head, head) to go with attention (..., head, query, key)",
            found=f"{inner.shape} with {rows.shape}",
            todo="Keep it in the forward pass: keep=(..., 'transformed_gram').",
        )
    at_key = np.moveaxis(rows, -1, -3)  # (..., key, head, query)
    squares = (at_key * (inner @ at_key)).sum(axis=-2)  # (..., key, query)
    return np.sqrt(np.maximum(squares, 0)).swapaxes(-1, -2)


def undeclared_sinks(attention: Any, sink_mask: Any, visible: Any = None) -> list[tuple[int, int, float]]:
    """Keys outside the sink set that act like one: (layer, key, weight), heaviest first.

    A key counts when its column weight, averaged over a layer's heads and at least 16 later rows (the
    diagonal is left out by that), exceeds 0.3. `attention` is (layer, head, query, key); rows without mass
    are left out. Raises InputError as `weighted_rows` does.
    """
    rows = check_rows(attention, visible)
    if rows.ndim != 4:
        reject(
            "attention",
            expected="(layer, head, query, key)",
            found=f"shape {rows.shape}",
            todo="Pass one text.",
        )
    sinks = np.broadcast_to(check_sinks(sink_mask, rows), rows.shape).all(axis=(0, 1, 2))
    real: NDArray[np.bool_] = np.logical_not(np.isnan(rows).any(axis=(0, 1, 3)))
    found = []
    for key in np.flatnonzero(~sinks).tolist():
        later = np.flatnonzero(real[key + 1 :]) + key + 1
        if len(later) < UNDECLARED_ROWS:
            continue
        weights = rows[:, :, later, key].mean(axis=(1, 2))
        found += [(layer, key, float(w)) for layer, w in enumerate(weights) if w > UNDECLARED_WEIGHT]
    return sorted(found, key=lambda item: -item[2])


def _check_weights(weights: Any) -> Array:
    array = at_least_float64("weights", weights)
    if array.ndim < 2 or not np.isfinite(array).all() or (array < 0).any():
        reject(
            "weights",
            expected="finite weights of at least zero, (..., query, key)",
            found=f"shape {array.shape} with {int((~(array >= 0)).sum())} negative or NaN entries",
            todo="Pass weights, not scores.",
        )
    return array


def _share(weights: Array, sinks: Array) -> Array:
    total = weights.sum(axis=-1)
    on_sink = np.where(sinks, weights, 0).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return on_sink / total
