"""Rows as compositions: closure and clr, the entropy of a row, its split and its change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import first_place
from oracle._distance_checks import broadcast_pair, reject_zeros
from oracle._results import EntropyChange, EntropySplit
from oracle.rows import (
    check_row_pair,
    check_rows,
    check_scores,
    check_sinks,
    check_visible,
    check_weights,
)

__all__ = [
    "closure",
    "clr",
    "entropy_change",
    "entropy_change_from_scores",
    "entropy_split",
    "entropy_split_from_scores",
]

Array = NDArray[Any]


def closure(weights: Any, visible: Any = None) -> Array:
    """Weights divided by their sum over visible parts: (..., part), in [0, 1], no unit.

    C(x) = x / sum x (Aitchison 1982, section 2). `weights` (..., query, part) are finite and not negative and
    may have any sum; parts that are not visible come back as 0, a row without any mass as NaN. Raises
    InputError for other weights; `visible` is that of `sink_share`.
    """
    parts = check_weights(weights, visible)
    with np.errstate(over="ignore", invalid="ignore"):
        huge = np.isinf(parts.sum(axis=-1, keepdims=True))
        scaled = parts / np.where(huge, parts.max(axis=-1, keepdims=True, initial=0), 1)
        return scaled / scaled.sum(axis=-1, keepdims=True)


def clr(parts: Any, visible: Any = None) -> Array:
    """Centred log-ratios: (..., part), any real number, the visible parts of a row summing to 0; no unit.

    clr(x) = ln x - mean ln x over the visible parts (Aitchison 1982, section 4); whether a row is closed
    makes no difference. `parts` (..., query, part) are positive. Parts that are not visible come back as 0, a
    row without any mass as NaN. Raises InputError for zeros among visible parts, with their count and the
    place of the first, and for weights as `closure` does.
    """
    weights = check_weights(parts, visible)
    seen = np.True_ if visible is None else check_visible(visible, weights)
    zero = seen & (weights == 0) & (weights.max(axis=-1, keepdims=True, initial=0) > 0)
    if zero.any():
        place = first_place(zero)
        todo = "Say what is masked with visible=, or use replace_zeros first."
        reject_zeros("weights", place[:-1], place[-1], int(zero.sum()), todo)
    count = np.broadcast_to(seen, weights.shape).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(seen, np.log(np.where(seen, weights, 1)), 0)
        centred = np.where(seen, logs - logs.sum(axis=-1, keepdims=True) / count, 0)
    return np.where((weights == 0).all(axis=-1, keepdims=True), np.nan, centred)


def entropy_split(rows: Any, sink_mask: Any, visible: Any = None) -> EntropySplit:
    """Entropy of each row over n+1 parts (the content keys, and the sink as one): (..., query), in nats.

    H = h(s) + (1 - s) H(content), with s the sink share, h(s) = -s ln s - (1-s) ln(1-s) in [0, ln 2], and
    content the closed content weights, H(content) in [0, ln n]; 0 ln 0 = 0 (the chain rule of Shannon 1948,
    section 6). `total` is H, `binary` h(s), `content` H(content).

    A row without sink has s = 0 and binary 0, a row without content mass has total 0, binary 0 and content
    NaN, a row without any mass NaN throughout. `rows` (..., query, key) are attention rows, `sink_mask`
    (key,) and `visible` are those of `sink_share`, and InputError is raised as there.
    """
    weights = check_rows(rows, visible)
    return _split_entropy(weights, check_sinks(sink_mask, weights))


def entropy_split_from_scores(scores: Any, sink_mask: Any, visible: Any = None) -> EntropySplit:
    """`entropy_split` of the softmax of scores, in log space: each (..., query), in nats.

    The sink's log-odds are logsumexp(sink scores) - logsumexp(content scores), and the content is the softmax
    of the content scores alone, so that no content that is visible ever vanishes beside the sink. `scores`
    (..., query, key) are finite at visible keys; `sink_mask` and `visible` are those of `sink_share`.

    Ranges are those of `entropy_split`. A row that sees no sink has binary 0, one that sees no content has
    total 0, binary 0 and content NaN, one that sees nothing is NaN throughout. Raises InputError for a
    visible score that is not finite, and for masks as `sink_share` does.
    """
    logits, seen = check_scores(scores, visible)
    return _split_scores(logits, seen, check_sinks(sink_mask, logits))[0]


def entropy_change(x: Any, y: Any, sink_mask: Any, visible: Any = None) -> EntropyChange:
    """Entropy of y minus entropy of x and the two channels it came through: each (..., query), in nats.

    With s the sink share, h(s) the binary and Hc the content entropy of `entropy_split`, exactly:
    dH = [dh - ds · mean(Hc)] + [(1 - mean(s)) · dHc], where d is y minus x and mean their average. `total` is
    dH, `sink` the first bracket, `content` the second; each lies in [-ln(n+1) - ln 2, ln(n+1) + ln 2].

    The identity holds row by row; averages of rows do not obey it, so split first. A row without content mass
    in x or y gives NaN for both channels, a row without any mass NaN throughout. `x` and `y` (..., query,
    key) broadcast against each other; rows and masks are those of `sink_share`, and InputError is raised as
    there.
    """
    pair = check_row_pair(x, y, visible)
    sinks = check_sinks(sink_mask, pair[0])
    before, after = (_split_entropy(rows, sinks) for rows in pair)
    shares = [np.where(sinks, rows, 0).sum(axis=-1) for rows in pair]
    return _change(before, after, shares[1] - shares[0], (2 - shares[0] - shares[1]) / 2)


def entropy_change_from_scores(x: Any, y: Any, sink_mask: Any, visible: Any = None) -> EntropyChange:
    """`entropy_change` of the softmax of scores, in log space: each (..., query), in nats.

    Entropies and shares are those of `entropy_split_from_scores`, so that content far below its sink has a
    change of its own, though its channel is next to nothing. Ranges and the identity are those of
    `entropy_change`. A row that sees no content in x or y gives NaN for both channels, one that sees nothing
    is NaN throughout.

    `x` and `y` (..., query, key) broadcast against each other and are finite at visible keys; masks are those
    of `sink_share`. Raises InputError for a visible score that is not finite, and for masks as there.
    """
    checked = [
        check_scores(scores, visible, name) for name, scores in zip("xy", broadcast_pair(x, y), strict=True)
    ]
    sinks = check_sinks(sink_mask, checked[0][0])
    (before, *of_x), (after, *of_y) = (_split_scores(logits, seen, sinks) for logits, seen in checked)
    (share_x, rest_x), (share_y, rest_y) = of_x, of_y
    # The smaller of the two moves by a difference that is not one of rounded numbers near one.
    moved = np.where(share_x + share_y < 1, share_y - share_x, rest_x - rest_y)
    return _change(before, after, moved, (rest_x + rest_y) / 2)


def _change(before: EntropySplit, after: EntropySplit, moved: Array, rest: Array) -> EntropyChange:
    """The change of a split; `moved` is that of the sink share, `rest` the mean content mass."""
    content = rest * (after.content - before.content)
    sink = after.binary - before.binary - moved * (before.content + after.content) / 2
    return EntropyChange(after.total - before.total, sink, content)


def _split_scores(
    logits: Array, seen: NDArray[np.bool_], sinks: NDArray[np.bool_]
) -> tuple[EntropySplit, Array, Array]:
    """`entropy_split_from_scores` of checked scores, the sink share and the content mass."""
    content, mass = _softmax(logits, seen & ~sinks)
    _, sink_mass = _softmax(logits, seen & sinks)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = np.exp(mass - sink_mass)  # of the content; 0 or infinite where only one of the two is seen
        share, rest = 1 / (1 + odds), 1 / (1 + np.exp(sink_mass - mass))
        binary = _surprise(share, rest) + _surprise(rest, share)
        inner = _entropy(content)
    total = binary + np.where(rest == 0, 0, rest * inner)
    return EntropySplit(total, binary, inner), share, rest


def _split_entropy(weights: Array, sinks: NDArray[np.bool_]) -> EntropySplit:
    """`entropy_split` of closed rows."""
    on_sink = np.where(sinks, weights, 0).sum(axis=-1)
    kept = np.where(sinks, 0, weights)
    mass = kept.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share, rest = on_sink / (on_sink + mass), mass / (on_sink + mass)
        binary = _surprise(share, rest) + _surprise(rest, share)
        content = _entropy(kept / mass[..., None])
    total = binary + np.where(mass == 0, 0, rest * content)
    return EntropySplit(total, binary, content)


def _softmax(logits: Array, seen: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Softmax (..., query, key) and logsumexp (..., query) of the `seen` logits; NaN and -inf for none."""
    kept = np.where(seen, logits, -np.inf)
    top = kept.max(axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isneginf(top), 0, top)
    powers = np.exp(kept - top)
    whole = powers.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return powers / whole, (top + np.log(whole))[..., 0]


def _entropy(parts: Array) -> Array:
    """-sum p ln p over the last axis, to full relative accuracy where one part is nearly everything."""
    if not parts.shape[-1]:
        return np.full(parts.shape[:-1], np.nan, parts.dtype)
    top = parts.argmax(axis=-1)[..., None]
    others = parts.copy()
    np.put_along_axis(others, top, 0, axis=-1)
    largest = np.take_along_axis(parts, top, axis=-1)[..., 0]
    # The largest part's own share is taken from what it leaves over: ln(1 - q) of a rounded 1 - q loses q.
    return _surprise(others, 1 - others).sum(axis=-1) + _surprise(largest, others.sum(axis=-1))


def _surprise(part: Array, rest: Array) -> Array:
    """-part ln part, where part + rest = 1; above one half the logarithm is taken from `rest`."""
    logarithm = np.where(part > 0.5, np.log1p(-rest), np.log(part))
    return np.where(part == 0, 0, -part * logarithm)
