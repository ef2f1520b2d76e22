"""The parts of a row seen as a composition, and what becomes of exact zeros among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import first_place
from oracle._distance_checks import check_delta, check_zeros, reject_replacement, reject_zeros
from oracle.rows import check_rows, check_sinks, check_visible

__all__ = ["Parts", "closed_content", "handle_zeros", "keep_parts", "replace_zeros"]

Array = NDArray[Any]


class Parts(NamedTuple):
    """Rows as n+1 parts: the sink set as one part first, then every key, of which content keys are parts."""

    weights: Array  # (..., query, part), 0 at what is no part; NaN for a row without mass
    present: NDArray[np.bool_]  # broadcasts against weights: which are parts at all


def keep_parts(rows: Array, sink_mask: Any, visible: Any = None) -> Parts:
    """Closed rows (..., query, key) as the parts of the "keep" convention, (..., query, 1 + key).

    A key that is not visible is no part, and neither is the sink of a row that sees none.
    """
    sinks = check_sinks(sink_mask, rows)
    seen = np.True_ if visible is None else check_visible(visible, rows)
    content, on_sink = seen & ~sinks, seen & sinks
    weights = np.concatenate(
        [np.where(sinks, rows, 0).sum(axis=-1, keepdims=True), np.where(sinks, 0, rows)], axis=-1
    )
    lost = ~(weights.sum(axis=-1, keepdims=True) > 0)  # NaN, or no keys at all
    return Parts(
        np.where(lost, np.nan, weights),
        np.concatenate([on_sink.any(axis=-1, keepdims=True), content], axis=-1),
    )


def closed_content(parts: Parts) -> Array:
    """The parts of the "drop" convention, closed: (..., query, part), 0 at what is no content.

    NaN for a row without content mass.
    """
    content = parts.weights.copy()
    content[..., 0] = 0
    with np.errstate(invalid="ignore"):
        return content / content.sum(axis=-1, keepdims=True)


def handle_zeros(
    parts: Parts, argument: str, zeros: str = "refuse", delta: float | None = None, counted: Any = True
) -> Parts:
    """Parts with their exact zeros refused, left for each pair to leave out, or replaced by `delta`.

    "refuse" raises InputError with the count and the place of the first zero among the `counted` (query,)
    rows, unless the row has no content mass at all: that one is undefined. "common-support" changes nothing.
    "replace" is `replace_zeros`, under which a row without content mass is NaN throughout.
    """
    check_zeros(zeros, delta)
    weights, present = parts
    composed = weights[..., 1:].sum(axis=-1, keepdims=True) > 0
    zero = present & (weights == 0) & composed
    if zeros == "refuse":
        zero &= np.asarray(counted)[..., None]
        if zero.any():
            *row, part = first_place(zero)
            reject_zeros(argument, tuple(row), part - 1 if part else None, int(zero.sum()))
    if zeros != "replace" or delta is None:
        return parts
    count = zero.sum(axis=-1, keepdims=True)
    short = count * delta >= 1
    if short.any():
        *row, _ = place = first_place(short)
        reject_replacement(delta, int(count[place]), tuple(row), argument)
    replaced = np.where(zero, delta, weights * (1 - count * weights.dtype.type(delta)))
    return Parts(np.where(composed, replaced, np.nan), present)


def replace_zeros(rows: Any, sink_mask: Any, delta: float, visible: Any = None) -> Array:
    """Rows over n+1 parts with every exact zero replaced by `delta`: (..., query, part), closed, no unit.

    The parts are the sink set as one, first, and then every key at its own place (part 1 is key 0); a part
    that was zero becomes delta, the others are multiplied by 1 - zeros · delta, so that the sum stays one and
    the ratios between them stay what they were (multiplicative replacement: Martín-Fernández et al. 2003,
    Mathematical Geology 35, equation 5). What is no part stays exactly 0: sink keys, keys that are not
    visible, and the sink part of a row that sees no sink. A row without content mass is NaN throughout:
    all its content would be delta's.

    Raises InputError for rows and masks as `sink_share` does, for a delta outside (0, 1), and where the zeros
    of a row times delta reach one.
    """
    check_delta(delta)
    weights = check_rows(rows, visible)
    return handle_zeros(keep_parts(weights, sink_mask, visible), "attention", "replace", delta).weights
