"""When a convention is safe: one plain rule, made stricter once, after a first run, as RULE says."""

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
    "MIN_SPLITS",
    "MIN_TRIPLES",
    "RULE",
    "SAFE",
    "SINK_ALONE",
    "Floor",
    "highest",
    "judge",
    "vanishing_share",
]

SAFE, DEPENDS, SINK_ALONE, CANNOT_SAY = "safe", "depends", "sink alone", "cannot say"

MIN_TRIPLES = 100
MIN_SPLITS = 10  # as many as five texts have
FLOOR_TOO_HIGH = 0.1  # of the worst split: more than one conclusion in ten could change unnoticed
_ROUNDINGS = 16  # of the rows as they came: closed content differs by a few, d² by their squares over a row
_COMPUTED = 1e-5  # below any real difference, above what our own rounding leaves of a root

RULE = (
    "depends: more verdicts flip between keep and drop than in the worst split under either convention",
    "safe: no more than that, and the worst split is at most 10%, so that at most one conclusion in ten "
    "could change unnoticed",
    "sink alone: under drop all distances vanish beside those under keep (by their medians: below 1e-5, or "
    "below 16 roundings of the rows' own precision where those are more; squared for cosine, JSD and "
    "Aitchison, whose means are of squares), so that heads differ in their sink and in nothing else",
    "cannot say: fewer than 100 triples, fewer than 10 different splits (so fewer than 5 texts), or no more "
    "flips than in the worst split where that is above 10%",
    "The rule was made stricter after a first run: before, safe took a median floor of up to 25%, and any "
    "number of splits was enough.",
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


def vanishing_share(precision: float, squared: bool) -> float:
    """The share of the distances under keep up to which those under drop are as good as zero.

    `precision` is the epsilon of the rows as they came, `squared` says that the distance is one of squares.
    """
    share = max(_COMPUTED, _ROUNDINGS * precision)
    return share**2 if squared else share


def highest(floors: Sequence[Floor]) -> float:
    """The upper end of several floors; NaN where one of them has none."""
    highs = [floor.high for floor in floors]
    return max(highs) if not any(np.isnan(highs)) else float("nan")


def judge(flips: VerdictFlips, floors: Sequence[Floor], vanishing: bool = False) -> str:
    """SAFE, DEPENDS, SINK_ALONE or CANNOT_SAY, as RULE says.

    `floors` are those of both conventions over the same triples; `vanishing` says that all distances under
    drop vanish beside those under keep.
    """
    if flips.triples < MIN_TRIPLES or any(len(floor.known) < MIN_SPLITS for floor in floors):
        return CANNOT_SAY
    if vanishing:
        return SINK_ALONE
    worst = highest(floors)
    if flips.rate > worst:
        return DEPENDS
    return SAFE if worst <= FLOOR_TOO_HIGH else CANNOT_SAY
