"""The named tuples that both layers take and return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AitchisonSplit",
    "DistanceSums",
    "EntropyChange",
    "EntropySplit",
    "KeyRange",
    "RowMeasures",
    "VerdictFlips",
]

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


class AitchisonSplit(NamedTuple):
    """Squared Aitchison distance of two rows and its orthogonal parts, each (..., query), no unit.

    total = sink + content, each in [0, infinity); NaN where a row lacks what the part is made of.
    """

    total: Array
    sink: Array  # 0 where the rows have no sink part
    content: Array


class EntropyChange(NamedTuple):
    """Entropy difference of two rows and its exact channels, each (..., query), in nats.

    total = sink + content; NaN where a row is undefined, the content channel's also where a content is.
    """

    total: Array
    sink: Array
    content: Array


class DistanceSums(NamedTuple):
    """Distances of all pairs of heads added up over the rows of each text, not yet divided.

    The keys are (metric, convention). `sums` are (text, head, head) float64, the sum of the row distances of
    a pair over the rows that are defined in both heads; `counts` (text, head, head) int64 say how many these
    are. Heads are flattened in (layer, head) order.
    """

    sums: Mapping[tuple[str, str], Array]
    counts: Mapping[tuple[str, str], NDArray[np.int64]]


class VerdictFlips(NamedTuple):
    """Verdicts "b is nearer to a than c is" that two distance matrices give differently."""

    rate: float  # flipped / triples, NaN where there is no triple
    per_anchor: Array  # (head,), NaN for an anchor without a triple
    flipped: int
    triples: int  # all that were judged, ties included
    tied: int  # triples that are a tie in either matrix, and so not flipped
    undefined: int  # triples left out because a distance is NaN
