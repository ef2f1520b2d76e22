"""One attention layer: scores, masks, rows, values and what the heads write."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle.model import Layer
from oracle.ops import linear, rms_norm, softmax
from oracle.rotary import rotate

__all__ = [
    "HeadOutputs",
    "Scoring",
    "attend",
    "earlier_keys",
    "split_heads",
    "transformed_gram",
    "transformed_vectors",
    "visible_keys",
]

Array = NDArray[Any]


class HeadOutputs(NamedTuple):
    """Everything one layer's heads compute for one text; shared keys and values are repeated."""

    queries: Array  # (head, token, d_head)
    keys: Array  # (head, token, d_head)
    values: Array  # (head, token, d_head)
    scores: Array  # (head, query, key)
    attention: Array  # (head, query, key)
    output: Array  # (token, d_model), output bias included


def split_heads(x: Array, n_heads: int) -> Array:
    """(token, head * d_head) to (head, token, d_head), without a copy."""
    return x.reshape(x.shape[0], n_heads, x.shape[1] // n_heads).transpose(1, 0, 2)


def visible_keys(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which key each query may see, (query, key), from the mask of real tokens (token,).

    A padding query sees nothing, so that its row can never be taken for a measurement.
    """
    return mask[:, None] & mask[None, :]


def earlier_keys(mask: NDArray[np.bool_], window: int | None = None) -> NDArray[np.bool_]:
    """Keys that do not come after their query, (query, key): with `window` the nearest ones, itself included.

    The window counts real tokens of `mask` (token,), so that padding moves nothing.
    """
    behind = np.tri(len(mask), dtype=bool)
    places = np.cumsum(mask)
    return behind if window is None else behind & (places[:, None] - places < window)


class Scoring(NamedTuple):
    """How scores are made, where it is not q·k / sqrt(d_head) alone."""

    scalar: float | None = None  # in the place of d_head
    divisor: float = 1.0
    cap: float | None = None
    turns: tuple[Array, Array] | None = None  # cosines and sines of rotary positions
    norm_epsilon: float = 0.0  # of the norms of queries and keys


_PLAIN = Scoring()
_QUERIES = 128


def attend(
    x: Array,
    layer: Layer,
    n_heads: int,
    visible: NDArray[np.bool_],
    scores: Array,
    attention: Array,
    scoring: Scoring = _PLAIN,
    silenced: NDArray[np.bool_] | None = None,
) -> HeadOutputs:
    """Run the attention of one layer on hidden states (token, d_model).

    Writes into `scores` and `attention`, both (head, query, key). Scores are q·k / sqrt(d_head), unless
    `scoring` changes that, and minus infinity where the key is not visible (Vaswani et al. 2017, arXiv
    1706.03762, equation 1). A cap c makes them c tanh(score / c) before the mask. Heads share keys and values
    in order: with two key/value heads of four, heads 0 and 1 have the first.

    The output of heads that are `silenced` (head,) is zero before W_O, which equals taking their slices out
    of W_O; the output bias stays. Their scores and rows are not computed and not written.
    """
    queries, keys, values = _vectors(x, layer, n_heads, scoring)
    kind = x.dtype.type
    scaled = queries / np.sqrt(kind(queries.shape[-1] if scoring.scalar is None else scoring.scalar))
    if scoring.divisor != 1:
        scaled /= kind(scoring.divisor)
    spans = _spans(visible)
    context = np.empty_like(x, shape=(x.shape[0], n_heads, values.shape[-1]))
    for head in range(n_heads):  # one head and span at a time keeps rows in the cache from product to softmax
        if silenced is not None and silenced[head]:
            context[:, head] = 0
            continue
        for rows, seen, hidden in spans:
            made = scores[head, rows, seen]
            np.matmul(scaled[head, rows], keys[head, seen].T, out=made)
            if scoring.cap is not None:
                _cap(made, kind(scoring.cap))
            if hidden is not None:
                np.copyto(made, -np.inf, where=hidden)
            softmax(made, out=attention[head, rows, seen])
            for unseen in (slice(seen.start), slice(seen.stop, None)):
                scores[head, rows, unseen], attention[head, rows, unseen] = -np.inf, 0
            context[rows, head] = attention[head, rows, seen] @ values[head, seen]
    output = linear(context.reshape(x.shape[0], n_heads * values.shape[-1]), layer.output)
    return HeadOutputs(queries, keys, values, scores, attention, output)


def transformed_vectors(values: Array, output_weight: Array) -> Array:
    """f_j = v_j W_O of each head: values (head, key, d_head) to (head, key, d_model), float64 or wider.

    Both are widened before they are multiplied: what comes after the softmax is float64 throughout.
    `output_weight` is (head * d_head, d_model). b_V is inside `values`; b_O and LayerNorm stay outside
    (Kobayashi et al. 2020, arXiv 2004.10102, section 2).
    """
    n_heads, _, d_head = values.shape
    wide = np.result_type(values, output_weight, np.float64)
    weight = output_weight.astype(wide, copy=False).reshape(n_heads, d_head, -1)
    return values.astype(wide, copy=False) @ weight


def transformed_gram(values: Array, output_weight: Array) -> Array:
    """Inner products f_h·f_g of the transformed vectors at each key: (key, head, head), float64 or wider."""
    vectors = transformed_vectors(values, output_weight).transpose(1, 0, 2)  # (key, head, d_model)
    return vectors @ vectors.transpose(0, 2, 1)


def _vectors(x: Array, layer: Layer, n_heads: int, scoring: Scoring) -> tuple[Array, Array, Array]:
    """Queries, keys and values of every head, each (head, token, d_head): normed, turned, repeated."""
    query, key, value = (linear(x, part) for part in (layer.query, layer.key, layer.value))
    n_shared = n_heads * key.shape[-1] // query.shape[-1]
    queries = split_heads(query, n_heads)
    keys, values = split_heads(key, n_shared), split_heads(value, n_shared)
    if layer.query_norm is not None and layer.key_norm is not None:
        queries = rms_norm(queries, layer.query_norm, scoring.norm_epsilon)
        keys = rms_norm(keys, layer.key_norm, scoring.norm_epsilon)
    if scoring.turns is not None:
        queries, keys = rotate(queries, scoring.turns), rotate(keys, scoring.turns)
    if n_shared != n_heads:
        keys, values = (np.repeat(part, n_heads // n_shared, axis=0) for part in (keys, values))
    return queries, keys, values


def _spans(visible: NDArray[np.bool_]) -> list[tuple[slice, slice, NDArray[np.bool_] | None]]:
    """Neighbouring queries, the range of keys that any of them sees, and what is hidden inside it, if any.

    Keys outside the range are neither scored nor summed: half of the work where later keys are hidden.
    """
    spans = []
    for start in range(0, len(visible), _QUERIES):
        block = visible[start : start + _QUERIES]
        seen = np.flatnonzero(block.any(axis=0))
        keys = slice(seen[0], seen[-1] + 1) if len(seen) else slice(0, 0)
        hidden = ~block[:, keys]
        spans.append((slice(start, start + len(block)), keys, hidden if hidden.any() else None))
    return spans


def _cap(scores: Array, cap: Any) -> None:
    """Replace scores by cap * tanh(score / cap)."""
    scores /= cap
    np.tanh(scores, out=scores)
    scores *= cap
