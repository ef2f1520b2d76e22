"""The tidy table: one row per text, layer, head and query, with its sink shares and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle._checks import check_norm, reject

__all__ = [
    "HEAD_SUMMED",
    "MIN_CONTENT_KEYS",
    "THIN_CONTENT",
    "WEIGHTINGS",
    "RowTable",
    "content_queries",
    "join_tables",
    "tabulate",
    "tabulate_head_summed",
    "visible_in",
]

Array = NDArray[Any]

WEIGHTINGS = ("attention", "value_norm", "transformed_norm")
HEAD_SUMMED = "head_summed_norm"
THIN_CONTENT = 1e-3
MIN_CONTENT_KEYS = 8

_PLACES = ("text", "layer", "head", "query", "n_tokens")
_FLAGS = ("no_sink", "no_mass", "zero_content", "thin_content")


@dataclass(frozen=True, eq=False)
class RowTable:
    """Columns of one length, (row,). `n_tokens` is T: the visible tokens of the row's text.

    `shares` holds the sink share by weighting, in [0, 1] (NaN: the weighting leaves the row no mass);
    `ratios` holds r of the odds law for the norm weightings (NaN: no sink mass or no content mass).
    `no_sink`: no visible sink key. `no_mass`: a row of zeros, its share is NaN. `zero_content`: no attention
    on content, its content distribution is undefined. `thin_content`: some, but less than 1e-3.
    `head` is -1 where heads are pooled. `left_out` counts the rows of a causal text that
    see too few content keys.
    """

    text: NDArray[np.int32]
    layer: NDArray[np.int32]
    head: NDArray[np.int32]
    query: NDArray[np.int32]
    n_tokens: NDArray[np.int32]
    shares: Mapping[str, Array]
    ratios: Mapping[str, Array]
    no_sink: NDArray[np.bool_]
    no_mass: NDArray[np.bool_]
    zero_content: NDArray[np.bool_]
    thin_content: NDArray[np.bool_]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.text)

    def lengths(self) -> list[int]:
        """The distinct values of T, sorted."""
        return [int(count) for count in np.unique(self.n_tokens)]

    def text_lengths(self) -> list[int]:
        """T of every text that has rows, in the order of the texts."""
        return self.n_tokens[np.flatnonzero(np.diff(self.text, prepend=-1))].tolist()


def join_tables(tables: Iterable[RowTable]) -> RowTable:
    """The rows of several texts under each other; an empty list gives a table without rows."""
    parts = list(tables)
    if not parts:
        place, flag = np.empty(0, np.int32), np.empty(0, bool)
        return RowTable(place, place, place, place, place, {}, {}, flag, flag, flag, flag)
    first = parts[0]
    return RowTable(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_PLACES, *_FLAGS)},
        shares={name: np.concatenate([part.shares[name] for part in parts]) for name in first.shares},
        ratios={name: np.concatenate([part.ratios[name] for part in parts]) for name in first.ratios},
        left_out=sum(part.left_out for part in parts),
    )


def visible_in(visible: NDArray[np.bool_], layer: int) -> NDArray[np.bool_]:
    """Which key each query sees in one layer, (query, key), from that or from (layer, 1, query, key)."""
    return visible if visible.ndim == 2 else visible[layer, 0]


def content_queries(
    sink_mask: NDArray[np.bool_],
    visible: NDArray[np.bool_],
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
) -> tuple[NDArray[np.intp], int]:
    """Which rows of a text count, (query,), and how many causal rows were left out.

    "content" takes the queries that are real and no sink, "all" every real query. In a causal text (nobody
    sees a later key) a row counts from `min_content_keys` visible content keys on. Raises InputError for the
    masks of several layers.
    """
    if visible.ndim != 2:
        reject(
            "visible",
            expected="the mask of one layer, (query, key)",
            found=f"shape {visible.shape}",
            todo="Take the layer's with visible_in.",
        )
    if queries not in ("content", "all"):
        reject("queries", expected="content or all", found=repr(queries), todo="Name one of the two.")
    chosen = visible.any(axis=1)
    if queries == "content":
        chosen = chosen & ~sink_mask
    causal = len(visible) > 1 and not np.triu(visible, 1).any()
    if not causal:
        return np.flatnonzero(chosen), 0
    enough = (visible & ~sink_mask).sum(axis=1) >= min_content_keys
    return np.flatnonzero(chosen & enough), int((chosen & ~enough).sum())


def tabulate(
    attention: Array,
    sink_mask: NDArray[np.bool_],
    visible: NDArray[np.bool_],
    norms: Mapping[str, Array],
    *,
    text: int = 0,
    layers: Sequence[int] | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
    measures: ModuleType = oracle,
) -> RowTable:
    """The rows of one text, layer by layer, so that only one layer is ever widened to float64.

    `attention` (layer, head, query, key); `sink_mask` (key,); `visible` (query, key), or (layer, 1, query,
    key) where windows differ by layer, and with them the rows that count; `norms` maps "value_norm" and
    "transformed_norm" (either may be absent) to (layer, head, key). `measures` is the layer that computes,
    `oracle` or `fastpath`: its `row_measures` reads each layer once. Raises InputError as that does.
    """
    chosen = list(range(len(attention)) if layers is None else layers)
    if visible.ndim != 2:
        same: dict[str, Any] = {"text": text, "queries": queries, "min_content_keys": min_content_keys}
        return join_tables(
            tabulate(
                attention, sink_mask, visible[layer, 0], norms, layers=[layer], measures=measures, **same
            )
            for layer in chosen
        )
    rows, left_out = content_queries(sink_mask, visible, queries, min_content_keys)
    seen = visible[rows]
    _check_norms(norms, chosen, attention.shape, visible, rows)
    shape = (len(chosen), attention.shape[1], len(rows))
    shares = {name: np.empty(shape) for name in ("attention", *norms)}
    ratios = {name: np.empty(shape) for name in norms}
    content = np.empty(shape)
    for index, layer in enumerate(chosen):
        part = attention[layer][:, rows]  # (head, query, key)
        found = measures.row_measures(
            part, sink_mask, {name: norm[layer] for name, norm in norms.items()}, seen
        )
        for name, share in found.shares.items():
            shares[name][index] = share
        for name, ratio in found.ratios.items():
            ratios[name][index] = ratio
        content[index] = _content(part, found.shares["attention"], sink_mask, seen, measures)
    grid = (chosen, range(shape[1]), rows)
    return _assemble(text, grid, sink_mask, visible, shares, ratios, content, left_out)


def _check_norms(
    norms: Mapping[str, Array],
    chosen: Sequence[int],
    shape: tuple[int, ...],
    visible: NDArray[np.bool_],
    rows: NDArray[np.intp],
) -> None:
    """Refuse the norms of all chosen layers at once, so that the message knows the layer."""
    picked = np.isin(np.arange(shape[0]), chosen)[:, None, None]
    for name, norm in norms.items():
        check_norm(np.where(picked, norm, 0), (*shape[:2], len(rows), shape[-1]), visible[rows], name)


def tabulate_head_summed(
    attention: Array,
    gram: Array,
    sink_mask: NDArray[np.bool_],
    visible: NDArray[np.bool_],
    *,
    text: int = 0,
    layers: Sequence[int] | None = None,
    queries: str = "content",
    min_content_keys: int = MIN_CONTENT_KEYS,
) -> RowTable:
    """The rows of one text under the head-summed norm: one per layer and query, `head` is -1.

    `gram` is (layer, key, head, head). Content is judged by the summed norms here, and there is no r. The
    oracle computes it: its rows are fewer by the number of heads.
    """
    chosen = list(range(len(attention)) if layers is None else layers)
    if visible.ndim != 2:
        same: dict[str, Any] = {"text": text, "queries": queries, "min_content_keys": min_content_keys}
        return join_tables(
            tabulate_head_summed(attention, gram, sink_mask, visible[layer, 0], layers=[layer], **same)
            for layer in chosen
        )
    rows, left_out = content_queries(sink_mask, visible, queries, min_content_keys)
    seen = visible[rows]
    share, content = np.empty((2, len(chosen), 1, len(rows)))
    for index, layer in enumerate(chosen):
        weights = oracle.head_summed_norm(attention[layer][:, rows], gram[layer])  # (query, key)
        share[index, 0] = oracle.weight_share(weights, sink_mask, seen)
        content[index, 0] = oracle.weight_share(weights, ~sink_mask, seen)
    shares = {HEAD_SUMMED: share}
    return _assemble(text, (chosen, (-1,), rows), sink_mask, visible, shares, {}, content, left_out)


def _content(
    rows: Array, share: Array, sink_mask: NDArray[np.bool_], seen: NDArray[np.bool_], measures: ModuleType
) -> Array:
    """Content mass of rows (head, query, key); summed where it is small, as 1 - share would round it away."""
    content = 1 - share
    thin = np.nonzero(content < 2 * THIN_CONTENT)
    if thin[0].size:
        content[thin] = measures.sink_share(rows[thin], ~sink_mask, None, seen[thin[1]])
    return content


def _assemble(
    text: int,
    grid: tuple[Sequence[int], Sequence[int], Array],
    sink_mask: NDArray[np.bool_],
    visible: NDArray[np.bool_],
    shares: Mapping[str, Array],
    ratios: Mapping[str, Array],
    content: Array,
    left_out: int,
) -> RowTable:
    """Flatten (layer, head, query) arrays into columns; `grid` lists layers, heads and queries."""
    layer, head, query = np.meshgrid(*(np.asarray(axis, np.int32) for axis in grid), indexing="ij")
    unseen = ~(visible[np.asarray(grid[2])] & sink_mask).any(axis=1)
    mass = content.ravel()
    return RowTable(
        text=np.full(layer.size, text, np.int32),
        layer=layer.ravel(),
        head=head.ravel(),
        query=query.ravel(),
        n_tokens=np.full(layer.size, visible.any(axis=0).sum(), np.int32),
        shares={name: share.ravel() for name, share in shares.items()},
        ratios={name: ratio.ravel() for name, ratio in ratios.items()},
        no_sink=np.broadcast_to(unseen, layer.shape).ravel(),
        no_mass=np.isnan(mass),
        zero_content=mass == 0,
        thin_content=(mass > 0) & (mass < THIN_CONTENT),
        left_out=left_out * layer.shape[0] * layer.shape[1],
    )
