"""When a convention is safe: one plain rule, fixed before any model was audited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import VerdictFlips

__all__ = [
    "CANNOT_SAY",
    "DEPENDS",
    "FLOOR_TOO_HIGH",
    "MIN_TRIPLES",
    "RULE",
    "SAFE",
    "SINK_ALONE",
    "VANISHING",
    "Floor",
    "judge",
]

SAFE, DEPENDS, SINK_ALONE, CANNOT_SAY = "safe", "depends", "sink alone", "cannot say"

MIN_TRIPLES = 100
FLOOR_TOO_HIGH = 0.25
VANISHING = 1e-6  # of the distances under keep: far below any real difference, above what rounding leaves

RULE = (
    "depends: more verdicts flip between keep and drop than in the worst split under either convention",
    "safe: no more than that, and the floor's median is at most 25% (half the verdicts flip in pure noise)",
    "sink alone: under drop all distances vanish (median below 1e-6 of that under keep), so that heads "
    "differ in their sink and in nothing else",
    "cannot say: one text only, fewer than 100 triples, or a floor above 25%",
)


class Floor(NamedTuple):
    """Flip rates between two halves of the texts under one convention, over the splits."""

    rates: NDArray[np.float64]  # (split,), NaN where a half has no triple; empty of one text

    @property
    def known(self) -> NDArray[np.float64]:
        """The defined rates."""
        return self.rates[~np.isnan(self.rates)]

    @property
    def median(self) -> float:
        """The floor itself; NaN without a split."""
        return float(np.median(self.known)) if len(self.known) else float("nan")

    @property
    def low(self) -> float:
        """The least of the splits; NaN without one."""
        return float(self.known.min()) if len(self.known) else float("nan")

    @property
    def high(self) -> float:
        """The worst of the splits; NaN without one."""
        return float(self.known.max()) if len(self.known) else float("nan")


def judge(flips: VerdictFlips, floors: Sequence[Floor], vanishing: bool = False) -> str:
    """SAFE, DEPENDS, SINK_ALONE or CANNOT_SAY, as RULE says.

    `floors` are those of both conventions over the same triples; `vanishing` says that all distances under
    drop vanish beside those under keep.
    """
    if flips.triples < MIN_TRIPLES or any(not len(floor.known) for floor in floors):
        return CANNOT_SAY
    if vanishing:
        return SINK_ALONE
    if flips.rate > max(floor.high for floor in floors):
        return DEPENDS
    return CANNOT_SAY if max(floor.median for floor in floors) > FLOOR_TOO_HIGH else SAFE
