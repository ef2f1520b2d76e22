"""The oracle's row measures in one compiled pass; each names its oracle and states only what differs.

All of them read every weight once, in the dtype it comes in: float32 and float64 as they are, float16 and
bfloat16 widened to float32, integers to float64. longdouble has no compiled form: InputTypeError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpath._kernels import COLUMNS, masked_kernel, ranged_kernel
from fastpath._masks import Ranges, choose_masks
from fastpath._odd import refuse_wrong_rows
from fastpath._rows import as_compiled
from oracle._checks import ROW_SUM_SLACK, check_norm
from oracle._results import EntropySplit, RowMeasures

__all__ = ["entropy_split", "norm_odds_ratio", "row_measures", "sink_share", "weight_share"]

Array = NDArray[Any]


def row_measures(
    attention: Any,
    sink_mask: Any,
    norms: Mapping[str, Any] | None = None,
    visible: Any = None,
    entropies: bool = False,
) -> RowMeasures:
    """Twin of `oracle.row_measures`: all sink shares, ratios and entropies from one reading of the rows.

    Norms are taken two at a time, so a third one costs a second reading.
    """
    named = list((norms or {}).items())
    passes = [named[place : place + 2] for place in range(0, len(named), 2)] or [[]]
    shares: dict[str, Array] = {}
    ratios: dict[str, Array] = {}
    entropy = None
    for number, pair in enumerate(passes):
        found = _measure(attention, sink_mask, [norm for _, norm in pair], visible, entropies and number == 0)
        shares.setdefault("attention", found["share"])
        for (name, _), column in zip(pair, ("n", "f"), strict=False):
            shares[name], ratios[name] = found[f"share_{column}"], found[f"ratio_{column}"]
        if entropies and number == 0:
            entropy = EntropySplit(found["total"], found["binary"], found["content"])
    return RowMeasures(shares, ratios, entropy)


def sink_share(attention: Any, sink_mask: Any, norm: Any = None, visible: Any = None) -> Array:
    """Twin of `oracle.sink_share`."""
    found = _measure(attention, sink_mask, [] if norm is None else [norm], visible)
    return found["share" if norm is None else "share_n"]


def norm_odds_ratio(attention: Any, sink_mask: Any, norm: Any, visible: Any = None) -> Array:
    """Twin of `oracle.norm_odds_ratio`."""
    return _measure(attention, sink_mask, [norm], visible)["ratio_n"]


def weight_share(weights: Any, sink_mask: Any, visible: Any = None) -> Array:
    """Twin of `oracle.weight_share`."""
    return _measure(weights, sink_mask, [], visible, argument="weights")["share"]


def entropy_split(rows: Any, sink_mask: Any, visible: Any = None) -> EntropySplit:
    """Twin of `oracle.entropy_split`."""
    found = _measure(rows, sink_mask, [], visible, entropies=True)
    return EntropySplit(found["total"], found["binary"], found["content"])


def _measure(
    attention: Any,
    sink_mask: Any,
    norms: list[Any],
    visible: Any,
    entropies: bool = False,
    argument: str = "attention",
) -> dict[str, Array]:
    """Every column of the kernels by name, each (..., query), float64."""
    rows = as_compiled(argument, attention)
    masks = choose_masks(sink_mask, visible, rows.shape)
    columns = [_scaled(check_norm(norm, rows.shape, visible), rows) for norm in norms]
    # A kernel's sum is rounded more often than the oracle's: near the edge it only calls for a second look.
    slack = 0.98 * ROW_SUM_SLACK if argument == "attention" else math.inf
    lead, (n_queries, n_keys) = rows.shape[:-2], rows.shape[-2:]
    names = COLUMNS if entropies else COLUMNS[:5]
    out = np.empty((*lead, n_queries, len(names)))
    odd = np.zeros((*lead, n_queries), dtype=np.bool_)
    dtype = np.dtype(np.float32 if rows.dtype.itemsize <= 4 else np.float64)
    one = np.ones((1, n_keys), dtype)
    content = np.ones(n_keys, dtype)
    if isinstance(masks, Ranges):
        content[masks.sinks] = 0
    whole = rows.dtype == dtype and rows.flags.c_contiguous and rows.flags.aligned
    batch = math.prod(lead) if whole else 1
    for place in [()] if whole else np.ndindex(lead):
        part = np.ascontiguousarray(rows[place], dtype).reshape(batch, n_queries, n_keys)
        n, f = ([_part(column, lead, place).astype(dtype) for column in columns] + [one, one])[:2]
        results, flags = (
            out[place].reshape(batch, n_queries, len(names)),
            odd[place].reshape(batch, n_queries),
        )
        with np.errstate(all="ignore"):  # without the JIT, NumPy would warn where compiled code does not
            if isinstance(masks, Ranges):
                at_sinks = [np.ascontiguousarray(norm[:, masks.sinks]) for norm in (n, f)]
                of_content = [content, *(norm * content for norm in (n, f))]
                ranged_kernel(dtype, entropies)(part, *of_content, *at_sinks, *masks, slack, results, flags)
            else:
                seen, sinks = (_part(mask, lead, place, 2) for mask in masks)
                masked_kernel(dtype, entropies)(part, n, f, seen, sinks, slack, results, flags)
    if odd.any():
        refuse_wrong_rows(argument, rows, visible, odd)
    return {name: out[..., column] for column, name in enumerate(names)}


def _scaled(norm: Array, rows: Array) -> Array:
    """Norms over their largest, which changes no share and no ratio and lets any of them fit float32."""
    largest = norm.max(axis=-1, keepdims=True, initial=0)
    return np.divide(norm, largest, where=largest > 0, out=np.zeros(norm.shape))


def _part(array: Array, lead: tuple[int, ...], place: tuple[int, ...], trailing: int = 1) -> Array:
    """The part of an array (..., trailing axes) that goes with rows[place]: (batch or 1, trailing axes)."""
    tail = array.shape[array.ndim - trailing :]
    if array.ndim == trailing or all(size == 1 for size in array.shape[: array.ndim - trailing]):
        return array.reshape(1, *tail)
    part = np.broadcast_to(array, (*lead, *tail))[place]
    return part.reshape(math.prod(part.shape[: part.ndim - trailing]), *tail)
