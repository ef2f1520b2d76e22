"""The named tuples that both layers take and return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["EntropySplit", "KeyRange", "RowMeasures"]

Array = NDArray[Any]


class KeyRange(NamedTuple):
    """Visible keys of each query as a range: start <= key < stop, both (query,) integers.

    Takes the place of a `visible` mask wherever one is taken; an empty range is a query that sees nothing.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def causal(cls, n_queries: int, window: int | None = None) -> KeyRange:
        """Each query sees itself and what comes before it, at most `window` keys of it."""
        stop = np.arange(1, n_queries + 1, dtype=np.int64)
        start = np.zeros_like(stop) if window is None else np.maximum(stop - window, 0)
        return cls(start, stop)


class EntropySplit(NamedTuple):
    """Entropy of a row and its exact parts, each (..., query), in nats: total = binary + (1 - s) content."""

    total: Array
    binary: Array
    content: Array  # NaN where the content mass is zero


class RowMeasures(NamedTuple):
    """Everything that one pass over the rows gives, each array (..., query).

    `shares` maps "attention" and the name of every norm to sink shares; `ratios` maps the name of every norm
    to r of the odds law; `entropy` is None unless it was asked for.
    """

    shares: Mapping[str, Array]
    ratios: Mapping[str, Array]
    entropy: EntropySplit | None = None
