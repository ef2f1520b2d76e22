"""One attention layer: scores, masks, rows, values and what the heads write."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle.model import Layer
from oracle.ops import linear, softmax

__all__ = ["HeadOutputs", "attend", "split_heads", "transformed_gram", "transformed_vectors", "visible_keys"]

Array = NDArray[Any]


class HeadOutputs(NamedTuple):
    """Everything one layer's heads compute for one text."""

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


def attend(
    x: Array, layer: Layer, n_heads: int, visible: NDArray[np.bool_], scores: Array, attention: Array
) -> HeadOutputs:
    """Run the attention of one layer on hidden states (token, d_model).

    Writes into `scores` and `attention`, both (head, query, key). Scores are q·k / sqrt(d_head) and minus
    infinity where the key is not visible (Vaswani et al. 2017, arXiv 1706.03762, equation 1).
    """
    queries, keys, values = (
        split_heads(linear(x, part), n_heads) for part in (layer.query, layer.key, layer.value)
    )
    scaled = queries / np.sqrt(x.dtype.type(queries.shape[-1]))
    hidden = None if visible.all() else ~visible
    context = np.empty_like(x, shape=(x.shape[0], n_heads, values.shape[-1]))
    for head in range(n_heads):  # one head at a time keeps its rows in the cache from product to softmax
        np.matmul(scaled[head], keys[head].T, out=scores[head])
        if hidden is not None:
            scores[head][hidden] = -np.inf
        softmax(scores[head], out=attention[head])
        context[:, head] = attention[head] @ values[head]
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
