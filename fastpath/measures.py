"""The oracle's row measures in one compiled pass; each names its oracle and states only what differs.

All of them read every weight once, in the dtype it comes in: float32 and float64 as they are, float16 and
bfloat16 widened to float32, integers to float64 (and all of them where norms of a head lie 1e28 apart).
longdouble has no compiled form: InputTypeError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpath._kernels import COLUMNS, masked_kernel, ranged_kernel
from fastpath._masks import Sight, frozen, in_a_row, part_of_each, read_sight, read_sinks
from fastpath._norms import fit_float32, lifted
from fastpath._odd import refuse_wrong_rows, rows_first, share_again
from fastpath._rows import as_compiled
from oracle._checks import ROW_SUM_SLACK, check_norm, check_norms
from oracle._distance_checks import broadcast_pair
from oracle._results import EntropyChange, EntropySplit, RowMeasures

__all__ = ["entropy_change", "entropy_split", "norm_odds_ratio", "row_measures", "sink_share", "weight_share"]

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
    rows = as_compiled("attention", attention)
    sight = read_sight(visible, rows.shape)
    with rows_first(visible, attention=rows):
        named = list(check_norms(norms, rows.shape, visible).items())
        sinks = read_sinks(sink_mask, rows.shape)
    passes = [named[place : place + 2] for place in range(0, len(named), 2)] or [[]]
    shares: dict[str, Array] = {}
    ratios: dict[str, Array] = {}
    entropy: EntropySplit | None = None
    for number, pair in enumerate(passes):
        asked = ["share"] if number == 0 else []
        for column in ("n", "f")[: len(pair)]:
            asked += [f"share_{column}", f"ratio_{column}"]
        asked += EntropySplit._fields if entropies and number == 0 else ()
        found = _measure(rows, sight, sinks, [norm for _, norm in pair], visible, asked)
        if number == 0:
            shares["attention"] = found["share"]
            entropy = EntropySplit(*(found[name] for name in EntropySplit._fields)) if entropies else None
        for (name, _), column in zip(pair, ("n", "f"), strict=False):
            shares[name], ratios[name] = found[f"share_{column}"], found[f"ratio_{column}"]
    return RowMeasures(shares, ratios, entropy)


def sink_share(attention: Any, sink_mask: Any, norm: Any = None, visible: Any = None) -> Array:
    """Twin of `oracle.sink_share`."""
    rows = as_compiled("attention", attention)
    sight = read_sight(visible, rows.shape)
    with rows_first(visible, attention=rows):
        norms = [] if norm is None else [check_norm(norm, rows.shape, visible)]
        sinks = read_sinks(sink_mask, rows.shape)
    name = "share" if norm is None else "share_n"
    return _measure(rows, sight, sinks, norms, visible, [name])[name]


def norm_odds_ratio(attention: Any, sink_mask: Any, norm: Any, visible: Any = None) -> Array:
    """Twin of `oracle.norm_odds_ratio`."""
    rows = as_compiled("attention", attention)
    sight = read_sight(visible, rows.shape)
    with rows_first(visible, attention=rows):
        sinks = read_sinks(sink_mask, rows.shape)
        norms = [check_norm(norm, rows.shape, visible)]
    return _measure(rows, sight, sinks, norms, visible, ["ratio_n"])["ratio_n"]


def weight_share(weights: Any, sink_mask: Any, visible: Any = None) -> Array:
    """Twin of `oracle.weight_share`."""
    rows = as_compiled("weights", weights)
    sight = read_sight(visible, rows.shape)
    with rows_first(visible, weights=rows):
        sinks = read_sinks(sink_mask, rows.shape)
    return _measure(rows, sight, sinks, [], visible, ["share"], argument="weights")["share"]


def entropy_split(rows: Any, sink_mask: Any, visible: Any = None) -> EntropySplit:
    """Twin of `oracle.entropy_split`."""
    given = as_compiled("attention", rows)
    sight = read_sight(visible, given.shape)
    with rows_first(visible, attention=given):
        sinks = read_sinks(sink_mask, given.shape)
    found = _measure(given, sight, sinks, [], visible, list(EntropySplit._fields))
    return EntropySplit(*(found[name] for name in EntropySplit._fields))


def entropy_change(x: Any, y: Any, sink_mask: Any, visible: Any = None) -> EntropyChange:
    """Twin of `oracle.entropy_change`: shares and entropies of x and y from one reading of each."""
    pair = {name: as_compiled(name, rows) for name, rows in zip("xy", broadcast_pair(x, y), strict=True)}
    sight = read_sight(visible, pair["x"].shape)
    with rows_first(visible, **pair):
        sinks = read_sinks(sink_mask, pair["x"].shape)
    asked = ("share", *EntropySplit._fields)
    before, after = (_measure(rows, sight, sinks, [], visible, asked, name) for name, rows in pair.items())
    moved, mean = after["share"] - before["share"], (before["content"] + after["content"]) / 2
    rest = (2 - before["share"] - after["share"]) / 2
    return EntropyChange(
        after["total"] - before["total"],
        after["binary"] - before["binary"] - moved * mean,
        rest * (after["content"] - before["content"]),
    )


def _measure(
    rows: Array,
    sight: Sight,
    sinks: tuple[NDArray[np.bool_], NDArray[np.int64] | None],
    norms: list[Array],
    visible: Any,
    asked: Sequence[str],
    argument: str = "attention",
) -> dict[str, Array]:
    """The asked columns of the kernels by name, each (..., query), float64, contiguous.

    They share memory with nothing that was not asked for.
    """
    entropies = "total" in asked
    is_sink, places = sinks
    # A kernel's sum is rounded more often than the oracle's: near the edge it only calls for a second look.
    slack = 0.98 * ROW_SUM_SLACK if argument != "weights" else math.inf
    lead, (n_queries, n_keys) = rows.shape[:-2], rows.shape[-2:]
    names = COLUMNS if entropies else COLUMNS[:5]
    out = np.empty((len(names), *lead, n_queries))
    odd = np.zeros((*lead, n_queries), dtype=np.bool_)
    narrow = rows.dtype.itemsize <= 4 and all(fit_float32(norm) for norm in norms)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    one = np.ones(n_keys, dtype)
    n, f = ([lifted(norm, dtype) for norm in norms] + [one, one])[:2]
    if sight.mask is None and places is not None:
        kernel = ranged_kernel(dtype, entropies)
        content = (~is_sink[..., 0, :]).astype(dtype)
        kept = [norm * content for norm in (n, f)]
        given = [content, *kept, *(_at(norm, places) for norm in (n, f)), sight.start, sight.stop, places]
        given = [in_a_row(array) for array in given]
        which = [part_of_each(array, lead) for array in (sight.start, content, *kept)]
    else:
        kernel = masked_kernel(dtype, entropies)
        seen = np.ones((1, n_keys), bool) if sight.mask is None else sight.mask
        given = [in_a_row(array) for array in (n, f, sight.start, sight.stop)]
        given += [in_a_row(mask, 2) for mask in (seen, is_sink)]
        which = [part_of_each(sight.start, lead), part_of_each(is_sink, lead, 2)]
        which += [part_of_each(n, lead), part_of_each(f, lead), part_of_each(seen, lead, 2)]
    parts = np.stack(which, axis=-1)  # (..., kind of part)
    whole = rows.dtype == dtype and rows.flags.c_contiguous and rows.flags.aligned
    batch = math.prod(lead) if whole else 1
    for place in [()] if whole else np.ndindex(lead):
        part = frozen(np.ascontiguousarray(rows[place], dtype).reshape(batch, n_queries, n_keys))
        filled = out.reshape(len(names), batch, n_queries) if whole else np.empty((len(names), 1, n_queries))
        mine = frozen(parts[place].reshape(batch, len(which)))
        with np.errstate(all="ignore"):  # without the JIT, NumPy would warn where compiled code does not
            kernel(part, *given, mine, slack, filled, odd[place].reshape(batch, n_queries))
        if not whole:
            out[:, *place] = filled[:, 0]
    if odd.any():
        refuse_wrong_rows(argument, rows, visible, odd)
        if argument == "weights":
            share_again(rows, is_sink, visible, odd, out[0])
    found = {name: out[names.index(name)] for name in asked}
    return found if len(asked) == len(names) else {name: column.copy() for name, column in found.items()}


def _at(norm: Array, places: NDArray[np.int64]) -> Array:
    """Norms (..., key) at the positions (..., sink); anything where the position is -1."""
    if places.ndim == 1:
        return norm[..., places]
    own = np.broadcast_shapes(norm.shape[:-1], places.shape[:-1])
    wide = np.broadcast_to(norm, (*own, norm.shape[-1]))
    return np.take_along_axis(wide, np.broadcast_to(np.maximum(places, 0), (*own, places.shape[-1])), axis=-1)
