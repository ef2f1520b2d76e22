"""Clusters and maps of the heads under two conventions, beside what halves of the texts give under one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import DistanceSums, Unavailable, mean_distances
from oracle._checks import at_least_float64, reject
from validation.audit.halves import SPLITS, text_halves
from validation.audit.scaling import AxisFit, Scaling, axis_fit, classical_scaling

__all__ = [
    "LINKAGES",
    "Clustering",
    "Side",
    "cluster_heads",
    "cluster_labels",
    "defined_heads",
    "takes_root",
    "with_clark2019",
]

Array = NDArray[Any]
Key = tuple[str, str]

LINKAGES = ("average", "ward")

_MOST = 10  # clusters
# Whose mean is that of a squared metric, so that its root is one: 1 - cos is half a squared distance of unit
# vectors, the JSD is the square of a metric, and Aitchison's mean is of d².
_SQUARED = ("aitchison", "aitchison_sink", "clark2019", "cosine", "jsd")


class Side(NamedTuple):
    """What one distance matrix says of the heads that were kept.

    `labels` are (k, head), numbered from 0 in the order of the heads; `split_half` (split, k) adjusted Rand
    indices of two halves of the texts; both by linkage. A split is NaN where a half lacks a distance, and
    there are no splits of one text. `halves` are the R² of both axes in every half, (half,), by covariate.
    `rows` are the lowest and the highest number of pooled rows that a pair of heads has.
    """

    key: Key
    labels: Mapping[str, Array]
    split_half: Mapping[str, Array]
    scaling: Scaling
    fits: Mapping[str, AxisFit]
    halves: Mapping[str, Array]
    rows: tuple[int, int]

    def sizes(self, linkage: str, clusters: int) -> tuple[int, ...]:
        """Heads in each of `clusters` clusters, the largest first."""
        counts = np.bincount(self.labels[linkage][clusters - 2])
        return tuple(sorted((int(count) for count in counts), reverse=True))


class Clustering(NamedTuple):
    """Two sides, such as one metric under keep and under drop, over the same heads.

    `heads` are the indices of the heads that were kept, `excluded` those left out because a distance of
    theirs is undefined on either side. `clusters` are the numbers of clusters, `agreement` (k,) the adjusted
    Rand indices of the first side against the second by linkage: 1 the same clusters, 0 by chance on average.
    """

    first: Side
    second: Side
    heads: Array
    excluded: tuple[int, ...]
    clusters: tuple[int, ...]
    agreement: Mapping[str, Array]


def takes_root(metric: str, use: str) -> bool:
    """Whether "average", "ward" or "scaling" takes the root of the mean distance, as a metric is needed.

    So it is where the mean is one of squares, for Ward and the scaling; the scaling of "clark2019" takes the
    divergence itself, as that paper does.
    """
    if use == "average" or (use == "scaling" and metric == "clark2019"):
        return False
    return metric in _SQUARED


def defined_heads(*matrices: Array) -> Array:
    """Indices of heads (head,) between which every distance of every (head, head) matrix is defined.

    The head with the most NaN among those left is taken out, the first of several, until there is none.
    """
    undefined = np.logical_or.reduce([np.isnan(matrix) for matrix in matrices])
    undefined = undefined | undefined.T
    left = np.arange(len(undefined))
    while undefined[np.ix_(left, left)].any():
        left = np.delete(left, undefined[np.ix_(left, left)].sum(axis=1).argmax())
    return left


def cluster_labels(distances: Array, linkage: str, clusters: Sequence[int]) -> Array:
    """Labels (k, head) of the heads when the tree over `distances` (head, head) is cut into so many clusters.

    `linkage` is "average" or "ward"; Ward's needs the distances of points. There are always as many clusters
    as asked for, equal heights included; labels are numbered in the order of the heads. Raises Unavailable
    without the extra.
    """
    hierarchy, squareform, _ = _libraries()
    tree = hierarchy.linkage(squareform(distances, checks=False), method=linkage)
    # By the order of the merges, not their heights: equal heights would give fewer clusters than asked for.
    order = np.arange(len(tree), dtype=np.float64)
    cuts = [hierarchy.fcluster(tree, k, "maxclust_monocrit", monocrit=order) for k in clusters]
    return np.stack([_numbered(cut) for cut in cuts])


def _numbered(labels: Array) -> Array:
    """The same clusters, numbered from 0 in the order in which they appear."""
    _, first, where = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[where]


def cluster_heads(
    found: DistanceSums,
    covariates: Mapping[str, Array],
    *,
    metric: str,
    splits: int = SPLITS,
    seed: int = 0,
    against: Key | None = None,
) -> Clustering:
    """Cluster and map the heads by `metric` under keep, and by `against`, which is the metric under drop.

    `covariates` are (head,) by name, NaN where a head has none. Average linkage takes the mean distance over
    the pooled rows; Ward and the scaling take its root where `takes_root` says so (cosine, JSD, Aitchison).
    Splits of the texts are those of `text_halves`.

    Raises InputError where `found` lacks a side, a covariate does not fit, or fewer than three heads have all
    their distances; Unavailable without the extra.
    """
    first, second = (metric, "keep"), against or (metric, "drop")
    means = [mean_distances(found, *key) for key in (first, second)]
    n_heads = len(means[0])
    named = {name: _covariate(name, value, n_heads) for name, value in covariates.items()}
    heads = defined_heads(*means)
    if len(heads) < 3:
        reject(
            metric,
            expected="at least 3 heads with a distance to each other",
            found=f"{len(heads)} of {n_heads}",
            todo="Audit more layers, or choose how zeros are treated.",
        )
    clusters = tuple(range(2, min(_MOST, len(heads) - 1) + 1))
    halves = text_halves(len(found.sums[first]), splits, seed)
    sides = [_side(found, key, heads, named, clusters, halves) for key in (first, second)]
    agreement = {name: _indices(sides[0].labels[name], sides[1].labels[name]) for name in LINKAGES}
    excluded = tuple(int(head) for head in np.setdiff1d(np.arange(n_heads), heads))
    return Clustering(sides[0], sides[1], heads, excluded, clusters, agreement)


def with_clark2019(
    found: DistanceSums, distances: Array, rows: Array, convention: str = "keep"
) -> DistanceSums:
    """`found` with the preset under ("clark2019", `convention`), for `cluster_heads(metric="clark2019")`.

    `distances` (text, head, head) are `oracle.clark2019_distances` of each text by itself, NaN where a pair
    has none; `rows` (text, head, head) says over how many rows each was added up. The mean over rows that
    comes of it is the paper's sum over rows and documents up to one factor, as long as all pairs have as many
    rows, and then changes neither clusters nor the map.
    """
    key = ("clark2019", convention)
    known = ~np.isnan(distances)
    counts = np.where(known, np.asarray(rows, dtype=np.int64), 0)
    sums = np.where(known, distances, 0.0)
    return DistanceSums({**found.sums, key: sums}, {**found.counts, key: counts})


def _side(
    found: DistanceSums,
    key: Key,
    heads: Array,
    covariates: Mapping[str, Array],
    clusters: Sequence[int],
    halves: Sequence[tuple[Array, Array]],
) -> Side:
    among = np.ix_(heads, heads)
    whole = mean_distances(found, *key)[among]
    scaling = _scaling(whole, key)
    split_half = {name: np.full((len(halves), len(clusters)), np.nan) for name in LINKAGES}
    spread = {name: np.full(2 * len(halves), np.nan) for name in covariates}
    for split, texts in enumerate(halves):
        pair = [mean_distances(found, *key, texts=half)[among] for half in texts]
        if any(np.isnan(half).any() for half in pair):
            continue
        for name, indices in split_half.items():
            indices[split] = _indices(*(_cut(half, key, name, clusters) for half in pair))
        for which, half in enumerate(pair):
            points = _scaling(half, key).points
            for name, values in covariates.items():
                spread[name][2 * split + which] = axis_fit(points, values[heads]).r_squared
    labels = {name: _cut(whole, key, name, clusters) for name in LINKAGES}
    fits = {name: axis_fit(scaling.points, values[heads]) for name, values in covariates.items()}
    pooled = found.counts[key].sum(axis=0)[among][~np.eye(len(heads), dtype=bool)]
    rows = (int(pooled.min()), int(pooled.max()))
    return Side(key, labels, split_half, scaling, fits, spread, rows)


def _cut(distances: Array, key: Key, linkage: str, clusters: Sequence[int]) -> Array:
    rooted = takes_root(key[0], linkage)
    return cluster_labels(np.sqrt(distances) if rooted else distances, linkage, clusters)


def _scaling(distances: Array, key: Key) -> Scaling:
    return classical_scaling(np.sqrt(distances) if takes_root(key[0], "scaling") else distances)


def _indices(first: Array, second: Array) -> Array:
    """Adjusted Rand indices (k,) of labels (k, head)."""
    _, _, adjusted_rand_score = _libraries()
    return np.array([adjusted_rand_score(a, b) for a, b in zip(first, second, strict=True)])


def _covariate(name: str, value: Any, n_heads: int) -> Array:
    array = at_least_float64(name, value)
    if array.shape != (n_heads,):
        reject(
            name,
            expected=f"one value for each of {n_heads} heads",
            found=f"shape {array.shape}",
            todo="Flatten (layer, head).",
        )
    return array


def _libraries() -> tuple[Any, Any, Any]:
    try:
        from scipy.cluster import hierarchy
        from scipy.spatial.distance import squareform
        from sklearn.metrics import adjusted_rand_score
    except ImportError as error:
        raise Unavailable(
            f"Clustering needs scipy and scikit-learn ({error}). "
            'Install them: pip install "sinkscope[clustering]"'
        ) from error
    return hierarchy, squareform, adjusted_rand_score
