"""The measures written out from their definitions as plain loops: slow on purpose, and independent.

Nothing here calls the code that it judges. Sums run in float64, or in longdouble for longdouble input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "head_summed_norm",
    "merged_words",
    "opened_row",
    "projected",
    "sink_share_and_ratio",
    "transformed",
    "value_norm_ratio",
    "vector_norm",
    "widest",
]

Array = NDArray[Any]


def widest(*arrays: Any) -> np.dtype[Any]:
    """Longdouble if any of the arrays is, float64 otherwise."""
    wide = any(np.asarray(array).dtype == np.longdouble for array in arrays if array is not None)
    return np.dtype(np.longdouble if wide else np.float64)


def sink_share_and_ratio(attention: Any, sink_mask: Any, norm: Any, visible: Any) -> tuple[Array, Array]:
    """The share s and the odds ratio r of every row, each (..., query), from DEFINITIONS "Weighted rows".

    `norm` and `visible` may be None. A ratio without sink or content mass is NaN, a share without any mass
    too; content of zero norm gives infinity.
    """
    kind = widest(attention, norm)
    rows = np.asarray(attention).astype(kind)
    norms = np.ones(rows.shape[-1:], kind) if norm is None else np.asarray(norm).astype(kind)
    norms = np.broadcast_to(norms, (*rows.shape[:-2], rows.shape[-1]))
    sinks = np.broadcast_to(np.asarray(sink_mask, dtype=bool), rows.shape)
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), rows.shape)
    share, ratio = np.empty(rows.shape[:-1], kind), np.empty(rows.shape[:-1], kind)
    for place in np.ndindex(*rows.shape[:-1]):
        mass, weight = [kind.type(0)] * 2, [kind.type(0)] * 2  # content, then sink
        for key in range(rows.shape[-1]):
            part = int(sinks[place][key])
            if seen[place][key]:
                mass[part] = mass[part] + rows[place][key]
                weight[part] = weight[part] + rows[place][key] * norms[place[:-1]][key]
        share[place] = _over(weight[1], weight[0] + weight[1])
        ratio[place] = _over(_over(weight[1], mass[1]), _over(weight[0], mass[0]))
    return share, ratio


def value_norm_ratio(norm: Any, sink_mask: Any, visible: Any) -> Array:
    """‖v_S‖ over the mean of ‖v_C‖ for each visible sink key: (..., sink). `visible` is (key,) or None."""
    norms = np.asarray(norm).astype(widest(norm))
    seen = [True] * norms.shape[-1] if visible is None else np.asarray(visible).tolist()
    sinks = [key for key, chosen in enumerate(np.asarray(sink_mask).tolist()) if chosen and seen[key]]
    content = [key for key, chosen in enumerate(np.asarray(sink_mask).tolist()) if not chosen and seen[key]]
    ratios = np.empty((*norms.shape[:-1], len(sinks)), norms.dtype)
    for place in np.ndindex(*norms.shape[:-1]):
        total = _total(norms[place][key] for key in content)
        mean = _over(total, norms.dtype.type(len(content)))
        for column, key in enumerate(sinks):
            ratios[(*place, column)] = _over(norms[place][key], mean)
    return ratios


def projected(x: Array, weight: Array, bias: Array, head: int, d_head: int) -> Array:
    """The values of one head, x W_V + b_V in its own columns: (token, d_model) to (token, d_head)."""
    columns = range(head * d_head, (head + 1) * d_head)
    return np.array(
        [[_total(row * weight[:, column]) + bias[column] for column in columns] for row in x]
    ).reshape(len(x), d_head)


def transformed(values: Array, output_weight: Array) -> Array:
    """f_j = sum_d v_j[d] W_O[h * d_head + d] of each head h: (head, key, d_head) to (head, key, d_model)."""
    heads, keys, d_head = values.shape
    kind = widest(values, output_weight)
    vectors = np.zeros((heads, keys, output_weight.shape[1]), kind)
    for head, key, column in np.ndindex(heads, keys, d_head):
        row = output_weight[head * d_head + column].astype(kind)
        vectors[head, key] = vectors[head, key] + values[head, key, column].astype(kind) * row
    return vectors


def vector_norm(vector: Iterable[Any]) -> Any:
    """Euclidean norm of one vector."""
    return np.sqrt(_total(entry * entry for entry in vector))


def head_summed_norm(attention: Array, vectors: Array) -> Array:
    """‖sum_h a_h f_h‖ for every query and key, (query, key), by building each sum of vectors.

    `attention` is (head, query, key), `vectors` the transformed vectors f (head, key, d_model).
    """
    kind = widest(attention, vectors)
    heads, queries, keys = attention.shape
    result = np.zeros((queries, keys), kind)
    for query in range(queries):
        for key in range(keys):
            total = np.zeros(vectors.shape[-1], kind)
            for head in range(heads):
                total = total + attention[head, query, key].astype(kind) * vectors[head, key].astype(kind)
            result[query, key] = vector_norm(total)
    return result


def merged_words(weights: Any, groups: Sequence[Sequence[int]]) -> Array:
    """Word rows of (..., token, token) weights: summed over key pieces, averaged over query pieces."""
    pieces = np.asarray(weights).astype(widest(weights))
    merged = np.empty((*pieces.shape[:-2], len(groups), len(groups)), pieces.dtype)
    for place in np.ndindex(*merged.shape):
        from_word, to_word = groups[place[-2]], groups[place[-1]]
        total = _total(pieces[place[:-2]][query, key] for query in from_word for key in to_word)
        merged[place] = total / pieces.dtype.type(len(from_word))
    return merged


def opened_row(merged: Array, kinds: Sequence[str], word: int) -> tuple[int, int, int, Any] | None:
    """The (layer, head, key, displayed value) of a word's strongest link, None if there is no such link.

    `merged` is (layer, head, word, word), `kinds` says for each unit "word", "punctuation" or "sink".
    """
    best: tuple[int, int, int, Any] | None = None
    for layer, head in np.ndindex(*merged.shape[:2]):
        row = merged[layer, head, word]
        content = _total(weight for weight, kind in zip(row, kinds, strict=True) if kind != "sink")
        for key, kind in enumerate(kinds):
            shown = _over(row[key], content)
            if kind == "word" and key != word and not np.isnan(shown) and (best is None or shown > best[3]):
                best = layer, head, key, shown
    return best


def _total(terms: Iterable[Any]) -> Any:
    """Left-to-right sum; an empty one is zero."""
    total: Any = np.float64(0)
    for term in terms:
        total = total + term
    return total


def _over(numerator: Any, denominator: Any) -> Any:
    """A quotient where 0/0 is NaN and x/0 infinity; a NaN on either side stays NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(numerator, denominator)
