"""Every input error, worded in one voice: what was expected, what was found, what to do.

The row checks of both layers stand here, as far as they compute nothing: masks, ranges and norms are read and
refused whole; what only a pass over the rows can find is refused by the functions that take the facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle._results import KeyRange

__all__ = [
    "ROW_SUM_SLACK",
    "InputError",
    "InputTypeError",
    "Unavailable",
    "as_array",
    "as_flag",
    "as_number",
    "at_least_float64",
    "check_axes",
    "check_key_range",
    "check_mask",
    "check_norm",
    "check_norm_values",
    "check_norms",
    "first_place",
    "reject",
    "reject_row_sum",
    "reject_type",
    "reject_weight",
    "row_place",
    "row_sum_slack",
    "seen_keys",
]

ROW_SUM_SLACK = 0.01

# a file forgets that two bytes were bfloat16 and one was float8
_NARROW = "Widen bfloat16 and float8 to float32, which is exact, before NumPy or a file takes them."


class InputError(ValueError):
    """The caller's input is wrong; the message is complete and needs no traceback."""


class InputTypeError(TypeError):
    """The caller's input has the wrong type; the message is complete and needs no traceback."""


class Unavailable(RuntimeError):
    """Something the call needs is not here (an extra, the network), so nothing is claimed."""


def _sentence(argument: str, expected: str, found: str, todo: str) -> str:
    return f"{argument}: expected {expected}; found {found}. {todo}"


def reject(argument: str, *, expected: str, found: str, todo: str) -> NoReturn:
    """Raise InputError about `argument`."""
    raise InputError(_sentence(argument, expected, found, todo))


def reject_type(argument: str, *, expected: str, found: str, todo: str) -> NoReturn:
    """Raise InputTypeError about `argument`."""
    raise InputTypeError(_sentence(argument, expected, found, todo))


def as_array(argument: str, value: Any) -> NDArray[Any]:
    """A NumPy view of an array, a torch tensor or nested lists of numbers; float types keep their dtype.

    torch is recognised by its methods, so that it is never imported; bfloat16 tensors arrive as float32
    (exactly), alone and in lists. Objects, strings and complex numbers raise InputTypeError, and a masked
    array InputError: its mask would be lost.
    """
    try:
        array = np.asarray(_plain(argument, value))
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        todo = _NARROW if "float8" in str(error).lower() else "Pad or split it."
        reject(argument, expected="a rectangular array of numbers", found=str(error), todo=todo)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        bare = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize <= 2
        reject_type(
            argument,
            expected="an array of real numbers",
            found=f"dtype {array.dtype}",
            todo=_NARROW if bare else "Pass a NumPy array, a torch tensor or nested lists of numbers.",
        )
    return array


def _plain(argument: str, value: Any, depth: int = 0) -> Any:
    """`value` with every torch tensor in it, at any depth of lists, as a NumPy array."""
    if isinstance(value, np.ma.MaskedArray):
        reject(
            argument,
            expected="an array without a mask of its own",
            found="a numpy masked array",
            todo="Pass its .data, and say what counts with visible=~mask.",
        )
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        return np.asarray(value.float() if "bfloat16" in str(value.dtype) else value)
    deeper = isinstance(value, (list, tuple)) and depth < 32  # NumPy refuses what nests deeper
    if deeper and not all(isinstance(item, (int, float, str, np.generic)) for item in value):
        return [_plain(argument, item, depth + 1) for item in value]
    return value


def as_number(argument: str, value: Any, *, expected: str, todo: str) -> float:
    """A single real number, from Python, NumPy or torch; anything else raises InputTypeError."""
    try:
        array = np.asarray(float(value)) if type(value) is int else as_array(argument, value)
    except (InputError, InputTypeError, OverflowError):
        array = np.empty(0, bool)
    if array.ndim or array.dtype.kind == "b":
        reject_type(argument, expected=expected, found=_shown(value), todo=todo)
    return float(array)


def as_flag(argument: str, value: Any) -> bool:
    """True or False, from Python or NumPy; anything else, 0 and 1 too, raises InputTypeError."""
    if not isinstance(value, (bool, np.bool_)):
        reject_type(argument, expected="True or False", found=_shown(value), todo="Pass one of the two.")
    return bool(value)


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", ())
    return f"an array of shape {tuple(shape)}" if shape else f"{value!r:.60}"


def at_least_float64(argument: str, value: Any) -> NDArray[Any]:
    """`value` as float64, or as longdouble when it is longdouble already; never changes its input."""
    array = as_array(argument, value)
    wide = np.longdouble if array.dtype == np.longdouble else np.float64
    return array.astype(wide, copy=False)


def row_place(index: tuple[int, ...]) -> str:
    """Words for a row's index (..., layer, head, query): "layer 0, head 3, query 7"."""
    names = ("text", "layer", "head", "query")
    known = names[len(names) - len(index) :] if len(index) <= len(names) else None
    return ", ".join(f"{n} {i}" for n, i in zip(known, index, strict=True)) if known else f"row {index}"


def _norm_place(index: tuple[int, ...]) -> str:
    """Words for the place of a norm (..., layer, head, key)."""
    names = ("text", "layer", "head", "key")
    known = names[len(names) - len(index) :] if len(index) <= len(names) else None
    if known is None:
        return f"index {index}"
    return ", ".join(f"{n} {i}" for n, i in zip(known, index, strict=True))


def first_place(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first True, in C order. There is one."""
    return tuple(int(axis) for axis in np.unravel_index(int(wrong.argmax()), wrong.shape))


def row_sum_slack(dtype: np.dtype[Any]) -> float:
    """How far from one the sum of a row that came in `dtype` may be: within ROW_SUM_SLACK, up to rounding.

    Two eps of `dtype` for the rounding of the weights, 64 of float64 for adding them up: a row that sums to
    0.99 or 1.01 and whose weights were then rounded is within.
    """
    narrow = 2.0**-7 if dtype.name == "bfloat16" else 0.0
    own = float(np.finfo(dtype).eps) if dtype.kind == "f" else narrow
    return ROW_SUM_SLACK + 2 * own + 64 * float(np.finfo(np.float64).eps)


def check_axes(argument: str, shape: tuple[int, ...]) -> None:
    """Refuse rows without a query and a key axis."""
    if len(shape) < 2:
        reject(
            argument,
            expected="an array (..., query, key)",
            found=f"shape {shape}",
            todo=f"Give a single row as {argument}[None, :].",
        )


def reject_weight(argument: str, value: float, index: tuple[int, ...], key: int, count: int) -> NoReturn:
    """Refuse the weight `value` (widened to float64) of row `index`, the first of `count` wrong ones.

    `argument` is "weights" for weights that need not sum to one; by any other name they are rows.
    """
    rows = argument != "weights"
    reject(
        argument,
        expected="finite weights of at least zero" + ("" if rows else ", or NaN in a whole row"),
        found=f"{value} at {row_place(index)}, key {key} ({count} in all)",
        todo="Pass rows after the softmax, and mark padding with visible=."
        if rows
        else "Pass weights, not scores.",
    )


def reject_row_sum(total: float, index: tuple[int, ...], count: int, argument: str = "attention") -> NoReturn:
    """Refuse the sum `total` of row `index`: of `count` rows off by more than `row_sum_slack` the worst."""
    reject(
        argument,
        expected=f"rows that sum to one within {ROW_SUM_SLACK}, or to exactly zero",
        found=f"a sum of {total:.6g} at {row_place(index)}, the worst of {count}",
        todo="Take rows in eval mode (dropout rescales them), after the softmax, over all visible keys.",
    )


def check_norm_values(norms: NDArray[Any], argument: str = "norm") -> None:
    """Refuse norms (..., key) that are negative, NaN or infinite."""
    wrong = ~(np.isfinite(norms) & (norms >= 0))
    if wrong.any():
        place = first_place(wrong)
        reject(
            argument,
            expected="finite norms of at least zero",
            found=f"{norms[place]} at {_norm_place(place)}",
            todo="Pass the Euclidean norms of the value vectors.",
        )


def seen_keys(visible: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Keys that any query of rows `shape` (..., query, key) sees: (..., key), leading axes as `visible`."""
    if isinstance(visible, KeyRange):
        start, stop = check_key_range(visible, shape)
        edges = np.zeros(shape[-1] + 1, dtype=np.int64)  # where ranges begin, less where they end
        np.add.at(edges, start, start < stop)
        np.subtract.at(edges, stop, start < stop)
        return np.cumsum(edges[:-1]) > 0
    mask = check_mask("visible", visible, shape)
    return np.any(mask, axis=-2) if mask.ndim > 1 else mask & (shape[-2] > 0)


def check_norm(
    norm: Any, shape: tuple[int, ...], visible: Any = None, argument: str = "norm"
) -> NDArray[Any]:
    """Norms (..., key) as float64 or longdouble: finite, not negative, one for each key of rows `shape`.

    A norm that stands only at keys which no query sees comes back as zero, whatever it was. `argument` is
    what an error calls them.
    """
    norms = at_least_float64(argument, norm)
    fits = norms.ndim and norms.shape[-1] == shape[-1]
    try:
        np.broadcast_shapes(norms.shape[:-1], shape[:-2])
    except ValueError:
        fits = False
    if not fits:
        vectors = norms.ndim > 1 and norms.shape[-2] == shape[-1]
        reject(
            argument,
            expected=f"(..., key) to go with attention {shape}",
            found=f"shape {norms.shape}" + (", which look like vectors (..., key, d)" if vectors else ""),
            todo="Take their norms: np.linalg.norm(vectors, axis=-1)."
            if vectors
            else "Give one norm for each key of each head, such as trace.value_norm.",
        )
    if visible is not None:
        seen = seen_keys(visible, shape)
        for _ in range(seen.ndim - norms.ndim):  # a norm for several matrices counts if one of them sees it
            seen = np.asarray(seen.any(axis=0))
        axes = tuple(a for a in range(-seen.ndim, -1) if norms.shape[a] == 1)
        norms = np.where(seen.any(axis=axes, keepdims=True), norms, 0)
    check_norm_values(norms, argument)
    return norms


def check_norms(
    norms: Mapping[str, Any] | None, shape: tuple[int, ...], visible: Any = None
) -> dict[str, NDArray[Any]]:
    """Norms by name, each as in `check_norm`; "attention" is the name of the rows without a norm."""
    if norms is not None and not isinstance(norms, Mapping):
        reject_type(
            "norms",
            expected="a mapping from names to norms, or None",
            found=type(norms).__name__,
            todo="Name them, as in {'value_norm': norms}.",
        )
    named = dict(norms or {})
    if "attention" in named:
        reject(
            "norms",
            expected="names other than attention, which is the weighting without a norm",
            found="a norm of that name",
            todo="Call it value_norm or transformed_norm.",
        )
    return {name: check_norm(norm, shape, visible, str(name)) for name, norm in named.items()}


def check_mask(argument: str, mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """`mask` as booleans that broadcast against rows of `shape` (..., query, key), whole along the keys."""
    array = as_array(argument, mask)
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        found = array[~np.isin(array, (0, 1))].flat[0]
        reject(
            argument,
            expected="True or False, or 1 or 0",
            found=f"{found}",
            todo="Pass a boolean mask, not positions.",
        )
    try:
        # The key axis is never stretched: sink_mask=[0] is a position, and would silently mean "no sink".
        fits = array.shape[-1:] == shape[-1:] and np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        reject(
            argument,
            expected=f"a shape that broadcasts against (..., query, key) = {shape}",
            found=f"shape {array.shape}",
            todo="Give a mask over keys (key,) or over (query, key).",
        )
    return array.astype(bool, copy=False)


def check_key_range(visible: KeyRange, shape: tuple[int, ...]) -> KeyRange:
    """`visible` as int64 arrays (query,) with bounds from 0 to the number of keys of rows `shape`."""
    n_queries, n_keys = shape[-2:]
    bounds = []
    for name, value in zip(KeyRange._fields, visible, strict=True):
        argument = f"visible.{name}"
        array = as_array(argument, value)
        if array.shape != (n_queries,) or (array.size and array.dtype.kind not in "iu"):
            reject(
                argument,
                expected=f"one integer for each of {n_queries} queries",
                found=f"{array.dtype} of shape {array.shape}",
                todo="Give start and stop (query,), such as KeyRange.causal(n_queries).",
            )
        wrong = (array < 0) | (array > n_keys)
        if wrong.any():
            query = int(wrong.argmax())
            reject(
                argument,
                expected=f"bounds from 0 to {n_keys}, the number of keys",
                found=f"{array[query]} at query {query} ({wrong.sum()} in all)",
                todo="A query sees start <= key < stop; an empty range sees nothing.",
            )
        bounds.append(array.astype(np.int64, copy=False))
    return KeyRange(*bounds)
