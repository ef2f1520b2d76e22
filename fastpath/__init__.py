"""The oracle's measures in bulk, compiled with Numba; same names, same answers."""

from fastpath.measures import entropy_split, norm_odds_ratio, row_measures, sink_share, weight_share
from fastpath.streaming import sink_share_from_query_key

__all__ = [
    "entropy_split",
    "norm_odds_ratio",
    "row_measures",
    "sink_share",
    "sink_share_from_query_key",
    "weight_share",
]
