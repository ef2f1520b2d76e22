"""Rows and scores of several heads, and pairs of distance matrices, as Hypothesis draws them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from row_strategies import DTYPES, FORMS, in_form

from oracle import CONVENTIONS, METRICS
from validation.mutants.distance_subjects import HeadTexts, head_texts

ALL = [(m, c) for m in METRICS for c in CONVENTIONS if (m, c) != ("aitchison_sink", "drop")]


class RowCase(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    sink_mask: np.ndarray
    visible: np.ndarray | None


@st.composite
def row_cases(draw: st.DrawFn, least: int = 1) -> RowCase:
    """Three heads' rows of every float dtype and memory form; with `least` 0 some parts and rows are zero."""
    keys = draw(st.integers(1, 9))
    shape = (*draw(array_shapes(min_dims=1, max_dims=2, max_side=3)), keys)
    visible = draw(st.none() | arrays(np.bool_, (keys,)))
    dtype, form = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(FORMS))
    found = []
    for _ in range(3):
        counts = draw(arrays(np.int64, shape, elements=st.integers(least, 20))).astype(np.float64)
        seen = np.where(True if visible is None else visible, counts, 0).sum(axis=-1, keepdims=True)
        found.append(
            in_form(np.divide(counts, seen, out=np.zeros(shape), where=seen > 0).astype(dtype), form)
        )
    return RowCase(*found, draw(arrays(np.bool_, (keys,))), visible)


@st.composite
def score_cases(draw: st.DrawFn) -> RowCase:
    """Three heads' scores, with minus infinity where nothing is visible."""
    keys = draw(st.integers(1, 9))
    shape = (*draw(array_shapes(min_dims=1, max_dims=2, max_side=3)), keys)
    visible = draw(st.none() | arrays(np.bool_, (keys,)))
    eighths = st.integers(-80, 80).map(lambda n: n / 8)
    masked = np.ones(keys, bool) if visible is None else visible
    found = [np.where(masked, draw(arrays(np.float64, shape, elements=eighths)), -np.inf) for _ in range(3)]
    return RowCase(*found, draw(arrays(np.bool_, (keys,))), visible)


@st.composite
def matrix_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Any, float]:
    """Two matrices (head, head) of few whole numbers, some NaN; groups and a margin."""
    heads = draw(st.integers(0, 7))
    entries = st.one_of(st.integers(0, 4).map(float), st.just(float("nan")))
    pair = [draw(arrays(np.float64, (heads, heads), elements=entries)) for _ in range(2)]
    for matrix in pair:
        matrix[np.diag_indices(heads)] = 0
    groups = draw(st.none() | arrays(np.int64, (heads,), elements=st.integers(0, 2)))
    return pair[0], pair[1], groups, draw(st.sampled_from([0.0, 0.1, 0.5]))


def texts_of_heads(metric: str) -> HeadTexts:
    """Texts with a row without content mass; not for the Aitchison distances, which refuse its zeros."""
    texts = head_texts(5)
    if metric.startswith("aitchison"):
        for attention, seen in zip(texts.rows, texts.visible, strict=True):
            attention[1, 2, 4] = seen[4] / seen[4].sum()
    return texts
