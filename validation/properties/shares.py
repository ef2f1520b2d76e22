"""Laws of rows, shares and the odds ratio. `attention` is (..., query, key), `norm` (..., key)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation import definitions
from validation.properties.finding import Finding, deviation, size_of
from validation.properties.implementation import Implementation

__all__ = [
    "key_order_is_free",
    "norm_scale_is_free",
    "odds_law",
    "padding_is_free",
    "ratio_decides_direction",
    "rows_sum_to_one",
    "share_by_definition",
    "share_in_range",
    "share_of_weights",
    "unit_norms_are_attention",
]

Array = NDArray[Any]


def rows_sum_to_one(implementation: Implementation, attention: Any, visible: Any = None) -> Finding:
    """Rows sum to one over visible keys, are zero at the others, and NaN where there is no mass.

    Without a single key there is nothing to be NaN: the empty sum is zero.
    """
    rows = implementation.weighted_rows(attention, None, visible)
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), rows.shape)
    mass = np.asarray(np.where(seen, np.asarray(attention), 0).any(axis=-1))
    wanted = np.where(mass, 1.0, np.nan) if rows.shape[-1] else np.zeros(rows.shape[:-1])
    error, place = deviation(rows.sum(axis=-1), wanted)
    if (rows[~seen & mass[..., None]] != 0).any():
        error, place = float("inf"), "a key that is not visible"
    bound = implementation.rounding(rows.shape[-1], attention)
    return Finding("rows sum to one", error, bound, place)


def share_in_range(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any = None, visible: Any = None
) -> Finding:
    """0 <= s <= 1 without any slack; the error is how far the worst row is outside."""
    share = implementation.sink_share(attention, sink_mask, norm, visible)
    known = share[~np.isnan(share)]
    outside = max(-float(known.min(initial=0)), float(known.max(initial=1)) - 1)
    return Finding("the share lies in [0, 1]", outside + 0.0, 0.0)


def share_by_definition(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any = None, visible: Any = None
) -> Finding:
    """Shares sum_S w / sum_(S+C) w, and r from its own definition, both taken key by key in loops."""
    share, ratio = definitions.sink_share_and_ratio(attention, sink_mask, norm, visible)
    bound = implementation.rounding(np.shape(attention)[-1], attention, norm)
    gap = deviation(implementation.sink_share(attention, sink_mask, norm, visible), share)
    if norm is not None:
        found = implementation.norm_odds_ratio(attention, sink_mask, norm, visible)
        gap = max(gap, deviation(_squeeze(found), _squeeze(ratio)))
    return Finding("shares by definition", gap[0], bound, gap[1])


def share_of_weights(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any, visible: Any = None
) -> Finding:
    """The share of weighted rows is the weighted share, whichever of the two calls is made."""
    rows = implementation.weighted_rows(attention, norm, visible)
    known = ~np.isnan(rows).any(axis=-1)
    found = implementation.weight_share(np.where(known[..., None], rows, 0), sink_mask, visible)
    gap = deviation(found, implementation.sink_share(attention, sink_mask, norm, visible))
    bound = implementation.rounding(np.shape(attention)[-1], attention, norm)
    return Finding("share of weighted rows", gap[0], bound, gap[1])


def odds_law(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any, visible: Any = None
) -> Finding:
    """s'/(1 - s') = r s/(1 - s), solved for s'; a row without r has s in {0, 1} or no s' at all.

    1 - s is taken as the share of the content, which keeps its digits where s is nearly one.
    """
    before, after = _shares(implementation, attention, sink_mask, norm, visible)
    content, _ = _shares(implementation, attention, ~np.asarray(sink_mask, dtype=bool), norm, visible)
    ratio = implementation.norm_odds_ratio(attention, sink_mask, norm, visible)
    with np.errstate(invalid="ignore"):
        wanted = ratio * before / (ratio * before + content)
    wanted = np.where(np.isposinf(ratio), 1, wanted)
    one_sided = np.isnan(ratio) & ((before == 0) | (content == 0) | np.isnan(after))
    gap = deviation(after, np.where(one_sided, after, wanted))
    bound = 2 * implementation.rounding(np.shape(attention)[-1], attention, norm)
    return Finding("odds law", gap[0], bound, gap[1])


def ratio_decides_direction(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any, visible: Any = None
) -> Finding:
    """The odds of the sink grow if and only if r > 1; the error is the number of rows that disagree."""
    before, after = _shares(implementation, attention, sink_mask, norm, visible)
    contents = _shares(implementation, attention, ~np.asarray(sink_mask, dtype=bool), norm, visible)
    ratio = implementation.norm_odds_ratio(attention, sink_mask, norm, visible)
    near = 2 * implementation.rounding(np.shape(attention)[-1], attention, norm)
    with np.errstate(invalid="ignore"):
        grew = after * contents[0] > before * contents[1]
        wrong = (np.abs(ratio - 1) > near) & (grew != (ratio > 1))
    return Finding("r > 1 iff the share grows", float(wrong.sum()), 0.0)


def norm_scale_is_free(
    implementation: Implementation,
    attention: Any,
    sink_mask: Any,
    norm: Any,
    factor: float,
    visible: Any = None,
) -> Finding:
    """Multiplying every norm by one positive factor changes neither the share nor r."""
    scaled = np.asarray(norm).astype(definitions.widest(norm)) * factor
    pairs = [
        [function(attention, sink_mask, norms, visible) for norms in (scaled, norm)]
        for function in (implementation.sink_share, implementation.norm_odds_ratio)
    ]
    gap = max(deviation(pairs[0][0], pairs[0][1]), deviation(*(_squeeze(ratio) for ratio in pairs[1])))
    bound = implementation.rounding(np.shape(attention)[-1], attention, norm)
    return Finding("the scale of the norm is free", gap[0], bound, gap[1])


def unit_norms_are_attention(
    implementation: Implementation, attention: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """With all norms one, shares and weighted rows equal those of attention bit for bit."""
    ones = np.ones(np.shape(attention)[-1])
    shares = [implementation.sink_share(attention, sink_mask, norm, visible) for norm in (ones, None)]
    rows = [implementation.weighted_rows(attention, norm, visible) for norm in (ones, None)]
    gap = max(deviation(*shares), deviation(*rows))
    return Finding("unit norms are attention", gap[0], 0.0, gap[1])


def key_order_is_free(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any, order: Any, visible: Any = None
) -> Finding:
    """Permuting the keys permutes weighted rows and leaves shares and r as they are."""
    rows, sinks, norms = (np.asarray(array) for array in (attention, sink_mask, norm))
    seen = np.broadcast_to(True if visible is None else np.asarray(visible), rows.shape)
    moved = rows[..., order], sinks[..., order], norms[..., order], seen[..., order]
    gap = max(
        deviation(
            implementation.weighted_rows(moved[0], moved[2], moved[3]),
            implementation.weighted_rows(rows, norms, seen)[..., order],
            size_of(norms),
        ),
        deviation(implementation.sink_share(*moved), implementation.sink_share(rows, sinks, norms, seen)),
        deviation(
            _squeeze(implementation.norm_odds_ratio(*moved)),
            _squeeze(implementation.norm_odds_ratio(rows, sinks, norms, seen)),
        ),
    )
    bound = implementation.rounding(rows.shape[-1], attention, norm)
    return Finding("the order of the keys is free", gap[0], bound, gap[1])


def padding_is_free(
    implementation: Implementation,
    attention: Any,
    sink_mask: Any,
    norm: Any,
    padding: int,
    left: bool = False,
    garbage: float = 0.25,
) -> Finding:
    """Invisible keys, whatever weight and norm stand there, change no share, no r and no norm ratio.

    `sink_mask` is (key,). `padding` invisible keys with weight `garbage` and norm 7 are put on one side.
    """
    plain = [np.asarray(array) for array in (attention, sink_mask, norm)]
    seen = np.ones(plain[1].shape, dtype=bool)
    padded = []
    for array, fill in zip((*plain, seen), (garbage, False, 7.0, False), strict=True):
        extra = np.full((*array.shape[:-1], padding), fill, array.dtype)
        padded.append(np.concatenate([extra, array] if left else [array, extra], axis=-1))
    rows, sinks, norms, real = padded
    ratio = implementation.value_norm_ratio(plain[2], plain[1])
    gap = max(
        deviation(implementation.sink_share(rows, sinks, norms, real), implementation.sink_share(*plain)),
        deviation(
            _squeeze(implementation.norm_odds_ratio(rows, sinks, norms, real)),
            _squeeze(implementation.norm_odds_ratio(*plain)),
        ),
        deviation(implementation.value_norm_ratio(norms, sinks, real), ratio, size_of(ratio)),
    )
    bound = implementation.rounding(len(seen) + padding, attention, norm)
    return Finding("padding is free", gap[0], bound, gap[1])


def _shares(
    implementation: Implementation, attention: Any, sink_mask: Any, norm: Any, visible: Any
) -> tuple[Array, Array]:
    """The share before and after weighting."""
    before, after = (
        implementation.sink_share(attention, sink_mask, weight, visible) for weight in (None, norm)
    )
    return before, after


def _squeeze(ratio: Array) -> Array:
    """Map r to r / (1 + r), so that ratios from zero to infinity are compared on one bounded scale."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isposinf(ratio), 1, ratio / (1 + ratio))
