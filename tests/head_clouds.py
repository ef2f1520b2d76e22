"""Distance sums made from points, so that the clusters and the map are known."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from oracle import DistanceSums

LABELS = tuple(f"{layer}.{head}" for layer in range(3) for head in range(6))
GROUPS = np.arange(18) % 3


def clouds(seed=0, spread=0.1, groups=GROUPS, apart=5.0):
    """Points (head, 2) around one corner of a triangle for each group."""
    corners = apart * np.array([[0, 0], [1, 0], [0, 1.2]])
    return corners[groups] + np.random.default_rng(seed).normal(0, spread, (len(groups), 2))


def sums_of(keep, drop, metric="hellinger", texts=6, noise=0.0, seed=1, rows=4):
    """Sums over `rows` rows of each of `texts` texts, whose means are the distances of points plus noise."""
    rng = np.random.default_rng(seed)
    sums = {}
    for convention, points in (("keep", keep), ("drop", drop)):
        each = []
        for _ in range(texts):
            moved = points + rng.normal(0, noise, points.shape) if noise else points
            distances = cdist(moved, moved)
            each.append(rows * (distances**2 if metric in ("jsd", "aitchison", "cosine") else distances))
        sums[metric, convention] = np.stack(each)
    counts = {key: np.full(value.shape, rows) for key, value in sums.items()}
    return DistanceSums(sums, counts)
