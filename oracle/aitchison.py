"""The Aitchison distance of two rows and its orthogonal split, from weights and from scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._distance_checks import broadcast_pair
from oracle._divergences import log_ratio
from oracle._results import AitchisonSplit
from oracle.rows import check_row_pair, check_scores, check_sinks
from oracle.zeros import Parts, handle_zeros, keep_parts

__all__ = ["aitchison_split", "aitchison_split_from_scores", "split_parts", "split_scores"]

Array = NDArray[Any]


def aitchison_split(
    x: Any, y: Any, sink_mask: Any, visible: Any = None, zeros: str = "refuse", delta: float | None = None
) -> AitchisonSplit:
    """Squared Aitchison distance of rows over n+1 parts, split into sink and content: each (..., query).

    total = ‖clr x - clr y‖² over the n content keys and the sink set as one part (Aitchison 1983, section 5);
    content is the same over the content keys alone, and sink = n/(n+1) · (ln(s/g(c)) - ln(s'/g(c')))², with s
    the sink weight and g(c) the geometric mean of the content weights: an orthogonal split, total = sink +
    content (Egozcue and Pawlowsky-Glahn 2005, section 4). No unit, in [0, infinity). The sink term is a
    log-ratio: rows with one and the same sink share can have one.

    `zeros` says what becomes of exact zeros among visible keys: "refuse" raises InputError with their count
    and the place of the first; "common-support" leaves the parts that are zero in either row out of that
    pair; "replace" is `replace_zeros` with `delta`. A row that sees no sink has sink 0 and total = content. A
    row without content mass is NaN throughout, whatever `zeros` says: a replacement would make up all of its
    content. `x` and `y` (..., query, key) broadcast against each other; rows and masks are those of
    `sink_share`, and InputError is raised as there.
    """
    parts = [
        handle_zeros(keep_parts(rows, sink_mask, visible), name, zeros, delta)
        for name, rows in zip("xy", check_row_pair(x, y, visible), strict=True)
    ]
    return split_parts(*parts)


def aitchison_split_from_scores(x: Any, y: Any, sink_mask: Any, visible: Any = None) -> AitchisonSplit:
    """`aitchison_split` of the softmax of scores, without an exp of a row: each (..., query).

    The log-ratio of two softmax rows is the difference of their scores up to a constant that centring
    removes. Several sinks are one part, whose score is the logsumexp of the visible sink scores. No zero can
    arise, so that only a row that sees no content is NaN; a row that sees no sink has sink 0 and total =
    content.

    `x` and `y` (..., query, key) broadcast against each other and are finite at visible keys; masks are those
    of `sink_share`. Raises InputError for a visible score that is not finite, and for masks as there.
    """
    (first, seen), (second, _) = (
        check_scores(scores, visible, name) for name, scores in zip("xy", broadcast_pair(x, y), strict=True)
    )
    return split_scores(first, second, check_sinks(sink_mask, first), seen)


def split_parts(x: Parts, y: Parts) -> AitchisonSplit:
    """The split over the parts that are present and positive in both rows: each (..., query)."""
    shared = x.present & (x.weights > 0) & (y.weights > 0)
    ratios = log_ratio(np.where(shared, x.weights, 1), np.where(shared, y.weights, 1))
    return _split(ratios, shared)


def split_scores(x: Array, y: Array, sinks: NDArray[np.bool_], seen: NDArray[np.bool_]) -> AitchisonSplit:
    """The split of checked scores that broadcast, over the keys that are `seen`: each (..., query)."""
    on_sink, content = seen & sinks, seen & ~sinks
    with np.errstate(all="ignore"):
        ratios = np.concatenate([_sink_ratio(x, y, on_sink)[..., None], np.where(content, x - y, 0)], axis=-1)
        shared = np.concatenate([on_sink.any(axis=-1, keepdims=True), content], axis=-1)
        return _split(ratios, np.broadcast_to(shared, ratios.shape))


def _split(ratios: Array, shared: NDArray[np.bool_]) -> AitchisonSplit:
    """The split from log-ratios (..., query, part), the sink first; they are 0 where a part is not shared."""
    has_sink, n_content = shared[..., 0], shared[..., 1:].sum(axis=-1)
    content_sum = ratios[..., 1:].sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = content_sum / n_content
        centre = (content_sum + ratios[..., 0]) / (n_content + 1)
    total, content = (
        (np.where(there, offsets, 0) ** 2).sum(axis=-1)
        for there, offsets in (
            (shared, ratios - centre[..., None]),
            (shared[..., 1:], ratios[..., 1:] - mean[..., None]),
        )
    )
    total = np.where(has_sink, total, content)  # n parts, not n+1
    sink = np.where(has_sink, (ratios[..., 0] - mean) ** 2 * n_content / (n_content + 1), 0)
    return AitchisonSplit(*(np.where(n_content == 0, np.nan, part) for part in (total, sink, content)))


def _sink_ratio(x: Array, y: Array, sinks: NDArray[np.bool_]) -> Array:
    """logsumexp(x) - logsumexp(y) over the sinks, (..., query); 0 where there is none.

    With m the mean and h half the difference of two scores, and w = exp(m), it is
    2 artanh(sum w sinh h / sum w cosh h), which keeps small differences; far apart it is taken as it stands.
    """
    half = np.where(sinks, (x - y) / 2, 0)
    middle = np.where(sinks, (x + y) / 2, -np.inf)
    weights = np.exp(middle - _top(middle))
    near = np.all(np.abs(half) <= 1, axis=-1, keepdims=True)
    small = np.where(near, half, 0)
    t = (weights * np.sinh(small)).sum(axis=-1) / np.maximum((weights * np.cosh(small)).sum(axis=-1), 1)
    return np.where(near[..., 0], 2 * np.arctanh(t), _logsumexp(x, sinks) - _logsumexp(y, sinks))


def _logsumexp(scores: Array, sinks: NDArray[np.bool_]) -> Array:
    kept = np.where(sinks, scores, -np.inf)
    top = _top(kept)
    return (top + np.log(np.exp(kept - top).sum(axis=-1, keepdims=True)))[..., 0]


def _top(scores: Array) -> Array:
    """The largest score of each row, and 0 where all are minus infinity: (..., query, 1)."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    return np.where(np.isneginf(top), 0, top)
