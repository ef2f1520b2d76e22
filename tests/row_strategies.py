"""Attention rows as Hypothesis draws them: every float dtype and memory form, masks, odd rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

DTYPES = (np.float16, np.float32, np.float64, np.longdouble)
FORMS = ("plain", "read-only", "strided", "column-major")


class Case(NamedTuple):
    attention: np.ndarray
    sink_mask: np.ndarray
    norm: np.ndarray
    visible: np.ndarray | None


def in_form(array: np.ndarray, form: str) -> np.ndarray:
    if form == "column-major":
        return np.asfortranarray(array)
    if form == "strided":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    array = array.copy()
    array.flags.writeable = form != "read-only"
    return array


@st.composite
def cases(draw: st.DrawFn, smallest: int = 0, least: int = 0, dtypes: Sequence[Any] = DTYPES) -> Case:
    """Rows of every float dtype and memory form, with zeros, empty rows, masks and norms of zero."""
    shape = draw(array_shapes(min_dims=2, max_dims=4, min_side=smallest, max_side=4))
    keys = draw(st.integers(smallest, 9))
    shape = (*shape[:-1], keys)
    dtype, form = draw(st.sampled_from(dtypes)), draw(st.sampled_from(FORMS))
    counts = draw(arrays(np.int64, shape, elements=st.integers(least, 20))).astype(np.float64)
    masks = st.none() | st.sampled_from([(keys,), shape[-2:]]).flatmap(lambda s: arrays(np.bool_, s))
    visible = draw(masks)
    seen = np.broadcast_to(True if visible is None else visible, shape)
    total = np.where(seen, counts, 0).sum(axis=-1, keepdims=True)
    attention = np.divide(counts, total, out=np.zeros(shape), where=total > 0)
    norm = draw(arrays(np.int64, (*shape[:-2], keys), elements=st.integers(least, 60))) / 7
    sinks = draw(arrays(np.bool_, (keys,)))
    return Case(in_form(attention.astype(dtype), form), sinks, in_form(norm.astype(dtype), form), visible)
