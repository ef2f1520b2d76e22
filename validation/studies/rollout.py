"""Attention rollout, and how flat its rows are.

Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", arXiv 2005.00928: through a layer a
token keeps half of itself (the residual stream) and takes half from its row, averaged over the heads; layers
follow each other as a product. A blog experiment reports that such rows are nearly uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import Model, Trace
from oracle._checks import reject
from oracle.inputs import read_tokens
from validation.headline import length_words
from validation.progress import Progress, silent
from validation.report.document import Column, Note, Part, Table
from validation.table import content_queries

__all__ = ["attention_rollout", "normalised_entropy", "run"]

Array = NDArray[Any]

_COLUMNS = (
    Column("layers", "layers"),
    Column("rows", "rows", ",d"),
    Column("least", "least", ".3f"),
    Column("median", "median", ".3f"),
    Column("most", "most", ".3f"),
)


def attention_rollout(attention: Array) -> Array:
    """What each query has taken from each token after each layer, (layer, query, key); rows sum to one.

    `attention` is (layer, head, query, key) of one text, queries and keys being the same tokens. Entry l
    is A_l ... A_0 with A = (mean over the heads + identity) / 2, in float64. InputError for another shape.
    """
    if attention.ndim != 4 or attention.shape[-1] != attention.shape[-2]:
        reject(
            "attention",
            expected="(layer, head, query, key) with as many queries as keys",
            found=f"shape {attention.shape}",
            todo="Give the rows of one whole text.",
        )
    rolled = np.empty((len(attention), *attention.shape[2:]))
    before = np.eye(attention.shape[-1])
    for layer, heads in enumerate(attention):
        mixed = (np.mean(heads, axis=0, dtype=np.float64) + np.eye(len(before))) / 2
        before = rolled[layer] = mixed @ before
    return rolled


def normalised_entropy(rows: Array, visible: NDArray[np.bool_]) -> Array:
    """Entropy of rows over ln n, n the visible keys of a row: (..., query), in [0, 1], NaN where n is one.

    `rows` (..., query, key), `visible` (query, key). 1 is a uniform row.
    """
    nobody = np.zeros(rows.shape[-1], bool)
    keys = visible.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(keys > 1, oracle.entropy_split(rows, nobody, visible).total / np.log(keys), np.nan)


def run(
    model: Model, texts: Sequence[str], progress: Progress = silent, truncate: bool = False
) -> tuple[Part, ...]:
    """The normalised entropy of rollout rows: a table by how many layers are gone through.

    Content queries, every visible key a part, the sink among them. A model whose layers see different keys is
    said to have no rollout here. Texts without tokens are left out; InputError for a text that is too long.
    """
    entropies: list[Array] = []  # of each text, (layer, query)
    lengths: list[int] = []
    for index, text in enumerate(texts):
        progress("rollout", index, len(texts))
        if read_tokens(model, text, truncate).empty:
            continue
        trace = oracle.forward(model, text, keep=("attention",), truncate=truncate)
        if trace.visible.ndim != 2:
            return (Note("rollout", "Attention rollout: none, the layers see different keys."),)
        found = _of_text(trace)
        if found.shape[1]:
            entropies.append(found)
            lengths.append(int(trace.mask.sum()))
    progress("rollout", len(texts), len(texts))
    if not entropies:
        return (Note("rollout", "Attention rollout: no row, no text has a content query that counts."),)
    pooled = np.concatenate(entropies, axis=1)
    rows = tuple(_cells(layer, found) for layer, found in enumerate(pooled))
    notes = (
        "rollout: product over the layers of (mean row of the heads + identity) / 2; Abnar and Zuidema 2020",
        "entropy of a row over ln of the keys it sees, sink included: 1 is uniform; content queries",
    )
    title = f"Normalised entropy of attention rollout rows, {length_words(sorted(set(lengths)))}"
    return (Table("rollout", title, _COLUMNS, rows, notes),)


def _of_text(trace: Trace) -> Array:
    queries, _ = content_queries(trace.sink_mask, trace.visible)
    rolled = attention_rollout(trace.attention)
    return normalised_entropy(rolled[:, queries], trace.visible[queries])


def _cells(layer: int, values: Array) -> tuple[Any, ...]:
    known = values[~np.isnan(values)]
    figures = (known.min(), np.median(known), known.max()) if len(known) else (np.nan,) * 3
    return ("0" if layer == 0 else f"0-{layer}", len(known), *map(float, figures))
