"""The checks of queries and keys that both layers make, worded once."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, as_flag, as_number, at_least_float64, check_norm, first_place, reject

__all__ = [
    "check_finite",
    "check_head_norm",
    "check_query_key",
    "check_score_options",
    "of_key_heads",
    "reject_scores",
]

_WITHOUT = {"scale": "1/sqrt(d_head)", "softcap": "none"}
_FARTHEST = 1 << 62  # keys; a longer window hides nothing either, and sums with positions stay 64 bits


def check_query_key(query: Any, key: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Queries (..., head, query, d_head) and keys (..., kv_head, key, d_head) in their own dtypes.

    `head` is a multiple of `kv_head`, and all other axes but query and key are the same. What stands in them
    is for `check_finite`.
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
    return arrays


def check_finite(argument: str, vectors: NDArray[Any], seen: NDArray[np.bool_]) -> None:
    """Refuse numbers that are not finite in vectors (..., head, token, d_head) where they are `seen`.

    `seen` (..., head or 1, token) is of query heads, and a key head is seen if one of its group sees it.
    """
    wrong = ~np.isfinite(vectors)
    if not wrong.any():
        return
    wrong &= of_key_heads(seen, vectors.shape[-3])[..., None]
    if wrong.any():
        place = first_place(wrong)
        reject(
            argument,
            expected="finite numbers",
            found=f"{vectors[place]} at index {place}",
            todo="Pass what the rotary step gives, before any masking.",
        )


def of_key_heads(seen: NDArray[np.bool_], n_key_heads: int) -> NDArray[np.bool_]:
    """What any query head of a group sees: (..., head or 1, token) to (..., kv_head or 1, token)."""
    if seen.ndim < 2 or seen.shape[-2] in (1, n_key_heads):
        return seen
    grouped = seen.reshape(*seen.shape[:-2], n_key_heads, seen.shape[-2] // n_key_heads, seen.shape[-1])
    return np.asarray(grouped.any(axis=-2))


def check_head_norm(norm: Any, shape: tuple[int, ...], n_key_heads: int, visible: Any = None) -> NDArray[Any]:
    """Norms as in `check_norm` for rows `shape` (..., head, query, key), or one for each key/value head.

    Those of key/value heads (..., kv_head, key) come back repeated as [0, 0, 1, 1], one for each head.
    """
    given = at_least_float64("norm", norm)
    if given.ndim > 1 and given.shape[-2] == n_key_heads:
        given = np.repeat(given, shape[-3] // n_key_heads, axis=-2)
    return check_norm(given, shape, visible)


def check_score_options(
    scale: Any, causal: Any, window: Any, softcap: Any, d_head: int
) -> tuple[float, bool, int | None, float | None]:
    """Scale (1/sqrt(d_head) for None), causal, window and softcap, refused unless positive and finite."""
    numbers: dict[str, Any] = {"scale": float(d_head) ** -0.5, "softcap": None}
    for argument, value in (("scale", scale), ("softcap", softcap)):
        if value is not None:
            expected, todo = "a finite number above zero", f"Leave it out for {_WITHOUT[argument]}."
            numbers[argument] = number = as_number(argument, value, expected=expected, todo=todo)
            if not 0 < number < np.inf:
                reject(argument, expected=expected, found=f"{value}", todo=todo)
    if window is not None:
        expected = "a whole number of keys, at least one"
        todo = "A query's own key counts; leave it out for no window."
        width = as_number("window", window, expected=expected, todo=todo)
        if not (width >= 1 and width % 1 == 0):
            reject("window", expected=expected, found=f"{window}", todo=todo)
        window = int(min(width, _FARTHEST))
    return numbers["scale"], as_flag("causal", causal), window, numbers["softcap"]


def reject_scores() -> NoReturn:
    """Refuse queries and keys whose products overflow."""
    reject(
        "query",
        expected="queries and keys with finite products",
        found="a score that is not finite",
        todo="Divide them by a common factor and multiply scale by it.",
    )
