"""The clusters and maps of an audit: which metrics, with what beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject
from oracle.distances import CONVENTIONS, METRICS
from validation.audit.cluster_report import cluster_parts
from validation.audit.clustering import Clustering, cluster_heads, cluster_labels, defined_heads
from validation.audit.distances import Distances
from validation.metric_names import metric_name
from validation.progress import Progress
from validation.report.document import Note, Part
from validation.wording import counted

__all__ = [
    "CLUSTERED",
    "PRESET",
    "clusterings",
    "covariates",
    "grouping_parts",
    "head_labels",
    "parse_metrics",
]

Array = NDArray[Any]

PRESET = "clark2019"
_FEWEST = 3  # heads that can be clustered
CLUSTERED = (*(metric for metric in METRICS if metric != "aitchison_sink"), PRESET)


def parse_metrics(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """Metrics to cluster by, as they are written ("jsd,clark2019", "all") or as names; of None none.

    Raises InputError for another name, Unavailable where the libraries that cluster are missing.
    """
    if text is None or (not isinstance(text, str) and not text):
        return ()
    asked = [name.strip() for name in text.split(",")] if isinstance(text, str) else list(text)
    if asked == ["all"]:
        asked = list(CLUSTERED)
    unknown = [name for name in asked if name not in CLUSTERED]
    if unknown:
        reject(
            "cluster",
            expected=f"names from {', '.join(CLUSTERED)}, or all",
            found=", ".join(map(repr, unknown)),
            todo="Name some of them, with commas.",
        )
    cluster_labels(np.zeros((2, 2)), "average", (1,))  # is everything there? Better now than after the work
    return tuple(name for name in CLUSTERED if name in asked)


def clusterings(
    distances: Distances, metrics: Sequence[str], seed: int, progress: Progress
) -> dict[str, Clustering]:
    """A Clustering for each of `metrics` that was computed and has three heads with all their distances.

    The splits are those of the verdicts.
    """
    there = [metric for metric in metrics if _comparable(distances, metric) >= _FEWEST]
    found = {}
    for done, metric in enumerate(there):
        progress("clusters", done, len(there))
        found[metric] = cluster_heads(distances.found, covariates(distances), metric=metric, seed=seed)
    return found


def grouping_parts(
    distances: Distances, found: Mapping[str, Clustering], asked: Sequence[str], context: str
) -> tuple[Part, ...]:
    """The tables and sentences of all clusterings under a heading, and why others `asked` for are not."""
    if not asked:
        return ()
    labels = head_labels(distances)
    parts = [part for one in found.values() for part in cluster_parts(one, labels, context)]
    notes = [Note("not_clustered", _why_not(distances, name)) for name in asked if name not in found]
    return (Note("section", "Clusters and maps of the heads"), *parts, *notes)


def _comparable(distances: Distances, metric: str) -> int:
    """How many heads have all their distances by `metric` under both conventions; none if not computed."""
    keys = [(metric, convention) for convention in CONVENTIONS]
    if any(key not in distances.found.sums for key in keys):
        return 0
    return len(defined_heads(*(distances.mean(*key) for key in keys)))


def _why_not(distances: Distances, metric: str) -> str:
    """Why the heads are not clustered by `metric`."""
    name = metric_name(metric)
    if (metric, "keep") not in distances.found.sums:
        return f"{name} was not computed, so that there are no clusters and no map by it."
    heads = counted(_comparable(distances, metric), "head")
    return f"No clusters and no map by {name}: {heads} with all distances, where {_FEWEST} are needed."


def covariates(distances: Distances) -> dict[str, Array]:
    """What the axes of a map may go with, (head,) each."""
    return {
        "mean sink share": distances.sink_share,
        "content entropy": distances.content_entropy,
        "layer": distances.layers.astype(np.float64),
    }


def head_labels(distances: Distances) -> tuple[str, ...]:
    """A short name for each head: "3.11" for head 11 of layer 3."""
    return tuple(f"{layer}.{head}" for layer, head in distances.heads)
