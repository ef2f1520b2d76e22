"""Laws of the distances between heads, which are pooled over the rows of many texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation import distance_definitions as definitions
from validation.properties.distances import row_bound, row_size
from validation.properties.finding import Finding, deviation
from validation.properties.implementation import Implementation

__all__ = [
    "chosen_texts_by_loops",
    "heads_are_means_of_rows",
    "preset_by_definition",
    "text_order_changes_no_sum",
]

Array = NDArray[Any]
Texts = Sequence[Array]


def heads_are_means_of_rows(
    implementation: Implementation,
    rows: Texts,
    sink_mask: Texts,
    metric: str,
    convention: str,
    visible: Texts,
    queries: Texts,
) -> Finding:
    """Sums, counts and the mean over texts of the distance of two heads, from the loop over rows.

    `rows` holds one (..., query, key) array for each text, the others one mask for each; heads are flattened.
    A row that is undefined in either head is in neither sum nor count.
    """
    found = implementation.distance_sums(
        rows, sink_mask, (metric,), (convention,), visible=visible, queries=queries
    )
    sums, counts = definitions.distance_sums(rows, sink_mask, metric, convention, visible, queries)
    with np.errstate(invalid="ignore"):
        means = sums.sum(axis=0) / counts.sum(axis=0)
    means[np.diag_indices_from(means)] = 0
    heads = implementation.head_distances(
        rows, sink_mask, metric, convention, visible=visible, queries=queries
    )
    key = metric, convention
    count_gap = deviation(found.counts[key], counts)
    gap = max(
        (count_gap[0] and float("inf"), count_gap[1]),
        deviation(found.sums[key], sums, row_size(sums)),
        deviation(implementation.mean_distances(found, metric, convention), means, row_size(means)),
        deviation(heads, means, row_size(means)),
    )
    # Two ways to a root agree to the root of what their squares agree to.
    bound = row_bound(implementation, *rows) ** (0.5 if metric == "root_jsd" else 1)
    return Finding(f"{metric}, {convention}: heads by loops", gap[0], bound, gap[1])


def text_order_changes_no_sum(
    implementation: Implementation,
    rows: Texts,
    sink_mask: Texts,
    metric: str,
    convention: str,
    visible: Texts,
    queries: Texts,
    order: Sequence[int],
) -> Finding:
    """The sums of each text go with the text, bit for bit, and distances of heads do not depend on it."""
    given = [rows, sink_mask, visible, queries]
    moved = [[entries[text] for text in order] for entries in given]
    key = metric, convention
    plain, turned = (
        implementation.distance_sums(r, s, (metric,), (convention,), visible=v, queries=q)
        for r, s, v, q in (given, moved)
    )
    means = [implementation.mean_distances(sums, metric, convention) for sums in (plain, turned)]
    apart = deviation(turned.sums[key], plain.sums[key][list(order)])
    gap = max((apart[0] and float("inf"), apart[1]), deviation(means[1], means[0], row_size(means[0])))
    bound = implementation.rounding(len(rows))
    return Finding(f"{metric}, {convention}: text order is free", gap[0], bound, gap[1])


def chosen_texts_by_loops(
    implementation: Implementation,
    rows: Texts,
    sink_mask: Texts,
    metric: str,
    convention: str,
    visible: Texts,
    queries: Texts,
    texts: Sequence[int],
) -> Finding:
    """The mean over some texts alone, by number and by mask: what the halves of a floor are made of."""
    found = implementation.distance_sums(
        rows, sink_mask, (metric,), (convention,), visible=visible, queries=queries
    )
    some, sinks, seen, counted = (
        [entries[text] for text in texts] for entries in (rows, sink_mask, visible, queries)
    )
    sums, counts = definitions.distance_sums(some, sinks, metric, convention, seen, counted)
    with np.errstate(invalid="ignore"):
        wanted = sums.sum(axis=0) / counts.sum(axis=0)
    wanted[np.diag_indices_from(wanted)] = 0
    mask = np.isin(np.arange(len(rows)), texts)
    gap = max(
        deviation(implementation.mean_distances(found, metric, convention, chosen), wanted, row_size(wanted))
        for chosen in (list(texts), mask)
    )
    bound = row_bound(implementation, *rows) ** (0.5 if metric == "root_jsd" else 1)
    return Finding(f"{metric}, {convention}: chosen texts by loops", gap[0], bound, gap[1])


def preset_by_definition(
    implementation: Implementation, rows: Texts, visible: Texts, queries: Texts
) -> Finding:
    """The preset of Clark et al. 2019: rows smoothed over all visible keys, divergences added up."""
    found = implementation.clark2019_distances(rows, visible=visible, queries=queries)
    wanted = definitions.clark2019_distances(rows, visible, queries)
    gap = deviation(found, wanted, row_size(wanted))
    return Finding("clark2019 by definition", gap[0], row_bound(implementation, *rows), gap[1])
