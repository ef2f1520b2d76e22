"""The distances between all heads, added up text by text: what the whole audit is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import DistanceSums, InputError
from oracle.distances import CONVENTIONS, METRICS
from validation.arrays_file import precision_of
from validation.audit.checking import PairVerification
from validation.audit.clustering import with_clark2019
from validation.audit.places import one_mask, whole_place
from validation.audit.sums import BlockSums
from validation.audit.zeros import REFUSE, ZerosChoice
from validation.table import MIN_CONTENT_KEYS, content_queries

__all__ = ["BLOCKS", "DistanceGatherer", "Distances"]

Array = NDArray[Any]
Key = tuple[str, str]  # metric and convention

BLOCKS = 32  # so many texts are kept apart; further ones join them in turn, which bounds the memory


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between heads, pooled over the rows of many texts; `head` axes are flattened (layer, head).

    `found` keeps its first axis for blocks: one text each, unless there are more texts than BLOCKS.
    """

    found: DistanceSums  # (block, head, head)
    heads: tuple[tuple[int, int], ...]  # (layer, head) of each
    texts: tuple[int, ...]  # those that had rows, in their order
    rows: int  # of one head, over all texts
    precision: float  # the epsilon of the rows as they came
    sink_share: Array  # (head,), the mean over the rows with any mass; NaN without one
    content_entropy: Array  # (head,), in nats; NaN for a head without content
    again: Mapping[float, DistanceSums]  # Aitchison's by the delta that took the place of zeros
    impossible: Mapping[float, str]  # deltas that leave some row nothing, and where

    @property
    def layers(self) -> NDArray[np.int64]:
        """The layer of each head, (head,)."""
        return np.array([layer for layer, _ in self.heads], dtype=np.int64)

    @property
    def blocks(self) -> int:
        """How many blocks of texts can be told apart."""
        return min(len(self.texts), BLOCKS)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were computed, in their usual order."""
        return tuple(metric for metric in METRICS if (metric, "keep") in self.found.sums)

    @property
    def keys(self) -> tuple[Key, ...]:
        """Those metrics with every convention that they have."""
        return tuple(key for key in self.found.sums if key[0] in self.metrics)

    def mean(self, metric: str, convention: str, blocks: Any = None) -> Array:
        """Mean distance over the pooled rows, (head, head); `blocks` picks some of them."""
        return oracle.mean_distances(self.found, metric, convention, blocks)

    def left_out(self, metric: str, convention: str) -> int:
        """Pairs of rows (head against head at one query) without a distance, as a row of them has none."""
        counts = self.found.counts[metric, convention].sum(axis=0)
        first, second = np.triu_indices(len(counts), 1)
        return int((self.rows - counts[first, second]).sum())


class DistanceGatherer:
    """Takes the rows of one text after the other and keeps their distances, never the rows.

    `engine` is the layer that computes, `layers` those of the model that count, `metrics` what is computed.
    `deltas` are further replacements of zeros under which Aitchison's distances are wanted, `preset` says
    whether those of Clark et al. 2019 are. `precision` is the epsilon of the rows as they came, where these
    have been widened since.
    """

    def __init__(
        self,
        engine: ModuleType,
        layers: Sequence[int],
        *,
        metrics: Sequence[str] = METRICS,
        zeros: ZerosChoice = REFUSE,
        deltas: Sequence[float] = (),
        preset: bool = False,
        min_content_keys: int = MIN_CONTENT_KEYS,
        verification: PairVerification | None = None,
        precision: float | None = None,
    ) -> None:
        self._engine, self._layers, self._metrics = engine, list(layers), tuple(metrics)
        self._zeros, self._min_content_keys, self._verification = zeros, min_content_keys, verification
        self._preset = preset
        self._sums = BlockSums(BLOCKS)
        self._again = {delta: BlockSums(1) for delta in deltas}
        self._impossible: dict[float, str] = {}
        self._heads: tuple[tuple[int, int], ...] = ()
        self._texts: list[int] = []
        self._rows = 0
        self._precision = precision or 0.0
        self._precision_known = precision is not None
        self._shares: list[tuple[Array, Array]] = []  # (layer, head) sums of a text, how many rows have one
        self._entropies: list[tuple[Array, Array]] = []

    def add(
        self,
        text: int,
        attention: Array,
        sink_mask: NDArray[np.bool_],
        visible: NDArray[np.bool_],
        scores: Array | None = None,
    ) -> None:
        """Take in one text: `attention` and `scores` (layer, head, query, key), all layers of the model.

        With scores Aitchison's distances come from them. A text without a row that counts is left out.
        `visible` may be of every layer, as long as those that count see the same. InputError names the row of
        the text that it is about.
        """
        visible = one_mask(visible, self._layers)
        queries, _ = content_queries(sink_mask, visible, "content", self._min_content_keys)
        if not len(queries):
            return
        rows = attention[self._layers][:, :, queries]  # (layer, head, query, key)
        seen = visible[queries]
        given: dict[str, Any] = {"visible": seen, "conventions": CONVENTIONS}
        if scores is not None:
            given["scores"] = scores[self._layers][:, :, queries]
        asked = {**given, **self._zeros._asdict(), "metrics": self._metrics}
        try:
            found = self._engine.distance_sums(rows, sink_mask, **asked)
        except InputError as error:
            raise InputError(whole_place(str(error), text, self._layers, queries)) from None
        if self._verification is not None:
            self._verification.add(text, self._layers, rows, sink_mask, found, asked)
        if self._preset:
            found = self._with_preset(found, rows, seen, sink_mask)
        self._sums.add(found)
        for delta in [delta for delta in self._again if delta not in self._impossible]:
            replaced = ZerosChoice("replace", delta)._asdict()
            try:
                others = self._engine.distance_sums(rows, sink_mask, ("aitchison",), **given, **replaced)
            except InputError as error:  # the rows themselves are as they should be: it is the delta
                self._impossible[delta] = whole_place(str(error), text, self._layers, queries)
            else:
                self._again[delta].add(others)
        self._heads = tuple((layer, head) for layer in self._layers for head in range(attention.shape[1]))
        self._texts.append(text)
        self._rows += len(queries)
        if not self._precision_known:
            self._precision = max(self._precision, precision_of(rows))
        self._describe(rows, sink_mask, seen)

    def result(self) -> Distances | None:
        """What was gathered; None where no text had a row that counts."""
        if not self._texts:
            return None
        return Distances(
            found=self._sums.total(),
            heads=self._heads,
            texts=tuple(self._texts),
            rows=self._rows,
            precision=self._precision,
            sink_share=_mean(self._shares),
            content_entropy=_mean(self._entropies),
            again={d: sums.total() for d, sums in self._again.items() if d not in self._impossible},
            impossible=self._impossible,
        )

    def _with_preset(
        self, found: DistanceSums, rows: Array, seen: NDArray[np.bool_], sink_mask: NDArray[np.bool_]
    ) -> DistanceSums:
        """`found` with Clark et al.'s distances of the rows, and of closed content by the same recipe."""
        preset = getattr(self._engine, "clark2019_distances", oracle.clark2019_distances)
        content = seen & ~sink_mask
        weights = np.where(content, rows, 0).astype(np.float64)
        mass = weights.sum(axis=-1, keepdims=True)
        closed = np.divide(weights, mass, out=np.zeros_like(weights), where=mass > 0)
        for convention, parts, among in (("keep", rows, seen), ("drop", closed, content)):
            counts = found.counts["jsd", convention]
            found = with_clark2019(found, preset(parts, among)[None], counts, convention)
        return found

    def _describe(self, rows: Array, sink_mask: NDArray[np.bool_], seen: NDArray[np.bool_]) -> None:
        """Sums of the sink share and the content entropy of each head, over the rows that have one."""
        found = [self._engine.row_measures(layer, sink_mask, None, seen, True) for layer in rows]
        self._shares.append(_sum_of_known(np.array([one.shares["attention"] for one in found])))
        self._entropies.append(_sum_of_known(np.array([one.entropy.content for one in found])))


def _sum_of_known(values: Array) -> tuple[Array, Array]:
    """The sum over the rows that have a value, and their number: (layer, head) of (layer, head, query)."""
    return np.nansum(values, axis=-1), np.isfinite(values).sum(axis=-1)


def _mean(sums: Sequence[tuple[Array, Array]]) -> Array:
    """The mean of all texts, (head,); NaN where no row has a value."""
    total, counted = (np.sum(parts, axis=0).ravel() for parts in zip(*sums, strict=True))
    return np.divide(total, counted, out=np.full(total.shape, np.nan), where=counted > 0)
