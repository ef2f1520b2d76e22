"""Sink shares from queries and keys; here the rows are stored, in bulk they never exist."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._query_key_checks import (
    check_finite,
    check_head_norm,
    check_query_key,
    check_score_options,
    reject_scores,
)
from oracle.measures import sink_share
from oracle.ops import softmax
from oracle.rows import check_visible

__all__ = ["sink_share_from_query_key"]

Array = NDArray[Any]


def sink_share_from_query_key(
    query: Any,
    key: Any,
    norm: Any,
    sink_mask: Any,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    visible: Any = None,
) -> Array:
    """Sink share of the rows softmax(scale · q·k): (..., head, query), float64, in [0, 1], no unit.

    `query` is (..., head, query, d_head), `key` (..., kv_head, key, d_head) with head a multiple of kv_head:
    query heads in a row share a key head, [0, 0, 1, 1]. `norm` is None, (..., head, key) or (..., kv_head,
    key). `scale` is 1/sqrt(d_head) by default (Vaswani et al. 2017, arXiv 1706.03762, equation 1); `softcap`
    c turns a scaled score x into c tanh(x/c) before any masking (Gemma 2, arXiv 2408.00118, section 2).

    `causal` hides later keys, with the last query standing at the last key; `window` hides keys further back
    than that many, its own included; `visible` (a mask that broadcasts against (..., head, query, key), or a
    KeyRange) hides more. A query that sees nothing gives NaN, rows otherwise as in `sink_share`. What no row
    needs is not read: the keys that no query sees, the queries that see no key, the scores of hidden pairs.
    Raises InputError for other shapes, for numbers and scores that are not finite, and as `sink_share` does.
    """
    queries, keys = check_query_key(query, key)
    scale, causal, window, softcap = check_score_options(scale, causal, window, softcap, queries.shape[-1])
    (*batch, n_heads, n_queries, _), (n_key_heads, n_keys) = queries.shape, keys.shape[-3:-1]
    shape = (*batch, n_heads, n_queries, n_keys)
    seen = _placed(n_queries, n_keys, causal, window)
    if visible is not None:
        seen = seen & check_visible(visible, np.broadcast_to(0.0, shape))
    for argument, array, axis in (("query", queries, -1), ("key", keys, -2)):
        check_finite(argument, array, np.atleast_2d(seen.any(axis=axis)))
    wide = np.result_type(queries, keys, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        grouped = np.repeat(keys.astype(wide), n_heads // n_key_heads, axis=-3)
        scores = queries.astype(wide) @ grouped.swapaxes(-1, -2) * scale  # (..., head, query, key)
        if not (np.isfinite(scores) | ~seen).all():
            reject_scores()
        if softcap is not None:
            scores = softcap * np.tanh(scores / softcap)
        rows = softmax(np.where(seen, scores, -np.inf))  # scores may be farther apart than the largest number
    norms = None if norm is None else check_head_norm(norm, scores.shape, n_key_heads, seen)
    return sink_share(rows, sink_mask, norms, seen)


def _placed(n_queries: int, n_keys: int, causal: bool, window: int | None) -> NDArray[np.bool_]:
    """What position alone lets a query see: (query, key); the last query stands at the last key."""
    ahead = np.arange(n_keys) - (np.arange(n_queries)[:, None] + n_keys - n_queries)
    seen = np.ones(ahead.shape, dtype=bool)
    if causal:
        seen &= ahead <= 0
    if window is not None:
        seen &= ahead > -window
    return seen
