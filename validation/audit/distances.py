"""The distances between all heads, added up text by text: what the whole audit is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import DistanceSums
from oracle.distances import CONVENTIONS, METRICS
from validation.audit.checking import PairVerification
from validation.audit.clustering import with_clark2019
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
    sink_share: Array  # (head,), the mean over the rows
    content_entropy: Array  # (head,), in nats; NaN for a head without content
    again: Mapping[float, DistanceSums]  # Aitchison's by the delta that took the place of zeros

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


class _Sums:
    """DistanceSums of one text after the other, added into at most `most` blocks in turn."""

    def __init__(self, most: int) -> None:
        self._most, self._texts = most, 0
        self._blocks: list[DistanceSums] = []

    def add(self, found: DistanceSums) -> None:
        """Take the sums of one text in, (1, head, head)."""
        if len(self._blocks) < self._most:
            self._blocks.append(found)
        else:
            block = self._blocks[self._texts % self._most]
            for ours, theirs in zip(block, found, strict=True):
                for key in ours:
                    ours[key] += theirs[key]
        self._texts += 1

    def total(self) -> DistanceSums:
        """All of them, (block, head, head)."""
        keys = self._blocks[0].sums
        return DistanceSums(
            {key: np.concatenate([block.sums[key] for block in self._blocks]) for key in keys},
            {key: np.concatenate([block.counts[key] for block in self._blocks]) for key in keys},
        )


class DistanceGatherer:
    """Takes the rows of one text after the other and keeps their distances, never the rows.

    `engine` is the layer that computes, `layers` those of the model that count, `metrics` what is computed.
    `deltas` are further replacements of zeros under which Aitchison's distances are wanted, `preset` says
    whether those of Clark et al. 2019 are.
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
    ) -> None:
        self._engine, self._layers, self._metrics = engine, list(layers), tuple(metrics)
        self._zeros, self._min_content_keys, self._verification = zeros, min_content_keys, verification
        self._preset = preset
        self._sums = _Sums(BLOCKS)
        self._again = {delta: _Sums(1) for delta in deltas}
        self._heads: tuple[tuple[int, int], ...] = ()
        self._texts: list[int] = []
        self._rows = 0
        self._shares: list[Array] = []  # (layer, head) sums over the rows of a text
        self._entropies: list[tuple[Array, Array]] = []  # and how many rows have one

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
        """
        queries, _ = content_queries(sink_mask, visible, "content", self._min_content_keys)
        if not len(queries):
            return
        rows = attention[self._layers][:, :, queries]  # (layer, head, query, key)
        seen = visible[queries]
        given: dict[str, Any] = {"visible": seen, "conventions": CONVENTIONS}
        if scores is not None:
            given["scores"] = scores[self._layers][:, :, queries]
        asked = {**given, **self._zeros._asdict(), "metrics": self._metrics}
        found = self._engine.distance_sums(rows, sink_mask, **asked)
        if self._verification is not None:
            self._verification.add(text, self._layers, rows, sink_mask, found, asked)
        if self._preset:
            preset = getattr(self._engine, "clark2019_distances", oracle.clark2019_distances)
            found = with_clark2019(found, preset(rows, seen)[None], np.array([len(queries)]))
        self._sums.add(found)
        for delta, sums in self._again.items():
            replaced = ZerosChoice("replace", delta)._asdict()
            sums.add(self._engine.distance_sums(rows, sink_mask, ("aitchison",), **given, **replaced))
        self._heads = tuple((layer, head) for layer in self._layers for head in range(attention.shape[1]))
        self._texts.append(text)
        self._rows += len(queries)
        self._describe(rows, sink_mask, seen)

    def result(self) -> Distances | None:
        """What was gathered; None where no text had a row that counts."""
        if not self._texts:
            return None
        entropy, counted = (sum(parts) for parts in zip(*self._entropies, strict=True))
        with np.errstate(invalid="ignore"):
            content = np.asarray(entropy / counted).ravel()
        return Distances(
            found=self._sums.total(),
            heads=self._heads,
            texts=tuple(self._texts),
            rows=self._rows,
            sink_share=np.asarray(sum(self._shares)).ravel() / self._rows,
            content_entropy=content,
            again={delta: sums.total() for delta, sums in self._again.items()},
        )

    def _describe(self, rows: Array, sink_mask: NDArray[np.bool_], seen: NDArray[np.bool_]) -> None:
        """Sums of the sink share and the content entropy of each head, over the rows that have one."""
        found = [self._engine.row_measures(layer, sink_mask, None, seen, True) for layer in rows]
        self._shares.append(np.array([np.nansum(one.shares["attention"], axis=-1) for one in found]))
        content = np.array([one.entropy.content for one in found])  # (layer, head, query)
        self._entropies.append((np.nansum(content, axis=-1), np.isfinite(content).sum(axis=-1)))
