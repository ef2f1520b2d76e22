"""Texts as the pair kernels take them: which keys are parts of a row, and the rows block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpath._masks import frozen
from fastpath._odd import refuse_wrong_rows
from fastpath._pair_kernels import LANES
from fastpath._part_kernels import lay_out_rows
from fastpath._rows import as_compiled
from oracle._checks import ROW_SUM_SLACK
from oracle._distance_checks import Text
from oracle._results import KeyRange

__all__ = ["Block", "Selection", "blocks_of", "flatten_heads", "rows_of_pairs", "select_parts"]

Array = NDArray[Any]
_BLOCK_BYTES = 4 << 20  # of one array (row, head, part): several of them stay in the cache


class Selection(NamedTuple):
    """Which keys make up the parts of some rows, the same for all heads."""

    queries: NDArray[np.int64]  # (row,)
    keys: NDArray[np.int64]  # (row, key): the content keys in their order, then the sink keys, then anything
    n_content: NDArray[np.int64]  # (row,)
    n_sink: NDArray[np.int64]  # (row,)
    width: NDArray[np.int64]  # (row,), the parts rounded up to LANES

    def at(self, rows: slice | NDArray[np.bool_]) -> Selection:
        """Some of the rows."""
        return Selection(*(part[rows] for part in self))


class Block(NamedTuple):
    """Some rows of a text as parts, until the next block takes their place."""

    selection: Selection
    counted: bool  # whether the rows count at all, or are only looked at
    keep: Array  # (row, head, part), content parts, then the sink
    drop: Array  # (row, head, part)
    defined: NDArray[np.bool_]  # (keep or drop, row, head)


def select_parts(text: Text) -> Selection:
    """The parts of every row of a text."""
    n_queries, n_keys = text.rows.shape[-2:]
    if text.visible is None:
        seen: Array = np.ones((1, 1), dtype=bool)
    elif isinstance(text.visible, KeyRange):
        keys = np.arange(n_keys)
        seen = (text.visible.start[:, None] <= keys) & (keys < text.visible.stop[:, None])
    else:
        seen = text.visible
    seen, sinks = (np.broadcast_to(mask, (n_queries, n_keys)) for mask in (seen, text.sink_mask))
    content, sink = seen & ~sinks, seen & sinks
    n_content, n_sink = (mask.sum(axis=1, dtype=np.int64) for mask in (content, sink))
    places = np.zeros((n_queries, max(n_keys, 1)), dtype=np.int64)
    for mask, first in ((content, np.zeros_like(n_content)), (sink, n_content)):
        query, key = np.nonzero(mask)
        places[query, (np.cumsum(mask, axis=1) - 1 + first[:, None])[query, key]] = key
    width = -(-(n_content + (n_sink > 0)) // LANES) * LANES
    return Selection(np.arange(n_queries, dtype=np.int64), places, n_content, n_sink, width)


def flatten_heads(argument: str, rows: Any) -> Array:
    """(..., query, key) as a read-only (head, query, key) of float32 or float64; longdouble is refused."""
    flat = as_compiled(argument, rows)
    dtype = np.float32 if flat.dtype.itemsize <= 4 else np.float64
    return frozen(flat.astype(dtype, copy=False).reshape(math.prod(flat.shape[:-2]), *flat.shape[-2:]))


def blocks_of(text: Text, selection: Selection, share: float = 1.0, noise: float = 0.0) -> Iterator[Block]:
    """The rows of a text as parts, in the order of the queries; last those that are only looked at.

    Every keep part is multiplied by `share`, and `noise` is spread over the parts of a row. After the last
    block the oracle's InputError is raised for rows that it refuses.
    """
    rows = flatten_heads(text.argument, text.rows)
    heads = len(rows)
    odd = np.zeros((heads, rows.shape[1]), dtype=bool)
    for counted in (True, False):
        chosen = selection.at(text.queries == counted)
        longest = int(chosen.width.max(initial=0))
        step = max(1, _BLOCK_BYTES // max(1, 8 * heads * longest))
        room = np.empty((2, min(step, len(chosen.queries)), heads, longest))  # new memory costs page faults
        for first in range(0, len(chosen.queries), step):
            some = chosen.at(slice(first, first + step))
            shape = len(some.queries), heads
            keep, drop = room[:, : len(some.queries)]
            defined, wrong = np.empty((2, *shape), dtype=bool), np.empty(shape, dtype=bool)
            # A kernel's sum is rounded more often than the oracle's: near the edge it calls for another look.
            lay_out_rows(rows, *some, 0.98 * ROW_SUM_SLACK, share, noise, keep, drop, defined, wrong)
            odd[:, some.queries] = wrong.T
            yield Block(some, counted, keep, drop, defined)
    if odd.any():
        refuse_wrong_rows(text.argument, text.rows, text.visible, odd.reshape(text.rows.shape[:-1]))


def rows_of_pairs(defined: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows (row, head) are defined in both heads, (head, head).

    A product of integers, which no BLAS takes: its threads would go on spinning beside ours. It is slow, so
    only rows that some heads have and some lack are multiplied.
    """
    whole = defined.all(axis=1)
    some = defined[defined.any(axis=1) & ~whole].astype(np.int64)
    return some.T @ some + np.count_nonzero(whole)
