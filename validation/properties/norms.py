"""Laws of norms and words: brute force built from the definitions beside the short forms in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation import definitions
from validation.properties.finding import Finding, deviation, size_of
from validation.properties.implementation import Implementation

__all__ = [
    "head_sum_by_definition",
    "norm_commutes_with_weight",
    "ratio_by_definition",
    "rows_opened_by_definition",
    "words_by_definition",
]

Array = NDArray[Any]


def ratio_by_definition(
    implementation: Implementation, norm: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """The value-norm ratio is ‖v_S‖ over the mean of ‖v_C‖; `norm` (..., key), both masks (key,)."""
    wanted = definitions.value_norm_ratio(norm, sink_mask, visible)
    gap = deviation(implementation.value_norm_ratio(norm, sink_mask, visible), wanted, size_of(wanted))
    bound = implementation.rounding(np.shape(norm)[-1], norm)
    return Finding("norm ratio by definition", gap[0], bound, gap[1])


def norm_commutes_with_weight(
    implementation: Implementation, attention: Any, values: Array, output_weight: Array
) -> Finding:
    """‖a f‖ = a ‖f‖ in one head: weighted rows against the norms of weighted vectors, built one by one.

    `attention` (head, query, key) with mass in every row, `values` (head, key, d_head), `output_weight`
    (head * d_head, d_model). This is the law that makes an array (query, key, d_model) needless.
    """
    vectors = definitions.transformed(values, output_weight)
    norms = _norms(vectors)
    rows = _closed(attention, values)
    wanted = np.array([definitions.vector_norm(rows[place] * vectors[place[::2]]) for place in _places(rows)])
    found = implementation.weighted_rows(attention, norms)
    gap = deviation(found, wanted.reshape(rows.shape), size_of(norms))
    bound = implementation.rounding(vectors.shape[-1] + rows.shape[-1], attention, values)
    return Finding("‖a f‖ = a ‖f‖", gap[0], bound, gap[1])


def head_sum_by_definition(
    implementation: Implementation, attention: Any, values: Array, output_weight: Array
) -> Finding:
    """‖sum_h a_h f_h‖ against brute force; arrays as in `norm_commutes_with_weight`.

    The Gram form cancels where the heads do, so squares are compared, relative to (sum_h a_h ‖f_h‖)²,
    which is what the terms of the form can add up to.
    """
    rows = _closed(attention, values)
    vectors = definitions.transformed(values, output_weight)
    wanted = definitions.head_summed_norm(rows, vectors)
    found = np.asarray(
        implementation.head_summed_norm(attention, implementation.transformed_gram(values, output_weight))
    )
    size = np.maximum((rows * _norms(vectors)[:, None, :]).sum(axis=0), np.finfo(np.float64).tiny)
    gap = deviation(found, wanted)
    if found.shape == wanted.shape:
        gap = deviation((found / size) ** 2, (wanted / size) ** 2)
    bound = implementation.rounding(vectors.shape[-1] + len(rows) ** 2, attention, values)
    return Finding("head-summed norm by definition", gap[0], bound, gap[1])


def words_by_definition(
    implementation: Implementation, weights: Any, groups: Sequence[Sequence[int]]
) -> Finding:
    """Merged words are sums over key pieces averaged over query pieces, taken one pair at a time."""
    wanted = definitions.merged_words(weights, groups)
    gap = deviation(implementation.merge_words(weights, groups), wanted, size_of(wanted))
    bound = implementation.rounding(np.shape(weights)[-1], weights)
    return Finding("words by definition", gap[0], bound, gap[1])


def rows_opened_by_definition(
    implementation: Implementation, weights: dict[str, Array], units: Sequence[Any]
) -> Finding:
    """The one-row-per-word table, link by link: opened heads, links, their weight, and sink shares.

    `weights` maps weightings to (layer, head, query, key); a wrong head or link is an infinite error.
    """
    opened = implementation.open_rows(weights, units, range(len(weights["attention"])))
    kinds = [unit.kind for unit in units]
    merged = {name: definitions.merged_words(w, [u.tokens for u in units]) for name, w in weights.items()}
    words = [index for index, kind in enumerate(kinds) if kind == "word"]
    first = {word: definitions.opened_row(merged["attention"], kinds, word) for word in words}
    links = {word: link for word, link in first.items() if link is not None}
    labels = tuple(units[link[2]].label for link in links.values())
    gap = deviation(opened.link_weight, [link[3] for link in links.values()])
    if opened.links != labels:
        gap = float("inf"), f"links {opened.links} instead of {labels}"
    for name, rows in merged.items():
        own = [definitions.opened_row(rows, kinds, word) for word in links]
        heads = [link[:2] for link in own if link is not None]
        picked = [rows[(*link[:2], word)] for word, link in links.items()]
        sinks = [[kind == "sink" for kind in kinds]] * len(picked)
        shares = [
            sum(weight for weight, sink in zip(row, chosen, strict=True) if sink) / sum(row)
            for row, chosen in zip(picked, sinks, strict=True)
        ]
        gap = max(gap, deviation(opened.shares[name], shares))
        if not np.array_equal(opened.heads[name], np.array(heads).reshape(-1, 2)):
            gap = float("inf"), f"heads that {name} opens"
    bound = implementation.rounding(np.shape(weights["attention"])[-1], *weights.values())
    return Finding("opened rows by definition", gap[0], bound, gap[1])


def _closed(attention: Any, values: Array) -> Array:
    rows = np.asarray(attention).astype(definitions.widest(attention, values))
    return rows / rows.sum(axis=-1, keepdims=True)


def _norms(vectors: Array) -> Array:
    """(head, key, d_model) to (head, key), one vector at a time."""
    norms = [definitions.vector_norm(vectors[place]) for place in np.ndindex(*vectors.shape[:2])]
    return np.array(norms, vectors.dtype).reshape(vectors.shape[:2])


def _places(rows: Array) -> np.ndindex:
    return np.ndindex(*rows.shape)
