"""Squared Aitchison distances of all pairs of heads, from rows or from scores, block by block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpath._pair_kernels import pair_kernel, shared_kernel, tiles_of
from fastpath._part_kernels import centre_parts, logs_of
from fastpath._parts import Block, Selection, flatten_heads, rows_of_pairs
from fastpath._score_squares import squares_from_scores
from oracle._checks import first_place
from oracle._distance_checks import Text, reject_replacement, reject_score, reject_zeros

__all__ = ["AitchisonSums"]

Array = NDArray[Any]


class AitchisonSums:
    """Sums over the counted rows of one text; what the oracle refuses is refused once all rows were seen."""

    def __init__(self, text: Text, selection: Selection, zeros: str, delta: float | None) -> None:
        """Start from nothing, for the parts of all rows of the text.

        With scores in the text, the distances come from them and `zeros` is idle.
        """
        self._text, self._selection, self._zeros, self._delta = text, selection, zeros, delta
        *lead, n_queries, _ = text.rows.shape
        heads = math.prod(lead)
        self._name = text.argument.replace("rows", "scores") if "[" in text.argument else "scores"
        self._scores = None if text.scores is None else flatten_heads(self._name, text.scores)
        self._content, self._sink = np.zeros((heads, heads)), np.zeros((heads, heads))
        self._counts = np.zeros((heads, heads))
        self._odd = np.zeros((heads, n_queries), dtype=np.int64)  # zeros of a row, or 1 for a wrong score
        self._defined = np.zeros((n_queries, heads), dtype=bool)  # rows that count, where scores are given

    def add(self, block: Block) -> None:
        """Add the rows of a block, if they count, and look at them in any case."""
        queries, _, n_content, n_sink, width = block.selection
        if self._scores is not None:
            if block.counted:
                self._defined[queries] = block.defined[0] & (n_content > 0)[:, None]
            return
        heads = block.keep.shape[1]
        size, tiles = tiles_of(heads)
        if self._zeros == "common-support":
            if block.counted:
                logs = np.empty_like(block.keep)
                logs_of(block.keep, width, logs)
                tables = self._content, self._sink, self._counts
                shared_kernel(block.keep, logs, n_content, n_sink > 0, tiles, size, *tables)
            return
        centred, balance = np.empty_like(block.keep), np.empty((*block.keep.shape[:2], 1))
        odd = np.zeros(block.keep.shape[:2], dtype=np.int64)
        defined = block.defined[1]
        centre_parts(block.keep, n_content, n_sink, width, self._delta or 0.0, centred, balance, odd)
        odd *= defined
        if self._delta is None:
            odd *= block.counted
        self._odd[:, queries] = odd.T
        if not block.counted:
            return
        self._counts += rows_of_pairs(defined)
        squares, one = pair_kernel("squares"), np.ones_like(width)
        nothing, unused = np.empty(block.keep.shape[:2]), np.zeros_like(self._sink)
        for parts, wide, table in ((centred, width, self._content), (balance, one, self._sink)):
            squares(parts, parts, nothing, wide, defined, tiles, size, 1.0, math.inf, table, unused)

    def result(self) -> tuple[dict[tuple[str, str], Array], NDArray[np.int64]]:
        """Sums (head, head) by metric and convention, and how many rows they are of.

        To be asked for after all compiled passes over the text: from scores it takes a matrix product.
        """
        if self._scores is not None:
            found = squares_from_scores(self._scores, self._selection, self._defined)
            self._content, self._sink, self._odd = found
            self._counts += rows_of_pairs(self._defined[self._text.queries])
        if self._odd.any():
            self._refuse(self._odd.reshape(self._text.rows.shape[:-1]))
        counts = np.triu(self._counts).astype(np.int64)
        content, sink = (table + table.T for table in (self._content, self._sink))
        tables = {
            ("aitchison", "keep"): content + sink,
            ("aitchison", "drop"): content,
            ("aitchison_sink", "keep"): sink,
        }
        return tables, counts + np.triu(counts, 1).T

    def _refuse(self, odd: NDArray[np.int64]) -> None:
        """Raise the oracle's InputError for odd rows (..., query), if they are odd on a second look."""
        text, selection = self._text, self._selection
        if text.scores is not None:
            found, first = 0, None
            for place in map(tuple, np.argwhere(odd)):
                n = selection.n_content[place[-1]] + selection.n_sink[place[-1]]
                keys = np.sort(selection.keys[place[-1], :n])
                values = text.scores[place][keys].astype(np.float64)
                wrong = ~np.isfinite(values)
                found += int(wrong.sum())
                if first is None and wrong.any():
                    first = values[wrong][0], place, int(keys[wrong][0])
            if first is not None:
                reject_score(self._name, *first, found)
        elif self._delta is None:
            place = first_place(odd > 0)
            n, n_sink = selection.n_content[place[-1]], selection.n_sink[place[-1]]
            keys = selection.keys[place[-1]]
            row = text.rows[place].astype(np.float64)
            no_sink = n_sink and not row[keys[n : n + n_sink]].any()
            key = None if no_sink else int(keys[:n][row[keys[:n]] == 0][0])
            reject_zeros(text.argument, place, key, int(odd.sum()))
        elif (odd * self._delta >= 1).any():
            place = first_place(odd * self._delta >= 1)
            reject_replacement(self._delta, int(odd[place]), place, text.argument)
