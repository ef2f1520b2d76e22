"""DistanceSums of many texts in one array for each distance, that nothing is ever copied out of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import DistanceSums

__all__ = ["BlockSums"]

Array = NDArray[Any]
Key = tuple[str, str]  # metric and convention


class BlockSums:
    """DistanceSums of one text after the other, added into at most `most` blocks in turn.

    Distances of one kind under one convention are defined for the same rows, and share one table of counts
    for as long as that is so: most of them, always.
    """

    def __init__(self, most: int) -> None:
        self._most, self._texts = most, 0
        self._sums: dict[Key, Array] = {}  # (most, head, head); what is not touched takes no memory
        self._counts: dict[Key, Array] = {}

    def add(self, found: DistanceSums) -> None:
        """Take the sums of one text in, (1, head, head)."""
        block = self._texts % self._most
        if not self._texts:
            self._sums = {key: np.zeros((self._most, *sums.shape[1:])) for key, sums in found.sums.items()}
            self._counts = _shared(found, self._most)
        for key, sums in found.sums.items():
            self._sums[key][block] += sums[0]
        self._separate(found)
        for key in _owners(self._counts):
            self._counts[key][block] += found.counts[key][0]
        self._texts += 1

    def total(self) -> DistanceSums:
        """All of them, (block, head, head): views, not to be had before the last text."""
        used = min(self._texts, self._most)
        return DistanceSums(
            {key: sums[:used] for key, sums in self._sums.items()},
            {key: counts[:used] for key, counts in self._counts.items()},
        )

    def _separate(self, found: DistanceSums) -> None:
        """Give every distance a table of its own whose counts are not those of the table that it shares."""
        owners = {id(self._counts[key]): key for key in reversed(self._counts)}
        for key, counts in self._counts.items():
            owner = owners[id(counts)]
            if not np.array_equal(found.counts[key], found.counts[owner]):
                self._counts[key] = counts.copy()


def _shared(found: DistanceSums, most: int) -> dict[Key, Array]:
    """Empty tables of counts, one for all distances whose counts in the first text are the same."""
    tables: dict[Key, Array] = {}
    for key, counts in found.counts.items():
        same = next((k for k in tables if np.array_equal(found.counts[k], counts)), None)
        tables[key] = np.zeros((most, *counts.shape[1:]), np.int64) if same is None else tables[same]
    return tables


def _owners(tables: dict[Key, Array]) -> list[Key]:
    """The first distance of every table."""
    return list({id(table): key for key, table in reversed(tables.items())}.values())
