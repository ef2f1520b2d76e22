"""Inputs of the benchmark, drawn from a seed: rows with a sink, queries and keys, one layer's values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pairs", "Rows", "draw_pairs", "draw_rows"]

Array = NDArray[Any]

_SPREAD, _PULL = 1.5, 5.0  # of scores, and of the sink's: about half of a row's weight at 512 keys


class Rows(NamedTuple):
    """Attention rows float32 (..., query, key), the sink mask (key,), norms float64 (..., key)."""

    attention: Array
    sink_mask: NDArray[np.bool_]
    norms: dict[str, Array]


class Pairs(NamedTuple):
    """Queries and keys float32 (head, token, d_head), norms float64 (head, key), the sink mask (key,)."""

    query: Array
    key: Array
    norm: Array
    sink_mask: NDArray[np.bool_]


def draw_rows(shape: tuple[int, ...], seed: int = 0) -> Rows:
    """Softmax rows of normal scores; first and last key are sinks of small norms, as in BERT."""
    rng = np.random.default_rng(seed)
    sinks = _ends(shape[-1])
    attention = rng.standard_normal(shape, dtype=np.float32)
    attention *= np.float32(_SPREAD)
    attention[..., sinks] += np.float32(_PULL)
    np.exp(attention, out=attention)
    for place in np.ndindex(*shape[:-2]):  # a matrix at a time: no second array of this size
        attention[place] /= attention[place].sum(-1, keepdims=True)
    norms = {}
    for name in ("value_norm", "transformed_norm"):
        norm = rng.uniform(0.5, 2, (*shape[:-2], shape[-1]))
        norm[..., sinks] *= 0.2
        norms[name] = norm
    return Rows(attention, sinks, norms)


def draw_pairs(n_heads: int, n_tokens: int, d_head: int, first_only: bool = False, seed: int = 0) -> Pairs:
    """Queries and keys whose scores have a spread near that of `draw_rows`; every query leans to the sink.

    `first_only` makes the first token the one sink, as in causal models.
    """
    rng = np.random.default_rng(seed)
    sinks = np.arange(n_tokens) == 0 if first_only else _ends(n_tokens)
    query, key = (rng.standard_normal((n_heads, n_tokens, d_head), dtype=np.float32) for _ in range(2))
    query *= np.float32(_SPREAD)
    query[..., 0] = np.abs(query[..., 0]) + 1
    key[..., 0][:, sinks] = 2 * np.sqrt(d_head)  # a score about 2 abs(q_0) higher
    norm = rng.uniform(0.5, 2, (n_heads, n_tokens))
    norm[:, sinks] *= 0.2
    return Pairs(query, key, norm, sinks)


def _ends(count: int) -> NDArray[np.bool_]:
    places = np.arange(count)
    return (places == 0) | (places == count - 1)
