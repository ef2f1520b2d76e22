"""Whether a timed result is the oracle's, on a few of its rows where all of them would take minutes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle._results import DistanceSums, RowMeasures
from validation.bench.inputs import Pairs, Rows
from validation.compare import compare
from validation.distance_bounds import distance_bound
from validation.registry import bound_for, largest_score, parts_of

__all__ = ["distances_complaint", "rows_complaint", "shares_complaint"]

_HEADS = 3  # the first ones, of which a distance says all
_QUERIES = 3  # of every head, the last ones: in a causal text those that see most


def rows_complaint(found: RowMeasures, inputs: Rows) -> str:
    """What differs from the oracle on the last queries of rows (head, query, key); "" if nothing."""
    rows, sinks, norms = inputs
    expected = oracle.row_measures(rows[:, -_QUERIES:], sinks, norms, entropies=found.entropy is not None)
    results = parts_of(found, "share")
    said = []
    for (kind, name), truth in parts_of(expected, "share").items():
        bound = bound_for(kind, rows.dtype, rows.shape[-1])
        seen = compare(
            truth, results[kind, name][:, -_QUERIES:], absolute=bound.absolute, relative=bound.relative
        )
        said += [] if seen.within else [f"{kind} {name} {seen.message}"]
    return "; ".join(said)


def shares_complaint(found: NDArray[Any], pairs: Pairs, causal: bool) -> str:
    """The same for shares (head, query) from queries and keys."""
    query, key, norm, sinks = pairs
    truth = oracle.sink_share_from_query_key(query[:, -_QUERIES:], key, norm, sinks, causal=causal)
    bound = bound_for("share", query.dtype, key.shape[-2], score=largest_score(query[:, -_QUERIES:], key))
    seen = compare(truth, np.asarray(found)[:, -_QUERIES:], absolute=bound.absolute, relative=bound.relative)
    return "" if seen.within else f"share {seen.message}"


def distances_complaint(found: DistanceSums, rows: NDArray[Any], sink_mask: NDArray[np.bool_]) -> str:
    """The same for sums of distances between the heads of rows (head, query, key)."""
    some = rows[:_HEADS]
    metrics, conventions = ({pair[place] for pair in found.sums} for place in range(2))
    said = []
    for (metric, convention), truth in oracle.distance_sums(
        some, sink_mask, metrics, conventions
    ).sums.items():
        absolute, relative = distance_bound(metric, {"rows": some}, summed=True)
        ours = found.sums[metric, convention][:, :_HEADS, :_HEADS]
        seen = compare(truth, ours, absolute=absolute, relative=relative)
        said += [] if seen.within else [f"{metric} {convention} {seen.message}"]
    return "; ".join(said)
