"""What trials of distances and verdicts run on: rows of heads, texts of unlike lengths, tied matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["HeadTexts", "RowPair", "head_texts", "matrices", "row_pair"]

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Three = tuple[Array, Array, Array]

_HEADS, _QUERIES, _KEYS, _PADDING = 3, 5, 13, 2
_UNDEFINED = 2, 4  # a head, and its query whose whole mass is on the sink


class RowPair(NamedTuple):
    """Scores of three heads and their softmax rows; padding holds garbage, and two keys are sinks."""

    scores: Three  # each (head, query, key)
    rows: Three
    sink_mask: Mask  # (key,)
    visible: Mask  # (key,)

    def real(self) -> RowPair:
        """The visible keys alone."""
        seen = self.visible
        scores, rows = (_each(arrays, lambda array: array[..., seen]) for arrays in self[:2])
        return RowPair(scores, rows, self.sink_mask[seen], seen[seen])

    def between(self) -> RowPair:
        """With the second row the mean of the other two, where the divergence itself is no metric."""
        x, _, z = self.rows
        return self._replace(rows=(x, (x + z) / 2, z))

    def equal_shares(self) -> RowPair:
        """With one sink share in all rows, divided between the sinks in another way in each."""

        def close(array: Array) -> Array:
            parts = [np.where(self.visible & mask, array, 0) for mask in (self.sink_mask, ~self.sink_mask)]
            sink, content = (part / part.sum(axis=-1, keepdims=True) for part in parts)
            return np.where(self.visible, 0.375 * sink + 0.625 * content, array)

        return self._replace(rows=_each(self.rows, close))


class HeadTexts(NamedTuple):
    """Rows of all heads of several texts, with what is sink, visible and counted in each."""

    rows: list[Array]  # (layer, head, query, key)
    sink_mask: list[Mask]  # (key,)
    visible: list[Mask]  # (query, key)
    queries: list[Mask]  # (query,)


def row_pair(seed: int) -> RowPair:
    """Sharp random rows with padding whose weights and scores are garbage."""
    rng = np.random.default_rng(seed)
    real = _KEYS - _PADDING
    keys = np.arange(_KEYS)
    logits = rng.normal(0, 2, (3, _HEADS, _QUERIES, _KEYS))
    scores: Three = (logits[0], logits[1], logits[2])
    weights = _each(scores, np.exp)
    rows = _each(weights, lambda w: w / w[..., :real].sum(axis=-1, keepdims=True))
    return RowPair(scores, rows, np.isin(keys, (0, real - 1)), keys < real)


def head_texts(seed: int) -> HeadTexts:
    """Three causal texts of prime lengths, the last one padded; one head has a row without content mass."""
    rng = np.random.default_rng(seed)
    found = HeadTexts([], [], [], [])
    for tokens, padding in ((11, 0), (7, 0), (13, 2)):
        keys = np.arange(tokens)
        seen = (keys <= keys[:, None]) & (keys < tokens - padding)
        rows = np.where(seen, np.exp(rng.normal(0, 2, (2, _HEADS, tokens, tokens))), 0)
        rows[1, _UNDEFINED[0], _UNDEFINED[1]] = keys == 0
        rows /= rows.sum(axis=-1, keepdims=True)
        sinks = np.isin(keys, (0, 2))
        found.rows.append(rows)
        found.sink_mask.append(sinks)
        found.visible.append(seen)
        found.queries.append(~sinks & (keys < tokens - padding))
    return found


def matrices(seed: int, heads: int = 9, tied: bool = True) -> tuple[Array, Array]:
    """Two related distance matrices (head, head); `tied` ones are whole numbers, with a NaN in the second."""
    rng = np.random.default_rng(seed)
    first, noise = (rng.uniform(0.5, 3, (heads, heads)) for _ in range(2))
    second = 0.6 * first + 0.4 * noise
    pair = []
    for matrix in (first, second):
        full = np.triu(matrix, 1) + np.triu(matrix, 1).T
        pair.append(np.round(4 * full) if tied else full)
    if tied:
        pair[1][1, 4] = pair[1][4, 1] = np.nan
    return pair[0], pair[1]


def _each(arrays: Three, change: Callable[[Array], Array]) -> Three:
    x, y, z = arrays
    return change(x), change(y), change(z)
