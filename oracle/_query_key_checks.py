"""The checks of queries and keys that both layers make, worded once."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, at_least_float64, check_norm, first_place, reject

__all__ = ["check_head_norm", "check_query_key", "check_score_options", "reject_scores"]


def check_query_key(query: Any, key: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Queries (..., head, query, d_head) and keys (..., kv_head, key, d_head), finite, in their own dtypes.

    `head` is a multiple of `kv_head`, and all other axes but query and key are the same.
    """
    arrays = as_array("query", query), as_array("key", key)
    shapes = arrays[0].shape, arrays[1].shape
    names = "(..., head, query, d_head)", "(..., kv_head, key, d_head)"
    for argument, array, axes in zip(("query", "key"), arrays, names, strict=True):
        if array.ndim < 3 or not array.shape[-1]:
            reject(
                argument,
                expected=f"an array {axes} with at least one d_head",
                found=f"shape {array.shape}",
                todo=f"Give a single head as {argument}[None].",
            )
    (*batch, n_heads, _, d_head), (*key_batch, n_key_heads, _, key_d_head) = shapes
    grouped = n_key_heads and n_heads % n_key_heads == 0
    if batch != key_batch or d_head != key_d_head or not grouped:
        reject(
            "key",
            expected=f"{names[1]} to go with query {shapes[0]}, head a multiple of kv_head",
            found=f"shape {shapes[1]}",
            todo="Give one key head for each query head, or for each group of them.",
        )
    for argument, array in zip(("query", "key"), arrays, strict=True):
        if not np.isfinite(array).all():
            place = first_place(~np.isfinite(array))
            reject(
                argument,
                expected="finite numbers",
                found=f"{array[place]} at index {place}",
                todo="Pass what the rotary step gives, before any masking.",
            )
    return arrays


def check_head_norm(norm: Any, shape: tuple[int, ...], n_key_heads: int, visible: Any = None) -> NDArray[Any]:
    """Norms as in `check_norm` for rows `shape` (..., head, query, key), or one for each key/value head.

    Those of key/value heads (..., kv_head, key) come back repeated as [0, 0, 1, 1], one for each head.
    """
    given = at_least_float64("norm", norm)
    if given.ndim > 1 and given.shape[-2] == n_key_heads:
        given = np.repeat(given, shape[-3] // n_key_heads, axis=-2)
    return check_norm(given, shape, visible)


def check_score_options(
    scale: float | None, window: int | None, softcap: float | None, d_head: int
) -> tuple[float, int | None, float | None]:
    """Scale (1/sqrt(d_head) for None), window and softcap, each refused unless it is positive and finite."""
    for argument, value in (("scale", scale), ("softcap", softcap)):
        if value is not None and not 0 < float(value) < np.inf:
            reject(
                argument,
                expected="a finite number above zero",
                found=f"{value}",
                todo="Leave it out for none."
                if argument == "softcap"
                else "Leave it out for 1/sqrt(d_head).",
            )
    if window is not None and (isinstance(window, bool) or int(window) != window or window < 1):
        reject(
            "window",
            expected="a whole number of keys, at least one",
            found=f"{window}",
            todo="A query's own key counts; leave it out for no window.",
        )
    return (
        float(d_head) ** -0.5 if scale is None else float(scale),
        None if window is None else int(window),
        None if softcap is None else float(softcap),
    )


def reject_scores() -> NoReturn:
    """Refuse queries and keys whose products overflow."""
    reject(
        "query",
        expected="queries and keys with finite products",
        found="a score that is not finite",
        todo="Divide them by a common factor and multiply scale by it.",
    )
