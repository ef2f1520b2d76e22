"""An implementation of the measures, as the set of callables that laws are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import oracle
from oracle.attention import transformed_gram, transformed_vectors
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
    epsilon: float | None = None

    def rounding(self, count: int, *arrays: Any) -> float:
        """`finding.rounding` with the epsilon of this implementation on `arrays`."""
        epsilon = np.finfo(widest(*arrays)).eps if self.epsilon is None else self.epsilon
        return rounding(count, epsilon)
