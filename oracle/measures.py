"""Sink shares under three weightings, the odds law that links them, and the norms behind them.

Every measure takes attention with the key axis last, computes in float64 (longdouble when given
longdouble) and returns all queries. What is undefined is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import (
    as_array,
    at_least_float64,
    check_norm,
    check_norm_values,
    check_norms,
    first_place,
    reject,
    seen_keys,
)
from oracle._results import KeyRange, RowMeasures
from oracle.composition import entropy_split
from oracle.rows import check_rows, check_sinks, check_visible, check_weights

__all__ = [
    "UNDECLARED_ROWS",
    "UNDECLARED_WEIGHT",
    "head_summed_norm",
    "norm_odds_ratio",
    "row_measures",
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
    Keys that are not visible get zero, and a norm at a key that no query sees is not read. Raises
    InputError for anything else.
    """
    rows = check_rows(attention, visible)
    return rows if norm is None else rows * check_norm(norm, rows.shape, visible)[..., None, :]


def weight_share(weights: Any, sink_mask: Any, visible: Any = None) -> Array:
    """Share of the sink in any non-negative weights: sum over the sink / sum over all visible keys.

    `weights` (..., query, key) need not sum to one (head-summed norms do not). Returns (..., query) in
    [0, 1]; a row without sink gives 0, a row whose visible weights are all zero gives NaN, and so does a
    row of nothing but NaN (which is how `weighted_rows` and `head_summed_norm` mark a row without mass).
    Negative, infinite or other NaN weights of visible keys raise InputError.
    """
    weights = check_weights(weights, visible)
    return _share(weights, check_sinks(sink_mask, weights))


def sink_share(attention: Any, sink_mask: Any, norm: Any = None, visible: Any = None) -> Array:
    """Share s of each row's weight that lies on the sink: (..., query), in [0, 1], no unit.

    s = sum_S w / sum_(S+C) w, with w as in `weighted_rows`. A row that sees no sink gives 0, a row with
    no content mass 1, a row with no mass at all NaN. `sink_mask` (key,) broadcasts against attention.
    Raises InputError as `weighted_rows` does.
    """
    rows = check_rows(attention, visible)
    weights = rows
    if norm is not None:
        weights = rows * _lifted(check_norm(norm, rows.shape, visible))[..., None, :]
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
    weights = _summable(rows * _lifted(check_norm(norm, rows.shape, visible))[..., None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [
            np.where(part, weights, 0).sum(axis=-1) / np.where(part, rows, 0).sum(axis=-1)
            for part in (sinks, ~sinks)
        ]
        return means[0] / means[1]


def row_measures(
    attention: Any,
    sink_mask: Any,
    norms: Mapping[str, Any] | None = None,
    visible: Any = None,
    entropies: bool = False,
) -> RowMeasures:
    """Everything that these rows say about the sink, each array (..., query).

    `shares` holds `sink_share` under "attention" and under the name of each of `norms`, `ratios` holds
    `norm_odds_ratio` under those names, and `entropy` is `entropy_split` where `entropies` asks for it:
    ranges, units and NaN as there. Raises InputError as those do, and for a norm named "attention".
    """
    rows = check_rows(attention, visible)
    named = check_norms(norms, rows.shape, visible)
    return RowMeasures(
        shares={
            "attention": sink_share(attention, sink_mask, None, visible),
            **{name: sink_share(attention, sink_mask, norm, visible) for name, norm in named.items()},
        },
        ratios={name: norm_odds_ratio(attention, sink_mask, norm, visible) for name, norm in named.items()},
        entropy=entropy_split(attention, sink_mask, visible) if entropies else None,
    )


def value_norm_ratio(norm: Any, sink_mask: Any, visible: Any = None) -> Array:
    """Norm of each sink key over the mean norm of the content keys: (..., sink), at least 0, no unit.

    `norm` is (..., key), one text; the last axis of the result runs over the sink keys in their order.
    `visible` is a mask over keys (key,) or over (..., query, key), where a key counts if any query sees it;
    sinks that nobody sees are left out. A text without content gives NaN. Raises InputError for
    negative or non-finite norms of visible keys.
    """
    norms = at_least_float64("norm", norm)
    if norms.ndim == 0:
        reject("norm", expected="(..., key)", found="a single number", todo="Pass trace.value_norm.")
    keys = np.zeros(norms.shape[-1:])
    sinks = check_sinks(sink_mask, keys)
    seen = np.ones(sinks.shape, dtype=bool) if visible is None else _seen_keys(visible, keys)
    content = seen & ~sinks
    norms = np.where(seen, norms, 1)
    check_norm_values(norms)
    norms = _summable(norms)
    if not content.any():
        return np.full((*norms.shape[:-1], int((sinks & seen).sum())), np.nan, norms.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        return norms[..., sinks & seen] / norms[..., content].mean(axis=-1, keepdims=True)


def head_summed_norm(attention: Any, gram: Any, visible: Any = None) -> Array:
    """Norm of what all heads of a layer together take from each key: ‖sum_h a_h f_h‖, (..., query, key).

    From the Gram matrix at each key, ‖sum_h a_h f_h‖² = sum_(h,g) a_h a_g f_h·f_g, so that nothing of
    shape (query, key, d_model) is built (Kobayashi et al. 2020, arXiv 2004.10102, section 2; the sum over
    heads is taken before the norm). `attention` is (..., head, query, key), `gram` (..., key, head, head),
    `visible` broadcasts against attention. The quadratic form is clamped at zero, which rounding can
    undercut. Keys that are not visible get zero, and the gram at a key that no query sees is not read. A row
    without mass in any head is NaN. Raises InputError on other shapes and as `weighted_rows` does.
    """
    rows = check_rows(attention, visible)
    inner = at_least_float64("gram", gram)
    expected = (*rows.shape[:-3], rows.shape[-1], *rows.shape[-3:-2] * 2) if rows.ndim >= 3 else None
    if inner.shape != expected:
        reject(
            "gram",
            expected="(..., key, head, head) to go with attention (..., head, query, key)",
            found=f"{inner.shape} with {rows.shape}",
            todo="Keep it in the forward pass: keep=(..., 'transformed_gram').",
        )
    if visible is not None:
        by_head = np.broadcast_to(seen_keys(visible, rows.shape), (*rows.shape[:-2], rows.shape[-1]))
        inner = np.where(np.any(by_head, axis=-2)[..., None, None], inner, 0)
    if not np.isfinite(inner).all():
        place = first_place(~np.isfinite(inner))
        reject(
            "gram",
            expected="finite inner products",
            found=f"{inner[place]} at index {place}",
            todo="Pass trace.transformed_gram.",
        )
    at_key = np.moveaxis(rows, -1, -3)  # (..., key, head, query)
    squares = (at_key * (inner @ at_key)).sum(axis=-2)  # (..., key, query)
    return np.sqrt(np.maximum(squares, 0)).swapaxes(-1, -2)


def undeclared_sinks(attention: Any, sink_mask: Any, visible: Any = None) -> list[tuple[int, int, float]]:
    """Keys outside the sink set that act like one: (layer, key, weight), heaviest first.

    A key counts when its column weight, averaged over a layer's heads and at least 16 later queries (the
    diagonal is left out by that), exceeds 0.3. `attention` is (layer, head, query, key). A row without mass
    is left out: the mean is over the (head, query) pairs that have a row, and a query counts among the 16 if
    any head of the layer has one. Each layer is judged by itself. Raises InputError as `weighted_rows` does.
    """
    rows = check_rows(attention, visible)
    if rows.ndim != 4:
        reject(
            "attention",
            expected="(layer, head, query, key)",
            found=f"shape {rows.shape}",
            todo="Pass one text.",
        )
    sinks = check_sinks(sink_mask, rows)
    if not rows.size:
        return []
    declared = np.all(sinks.reshape((1,) * (4 - sinks.ndim) + sinks.shape), axis=(1, 2))  # (layer or 1, key)
    defined = ~np.isnan(rows[..., 0])  # (layer, head, query): a row is all NaN or has none
    rows[~defined] = 0
    later = np.tri(rows.shape[-2], rows.shape[-1], k=-1)  # (query, key), 1 where the query comes later
    queries, pairs = defined.any(axis=1) @ later, defined.sum(axis=1) @ later  # (layer, key)
    weight = np.where(later, rows.sum(axis=1), 0).sum(axis=1)  # (layer, key)
    weight /= np.maximum(pairs, 1)
    sinks_found = ~declared & (queries >= UNDECLARED_ROWS) & (weight > UNDECLARED_WEIGHT)
    found = [(int(layer), int(key), float(weight[layer, key])) for layer, key in np.argwhere(sinks_found)]
    return sorted(found, key=lambda item: -item[2])


def _seen_keys(visible: Any, keys: Array) -> NDArray[np.bool_]:
    """Which keys any query sees, (key,), from a mask over keys or over (..., query, key)."""
    if isinstance(visible, KeyRange):
        seen = check_visible(visible, np.broadcast_to(keys, (np.size(visible.start), *keys.shape)))
        return np.any(seen, axis=0)
    given = as_array("visible", visible)
    rows = np.broadcast_to(keys, (*given.shape[:-1], *keys.shape))
    return np.any(check_visible(given, rows), axis=tuple(range(given.ndim - 1)))


def _share(weights: Array, sinks: Array) -> Array:
    weights = _summable(weights)
    total = weights.sum(axis=-1)
    on_sink = np.where(sinks, weights, 0).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return on_sink / total


def _lifted(norm: Array) -> Array:
    """Norms (..., key), those of a head times a power of two: no share and no ratio changes.

    The largest is near the largest number then, so that no product with a small weight is lost.
    """
    exponent = np.frexp(norm.max(axis=-1, keepdims=True, initial=0))[1]
    return np.asarray(np.ldexp(norm, np.finfo(norm.dtype).maxexp - 2 - exponent))


def _summable(weights: Array) -> Array:
    """Finite weights with the rows whose sum overflows over a power of two: no share and no ratio changes."""
    with np.errstate(over="ignore"):
        lost = np.isinf(weights.sum(axis=-1, keepdims=True))
    halvings = weights.shape[-1].bit_length()
    return np.where(lost, np.ldexp(weights, -halvings), weights) if lost.any() else weights
