"""From the checkpoint of highest entropy to the last one: what fell, through which channel, in which rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from validation.studies.collapse.measured import SINK, TAKEN, Measured
from validation.studies.collapse.split import (
    RowEntropies,
    Split,
    Trend,
    least_share,
    split_ends,
    split_path,
    trend,
)

__all__ = ["Drop", "Level", "find_drops", "find_levels", "find_peak", "whole_rows"]

ALL_LAYERS: None = None
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Level:
    """Means over the rows of one checkpoint and one scope; entropies in nats, shares in [0, 1].

    `least` is the mean of s*, the share from which a growing sink lowers H, and `above` the part of the rows
    whose share is above it. `outside` is (1 - s) Hc, what the content adds to H: total = binary + outside.
    """

    share: float
    total: float
    binary: float
    content: float
    outside: float
    least: float
    above: float


@dataclass(frozen=True)
class Drop:
    """The change of mean entropy from the peak to the last checkpoint in one layer, or (None) in all of them.

    `taken` is what was taken as the sink; `ends` splits the change at once and `path` step by step. `start`
    and `end` are the levels at both. `rows` are those behind it, `undefined` those left out because some
    checkpoint leaves them no content mass.
    """

    taken: str
    layer: int | None
    peak: int  # which checkpoint it starts from
    rows: int
    undefined: int
    start: Level
    end: Level
    ends: Split
    path: Split
    trend: Trend

    @property
    def fell(self) -> bool:
        """Whether there is a drop to be split at all."""
        return self.ends.total < 0


def whole_rows(series: Sequence[Measured], taken: str = SINK) -> Rows:
    """The rows whose figures are defined at every checkpoint, (row,): all means are over these."""
    return np.logical_and.reduce([~np.isnan(measured.rows[taken].content) for measured in series])


def find_peak(series: Sequence[Measured]) -> int:
    """Which checkpoint has the highest mean entropy over all layers, with the sink set as the sink.

    The first of those that tie; 0 where no row is defined throughout.
    """
    whole = whole_rows(series)
    if not whole.any():
        return 0
    return int(np.argmax([measured.rows[SINK].total[whole].mean() for measured in series]))


def find_levels(series: Sequence[Measured], layer: int | None = ALL_LAYERS) -> list[Level]:
    """The Level of every checkpoint, over the same rows for all of them."""
    chosen = whole_rows(series) & _scope(series, layer)
    return [_level(measured.rows[SINK].only(chosen)) for measured in series]


def find_drops(series: Sequence[Measured], layers: Sequence[int]) -> Mapping[tuple[str, int | None], Drop]:
    """The Drop of every choice in TAKEN for all layers together (None) and, of several, for each.

    All start at the peak of all layers, so that layers can be compared and their rows add up.
    """
    peak = find_peak(series)
    scopes: list[int | None] = [ALL_LAYERS, *(layers if len(layers) > 1 else ())]
    return {(taken, scope): _drop(series, peak, taken, scope) for taken in TAKEN for scope in scopes}


def _drop(series: Sequence[Measured], peak: int, taken: str, layer: int | None) -> Drop:
    inside = _scope(series, layer)
    chosen = inside & whole_rows(series, taken)
    figures = [measured.rows[taken].only(chosen) for measured in series[peak:]]
    first, last = figures[0], figures[-1]
    return Drop(
        taken,
        layer,
        peak,
        rows=int(chosen.sum()),
        undefined=int(inside.sum() - chosen.sum()),
        start=_level(first),
        end=_level(last),
        ends=split_ends(first, last),
        path=split_path(figures),
        trend=trend(first, last),
    )


def _scope(series: Sequence[Measured], layer: int | None) -> Rows:
    layers = series[0].layer
    return np.ones(len(layers), bool) if layer is None else layers == layer


def _level(figures: RowEntropies) -> Level:
    if not len(figures.share):
        return Level(*[float("nan")] * 7)
    least = least_share(figures.content)
    parts = (*figures, (1 - figures.share) * figures.content, least, figures.share > least)
    return Level(*(float(np.mean(part)) for part in parts))
