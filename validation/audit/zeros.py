"""Exact zeros in rows from elsewhere: how many, where, and what the user wants done with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import first_place, reject, row_place

__all__ = ["DELTAS", "REFUSE", "FoundZeros", "ZerosChoice", "find_zeros", "parse_zeros"]

Array = NDArray[Any]

DELTAS = (1e-3, 1e-6, 1e-9)  # of the sensitivity table, beside the one that was chosen


class ZerosChoice(NamedTuple):
    """What `oracle.distance_sums` is told about zeros; `delta` belongs to "replace"."""

    zeros: str = "refuse"
    delta: float | None = None

    def __str__(self) -> str:
        return self.zeros if self.delta is None else f"{self.zeros}:{self.delta:g}"


REFUSE = ZerosChoice()


class FoundZeros(NamedTuple):
    """Zero parts of rows that have content: how many, and where the first one is, in words.

    `without_content` counts the rows whose content keys are all zero: they have no content distribution, and
    no choice for zeros gives them one.
    """

    parts: int = 0
    first: str = ""
    without_content: int = 0

    def and_then(self, other: FoundZeros) -> FoundZeros:
        """Both together, `other` behind these."""
        empty = self.without_content + other.without_content
        return FoundZeros(self.parts + other.parts, self.first or other.first, empty)


def parse_zeros(text: str) -> ZerosChoice:
    """The choice as it is written: "refuse", "common-support" or "replace:1e-6"."""
    name, colon, value = text.partition(":")
    if name in ("refuse", "common-support") and not colon:
        return ZerosChoice(name)
    try:
        delta = float(value)
    except ValueError:
        delta = math.nan
    if name != "replace" or not 0 < delta < 1:
        reject(
            "zeros",
            expected="refuse, common-support, or replace: with a number between 0 and 1 behind it",
            found=repr(text),
            todo="Write replace:1e-6, or leave it out.",
        )
    return ZerosChoice("replace", delta)


def find_zeros(
    text: int,
    attention: Array,
    sink_mask: NDArray[np.bool_],
    visible: NDArray[np.bool_],
    queries: Array,
    layers: Sequence[int],
) -> FoundZeros:
    """Parts of the rows of one text that are zero: visible content keys, and the sink set as one part.

    `attention` (layer, head, query, key); `queries` and `layers` are those that count. A row without any
    content mass has no content distribution, so that its zeros are none of a composition's: it is counted
    as a row, if it sees content at all.
    """
    seen = visible[queries]
    content = seen & ~sink_mask  # (query, key)
    with_sink: NDArray[np.bool_] = np.any(seen & sink_mask, axis=-1, keepdims=True)  # (query, 1)
    found = FoundZeros()
    for layer in layers:
        rows = attention[layer][:, queries]  # (head, query, key)
        weights = np.where(content, rows, 0)  # (head, query, key)
        composed: NDArray[np.bool_] = np.any(weights > 0, axis=-1, keepdims=True)
        parts = np.asarray(rows == 0) & content & composed
        sink = np.asarray(np.where(seen & sink_mask, rows, 0).sum(axis=-1, keepdims=True) == 0) & composed
        lacking: NDArray[np.bool_] = np.concatenate([parts, sink & with_sink], axis=-1)
        count = int(lacking.sum())
        sees_content: NDArray[np.bool_] = np.any(content, axis=-1, keepdims=True)  # (query, 1)
        found = found.and_then(FoundZeros(without_content=int(np.count_nonzero(sees_content & ~composed))))
        if count:
            head, query, key = first_place(lacking)
            what = "the sink" if key == rows.shape[-1] else f"key {key}"
            place = row_place((layer, head, int(queries[query])))
            found = found.and_then(FoundZeros(count, f"text {text + 1}, {place}, {what}"))
    return found
