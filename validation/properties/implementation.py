"""An implementation of the measures, as the set of callables that laws are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import oracle
from oracle.attention import transformed_gram, transformed_vectors
from oracle.silencing import states_without_heads
from validation.definitions import widest
from validation.properties.finding import rounding

__all__ = ["Implementation"]

Function = Callable[..., Any]


@dataclass(frozen=True)
class Implementation:
    """Callables with the oracle's signatures; the oracle's own by default.

    `epsilon` is the rounding unit of its arithmetic, None for that of the results' dtype.
    """

    forward: Function = oracle.forward
    states_without_heads: Function = states_without_heads
    sink_share: Function = oracle.sink_share
    weight_share: Function = oracle.weight_share
    weighted_rows: Function = oracle.weighted_rows
    norm_odds_ratio: Function = oracle.norm_odds_ratio
    value_norm_ratio: Function = oracle.value_norm_ratio
    head_summed_norm: Function = oracle.head_summed_norm
    transformed_vectors: Function = transformed_vectors
    transformed_gram: Function = transformed_gram
    merge_words: Function = oracle.merge_words
    open_rows: Function = oracle.open_rows
    closure: Function = oracle.closure
    clr: Function = oracle.clr
    replace_zeros: Function = oracle.replace_zeros
    aitchison_split: Function = oracle.aitchison_split
    aitchison_split_from_scores: Function = oracle.aitchison_split_from_scores
    entropy_split: Function = oracle.entropy_split
    entropy_split_from_scores: Function = oracle.entropy_split_from_scores
    entropy_change: Function = oracle.entropy_change
    entropy_change_from_scores: Function = oracle.entropy_change_from_scores
    row_distances: Function = oracle.row_distances
    distance_sums: Function = oracle.distance_sums
    mean_distances: Function = oracle.mean_distances
    head_distances: Function = oracle.head_distances
    clark2019_distances: Function = oracle.clark2019_distances
    verdict_flips: Function = oracle.verdict_flips
    gaussian_flip_rate: Function = oracle.gaussian_flip_rate
    epsilon: float | None = None

    def rounding(self, count: int, *arrays: Any) -> float:
        """`finding.rounding` with the epsilon of this implementation on `arrays`."""
        epsilon = np.finfo(widest(*arrays)).eps if self.epsilon is None else self.epsilon
        return rounding(count, epsilon)
