"""The oracle's measures in bulk, compiled with Numba; same names, same answers."""

from fastpath.measures import entropy_split, norm_odds_ratio, row_measures, sink_share, weight_share

__all__ = ["entropy_split", "norm_odds_ratio", "row_measures", "sink_share", "weight_share"]
