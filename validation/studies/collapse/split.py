"""A change of entropy between checkpoints as two channels: row by row, then averaged.

Everything comes from four figures per row, so that no row is needed again once its checkpoint is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._results import EntropyChange

__all__ = ["RowEntropies", "Split", "Trend", "least_share", "split_ends", "split_path", "split_rows", "trend"]

Array = NDArray[Any]


class RowEntropies(NamedTuple):
    """What is kept of the rows of one checkpoint, each (row,) float64; entropies in nats.

    total = binary + (1 - share) content; content is NaN where a row has no content mass.
    """

    share: Array  # s, in [0, 1]
    total: Array  # H over the n+1 parts
    binary: Array  # h(s)
    content: Array  # H of the closed content

    def only(self, chosen: Array) -> RowEntropies:
        """The rows that `chosen`, a mask or indices, picks."""
        return RowEntropies(*(part[chosen] for part in self))


class Split(NamedTuple):
    """A mean change of entropy and its channels, in nats: total = sink + content; NaN without rows.

    `sink` stands midway between `sink_first`, which weighs the change of the share by the content entropy
    before it, and `content_first`, which weighs it by the one after: the two orders of attribution.
    """

    total: float
    sink: float
    content: float
    sink_first: float
    content_first: float

    @property
    def part(self) -> float:
        """The sink channel over the whole change; NaN where nothing changed."""
        return self._of_total(self.sink)

    @property
    def range(self) -> tuple[float, float]:
        """That part under the two orders, the lower one first."""
        low, high = sorted((self._of_total(self.sink_first), self._of_total(self.content_first)))
        return low, high

    def _of_total(self, channel: float) -> float:
        return channel / self.total if self.total else float("nan")


class Trend(NamedTuple):
    """What the shares did between two checkpoints, over all rows; NaN without rows.

    `change` is the mean of ds and `rose` the part of the rows with ds > 0. `sink_where_rose` is the sink
    channel of those rows alone and `sink_elsewhere` that of the others, both over the number of all rows, so
    that they sum to the sink channel.
    """

    change: float
    rose: float
    sink_where_rose: float
    sink_elsewhere: float


def split_rows(before: RowEntropies, after: RowEntropies) -> EntropyChange:
    """The change of every row and its channels, each (row,), in nats: `oracle.entropy_change` without rows.

    dH = [dh - ds · mean(Hc)] + [(1 - mean(s)) · dHc], the sink channel and the content channel. NaN where
    either checkpoint leaves the row no content mass.
    """
    moved, turned = after.share - before.share, after.content - before.content
    sink = after.binary - before.binary - moved * (before.content + after.content) / 2
    content = (1 - (before.share + after.share) / 2) * turned
    return EntropyChange(after.total - before.total, sink, content)


def split_ends(before: RowEntropies, after: RowEntropies) -> Split:
    """From one checkpoint straight to another, averaged over the rows."""
    if not len(before.share):
        return Split(*[float("nan")] * 5)
    change = split_rows(before, after)
    # One order moves dHc · ds / 2 from one channel to the other, the other order moves it back.
    shift = float(((after.share - before.share) * (after.content - before.content)).mean()) / 2
    total, sink, content = (float(part.mean()) for part in change)
    return Split(total, sink, content, sink + shift, sink - shift)


def split_path(checkpoints: Sequence[RowEntropies]) -> Split:
    """Every step from one checkpoint to the next split by itself, and the channels summed."""
    steps = [split_ends(*pair) for pair in pairwise(checkpoints)]
    return Split(*(float(sum(parts)) for parts in zip(*steps, strict=True))) if steps else Split(*[0.0] * 5)


def trend(before: RowEntropies, after: RowEntropies) -> Trend:
    """How the shares moved from one checkpoint to another, and what the rows with a growing sink gave."""
    if not len(before.share):
        return Trend(*[float("nan")] * 4)
    moved, sink = after.share - before.share, split_rows(before, after).sink
    rose = moved > 0
    given = float(np.where(rose, sink, 0).mean()), float(np.where(rose, 0, sink).mean())
    return Trend(float(moved.mean()), float(rose.mean()), *given)


def least_share(content: Array) -> Array:
    """The share above which a growing sink lowers the entropy, other things equal: (row,), in (0, 1/2].

    H = h(s) + (1 - s) Hc falls as s grows where ln((1 - s) / s) < Hc, so from s* = 1 / (1 + exp(Hc)) on;
    below it a growing sink raises the entropy. NaN where the content entropy is.
    """
    return np.asarray(1 / (1 + np.exp(content)))
