"""Wrong measures: each is one mistake that somebody could make in good faith."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.words import OpenedRows
from validation.mutants.kinds import Mutant, instead
from validation.properties import Implementation

__all__ = ["MEASURE_MUTANTS"]

Array = NDArray[Any]
Apply = Callable[[Implementation], Implementation]


def _share(change: Callable[[Array, Array, Array], tuple[Any, Any, Any]]) -> Apply:
    """sink_share called with other arguments than it was given, wherever it is given norms."""

    def wrong(true: Any, rows: Any, sinks: Any, norm: Any = None, visible: Any = None) -> Any:
        if norm is None:
            return true(rows, sinks, norm, visible)
        return true(*change(rows, sinks, norm), visible)

    return instead("sink_share", wrong)


def _without_first_sink(rows: Array, sinks: Array, norm: Array) -> tuple[Array, Array, Array]:
    return rows, sinks, np.where(np.arange(len(sinks)) == np.argmax(sinks), 0, norm)


def _only_first_sink(rows: Array, sinks: Array, norm: Array) -> tuple[Array, Array, Array]:
    return rows, np.arange(len(sinks)) == np.argmax(sinks), norm


def _padding_in_rows(true: Any, rows: Any, sinks: Any, norm: Any = None, visible: Any = None) -> Any:
    weights = rows if norm is None else rows * norm[..., None, :]
    return (weights * sinks).sum(axis=-1) / weights.sum(axis=-1)


def _not_renormalised(true: Any, rows: Any, sinks: Any, norm: Any = None, visible: Any = None) -> Any:
    weights = rows if norm is None else rows * norm[..., None, :]
    return (weights * sinks).sum(axis=-1)


def _over_content(true: Any, *arguments: Any) -> Any:
    share = true(*arguments)
    return share / (1 - share)


def _floored(true: Any, *arguments: Any) -> Any:
    return np.nan_to_num(true(*arguments))


def _lean_norms(true: Any, rows: Any, sinks: Any, norm: Any = None, visible: Any = None) -> Any:
    """Weights multiplied in float32 on the way, which no tolerance of plotted figures would show."""
    if norm is None:
        return true(rows, sinks, norm, visible)
    weights = (rows.astype(np.float32) * norm[..., None, :].astype(np.float32)).astype(np.float64)
    weights = np.where(True if visible is None else visible, weights, 0)
    return true(weights / weights.sum(axis=-1, keepdims=True), sinks, None, visible)


def _plain_means(true: Any, rows: Any, sinks: Any, norm: Any, visible: Any = None) -> Any:
    """Ratio of plain means over keys, the ratio that a table of norms suggests."""
    seen = np.ones_like(sinks) if visible is None else visible
    ratio = norm[..., sinks & seen].mean(axis=-1) / norm[..., ~sinks & seen].mean(axis=-1)
    return np.broadcast_to(ratio[..., None], rows.shape[:-1])


def _inverted(true: Any, *arguments: Any) -> Any:
    return 1 / true(*arguments)


def _raw_rows(true: Any, rows: Any, norm: Any = None, visible: Any = None) -> Any:
    seen = np.where(True if visible is None else visible, rows.astype(np.float64), 0)
    return seen if norm is None else seen * norm[..., None, :]


def _transposed_rows(true: Any, *arguments: Any) -> Any:
    return true(*arguments).swapaxes(-1, -2)


def _everything_seen(true: Any, weights: Any, sinks: Any, visible: Any = None) -> Any:
    """The mask of visible keys applied to the sink alone, so that content counts too many keys."""
    return true(weights, sinks if visible is None else sinks & ~visible)


def _ratio_of_all_keys(true: Any, norm: Any, sinks: Any, visible: Any = None) -> Any:
    seen = np.ones_like(sinks) if visible is None else visible
    return norm[..., sinks & seen] / norm[..., seen].mean(axis=-1, keepdims=True)


def _ratio_to_median(true: Any, norm: Any, sinks: Any, visible: Any = None) -> Any:
    seen = np.ones_like(sinks) if visible is None else visible
    return norm[..., sinks & seen] / np.median(norm[..., ~sinks & seen], axis=-1, keepdims=True)


def _ratio_with_padding(true: Any, norm: Any, sinks: Any, visible: Any = None) -> Any:
    return true(norm, sinks)


def _sum_of_norms(true: Any, rows: Any, gram: Any) -> Any:
    norms = np.sqrt(np.einsum("khh->hk", gram))
    return (rows * norms[:, None, :]).sum(axis=0)


def _no_cross_terms(true: Any, rows: Any, gram: Any) -> Any:
    return np.sqrt((rows**2 * np.einsum("khh->hk", gram)[:, None, :]).sum(axis=0))


def _normalised_first(true: Any, weights: Any, groups: Any) -> Any:
    return true(weights / weights.sum(axis=-1, keepdims=True), groups)


def _keys_averaged(true: Any, weights: Any, groups: Any) -> Any:
    return true(weights, groups) / np.array([len(group) for group in groups])


def _first_query_piece(true: Any, weights: Any, groups: Any) -> Any:
    rows = [[weights[..., query[0], list(key)].sum(axis=-1) for key in groups] for query in groups]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _own_heads(true: Any, weights: Any, units: Any, layers: Any) -> OpenedRows:
    """Each weighting's share read on the head that the weighting itself opens."""
    opened = true(weights, units, layers)
    own = {name: true({"attention": w}, units, layers).shares["attention"] for name, w in weights.items()}
    return opened._replace(shares=own)


def _sink_displayed(true: Any, weights: Any, units: Any, layers: Any) -> OpenedRows:
    """The displayed row not renormalised over the content: the link's part of the whole row."""
    opened = true(weights, units, layers)
    return opened._replace(link_weight=opened.link_mass)


MEASURE_MUTANTS = tuple(
    Mutant(name, "measure", trial, apply)
    for name, trial, apply in (
        ("all norms 1", "norms move real rows", _share(lambda a, s, n: (a, s, np.ones_like(n)))),
        ("norm of the first sink 0", "shares by loops", _share(_without_first_sink)),
        ("norms shuffled over keys", "shares by loops", _share(lambda a, s, n: (a, s, np.roll(n, 1, -1)))),
        ("norms sorted", "key order is free", _share(lambda a, s, n: (a, s, np.sort(n, -1)))),
        ("norms squared", "odds law", _share(lambda a, s, n: (a, s, n**2))),
        ("norms of the next head", "shares by loops", _share(lambda a, s, n: (a, s, np.roll(n, 1, -2)))),
        ("sink mask shifted by one", "shares by loops", _share(lambda a, s, n: (a, np.roll(s, 1), n))),
        ("only the first sink counts", "shares by loops", _share(_only_first_sink)),
        ("padding counted in rows", "padding is free", instead("sink_share", _padding_in_rows)),
        ("weights not renormalised", "norm scale is free", instead("sink_share", _not_renormalised)),
        ("sink over content", "share in [0, 1]", instead("sink_share", _over_content)),
        ("undefined share made 0", "rows by hand", instead("sink_share", _floored)),
        ("weights in float32", "unit norms: same bits", instead("sink_share", _lean_norms)),
        ("r from unweighted means", "odds law", instead("norm_odds_ratio", _plain_means)),
        ("r upside down", "r > 1 iff share grows", instead("norm_odds_ratio", _inverted)),
        ("rows not closed", "rows sum to one", instead("weighted_rows", _raw_rows)),
        ("query and key swapped", "‖a f‖ = a ‖f‖", instead("weighted_rows", _transposed_rows)),
        ("head sum transposed", "head sum by loops", instead("head_summed_norm", _transposed_rows)),
        ("padding counted as content", "share of weights", instead("weight_share", _everything_seen)),
        ("ratio to all keys", "ratio by loops", instead("value_norm_ratio", _ratio_of_all_keys)),
        ("ratio to the median", "ratio by loops", instead("value_norm_ratio", _ratio_to_median)),
        ("padding in ratio's mean", "padding is free", instead("value_norm_ratio", _ratio_with_padding)),
        ("sum of norms over heads", "head sum by loops", instead("head_summed_norm", _sum_of_norms)),
        ("head sum, no cross terms", "head sum by loops", instead("head_summed_norm", _no_cross_terms)),
        ("pieces normalised first", "words by loops", instead("merge_words", _normalised_first)),
        ("key pieces averaged", "words by hand", instead("merge_words", _keys_averaged)),
        ("first query piece only", "words by hand", instead("merge_words", _first_query_piece)),
        ("shares on their own heads", "opened rows by loops", instead("open_rows", _own_heads)),
        ("link not renormalised", "opened rows by loops", instead("open_rows", _sink_displayed)),
    )
)
"""Mistakes in shares, ratios, head sums and words."""
