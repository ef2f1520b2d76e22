"""The oracle's measures in bulk, compiled with Numba; same names, same answers."""

import fastpath._settings  # noqa: F401  (before anything that imports Numba)
from fastpath.distances import clark2019_distances, distance_sums, head_distances
from fastpath.measures import (
    entropy_change,
    entropy_split,
    norm_odds_ratio,
    row_measures,
    sink_share,
    weight_share,
)
from fastpath.streaming import sink_share_from_query_key
from fastpath.verdicts import verdict_flips

__all__ = [
    "clark2019_distances",
    "distance_sums",
    "entropy_change",
    "entropy_split",
    "head_distances",
    "norm_odds_ratio",
    "row_measures",
    "sink_share",
    "sink_share_from_query_key",
    "verdict_flips",
    "weight_share",
]
