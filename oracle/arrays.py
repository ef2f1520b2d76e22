"""Attention arrays that people already have: which axis is which, what is visible, what was closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, check_mask, first_place, reject, reject_weight
from oracle._results import KeyRange
from oracle.rows import check_visible, refuse_sums

__all__ = ["AttentionArrays", "read_attention"]

Array = NDArray[Any]

_FIVE = ("batch", "layer", "head", "query", "key")
_LAYOUTS = {
    3: ("head query key",),
    4: ("layer head query key", "batch head query key"),
    5: ("layer batch head query key", "batch layer head query key"),
}


class AttentionArrays(NamedTuple):
    """Closed attention rows with every axis named, and what was done to get them."""

    attention: Array  # (batch, layer, head, query, key), float64; a row without mass is zeros
    visible: NDArray[np.bool_]  # (batch, query, key)
    notes: tuple[str, ...]
    closed: int  # rows whose sum differed from one by more than float64 rounding, and was made one
    undefined: int  # rows of visible queries without any mass
    axes: tuple[
        str, ...
    ]  # how the input was read: the names of its axes, in its order, "layer" first of a list


def read_attention(
    attention: Any,
    *,
    visible: Any = None,
    layout: str | None = None,
    n_keys: int | None = None,
    n_layers: int | None = None,
    n_heads: int | None = None,
) -> AttentionArrays:
    """Read rows from an array, a torch tensor, nested lists, or one array per layer.

    A bare 4-D array is (layer, head, query, key); a list of 4-D arrays is (batch, head, query, key) for each
    layer, of 3-D arrays (head, query, key); 5-D is (layer, batch, head, query, key). `layout` names the axes
    of a single array instead ("batch head query key" is one layer of several texts), or of a list's stack.
    `n_keys`, `n_layers` and `n_heads` are what the caller knows of the axes (from tokens, norms, a model); a
    size that contradicts them is refused with the readings that there are. Without `visible` ((query, key),
    (batch, query, key) or a KeyRange), an upper triangle that is zero in every head is taken as causal, and
    columns that are zero in every head and row as padding; the notes say so. So they are with a mask of real
    tokens, (key,) or (batch, key), which says nothing of causality; padding then neither sees nor is seen. A
    mask that could be (query, key) or (batch, key), as with as many texts as queries, is refused. The rows
    are widened into the result, and nothing else of its size is made. Raises InputError as `check_rows` does,
    and for layers that are None or missing (Hugging Face gives those under sdpa and flash attention). A note
    that begins with WARNING says that a bare 4-D array looks like a batch.
    """
    parts, shape, axes = _parts(attention, layout)
    notes = [f"axes read as ({', '.join(axes)}) from shape {shape}"]
    sizes = dict(zip(axes, shape, strict=True))
    known = {"layer": n_layers, "head": n_heads, "query": n_keys or sizes["key"], "key": n_keys}
    wrong = {name: size for name, size in known.items() if size is not None and sizes.get(name, 1) != size}
    if list(wrong) == ["query"]:
        reject(
            "attention",
            expected=f"as many queries as keys, {sizes['key']}",
            found=f"{sizes['query']} queries, {notes[0]}",
            todo="Give the row of every query, or say what the axes are with layout=.",
        )
    if wrong:
        readings = " or ".join(f"({', '.join(names.split())})" for names in _LAYOUTS[len(shape)])
        reject(
            "attention",
            expected=" and ".join(f"{size} on the {name} axis" for name, size in wrong.items()),
            found=" and ".join(str(sizes.get(name, 1)) for name in wrong) + f", {notes[0]}",
            todo=f"Say what the axes are with layout= (the readings are {readings}).",
        )
    dtype = parts.dtype if isinstance(parts, np.ndarray) else np.result_type(*parts)
    rows = _widened(parts, axes, sizes, np.dtype(np.longdouble if dtype == np.longdouble else np.float64))
    given = visible if visible is None or isinstance(visible, KeyRange) else as_array("visible", visible)
    real = _real_tokens(given, rows.shape) if isinstance(given, np.ndarray) else None
    if given is None or real is not None:
        bare = layout is None and " ".join(axes) == _LAYOUTS[4][0] and not _is_list_of_layers(attention)
        seen = _infer_visible(rows, notes, bare and real is None, real)
    else:
        per_text = np.broadcast_to(0.0, (rows.shape[0], *rows.shape[-2:]))
        seen = np.broadcast_to(check_visible(given, per_text), per_text.shape)
    total = _checked_sums(rows, seen)
    refuse_sums(total, dtype)
    off = np.abs(total - 1)[total != 0]
    closed = int((off > 64 * np.finfo(np.float64).eps).sum())
    empty = total == 0
    undefined = int((empty & seen[:, None, None].any(axis=-1)).sum())
    if closed:
        notes.append(f"rows closed to sum to one: {closed}, the largest deviation {off.max():.1e}")
    if undefined:
        notes.append(f"rows without mass, undefined: {undefined}")
    rows /= np.where(empty, 1, total)[..., None]
    return AttentionArrays(rows, seen, tuple(notes), closed, undefined, axes)


def _parts(
    attention: Any, layout: str | None
) -> tuple[Sequence[Array] | Array, tuple[int, ...], tuple[str, ...]]:
    """What lies along the first axis, the shape of all of it, and the names of the axes."""
    if attention is None:
        attention = (None,)
    if isinstance(attention, (list, tuple)):
        if not attention or any(layer is None for layer in attention):
            reject(
                "attention",
                expected="one array of rows per layer",
                found="an empty sequence" if not attention else "None instead of an array",
                todo='Load the model with attn_implementation="eager"; sdpa and flash return no rows.',
            )
        if _is_list_of_layers(attention):
            layers = [as_array(f"attention[{index}]", layer) for index, layer in enumerate(attention)]
            shapes = {layer.shape for layer in layers}
            if len(shapes) > 1:
                reject(
                    "attention",
                    expected="one shape for all layers",
                    found=str(shapes),
                    todo="Split the layers.",
                )
            per_layer = {3: "head query key", 4: "batch head query key"}.get(layers[0].ndim)
            if per_layer is None:
                _reject_axes(layers[0].shape, "a list of (batch, head, query, key) or (head, query, key)")
            shape = (len(layers), *layers[0].shape)
            return layers, shape, _axes(shape, layout or f"layer {per_layer}")
    array = as_array("attention", attention)
    return array, array.shape, _axes(array.shape, layout)


def _axes(shape: tuple[int, ...], layout: str | None) -> tuple[str, ...]:
    axes = layout or _LAYOUTS.get(len(shape), ("",))[0]
    if sorted(axes.split()) not in [sorted(names.split()) for group in _LAYOUTS.values() for names in group]:
        _reject_axes(shape, "3 to 5 axes, or a layout of the names batch, layer, head, query, key")
    if len(axes.split()) != len(shape):
        _reject_axes(shape, f"the {len(axes.split())} axes of layout {axes!r}")
    return tuple(axes.split())


def _is_list_of_layers(attention: Any) -> bool:
    return isinstance(attention, (list, tuple)) and len(attention) > 0 and hasattr(attention[0], "shape")


def _widened(
    parts: Sequence[Array] | Array, axes: tuple[str, ...], sizes: dict[str, int], wide: np.dtype[Any]
) -> Array:
    """A new array (batch, layer, head, query, key) of `wide`; absent axes have size one."""
    out = np.empty([sizes.get(name, 1) for name in _FIVE], wide)
    for name in ("layer", "batch"):
        axes = axes if name in axes else (*axes, name)
    present = out.transpose([_FIVE.index(name) for name in axes])  # the axes of the input, absent ones last
    for target, part in zip(present, parts, strict=True):
        target[...] = part.reshape(target.shape)
    return out


def _real_tokens(visible: Array, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """A mask of real tokens as (batch, key); None for one of rows, (query, key) or (batch, query, key)."""
    batch, _, _, queries, keys = shape
    of_rows = visible.shape in ((queries, keys), (1, queries, keys), (batch, queries, keys))
    of_tokens = visible.shape in ((keys,), (batch, keys))
    if of_rows and of_tokens and queries > 1:
        reject(
            "visible",
            expected="a mask that can be read in one way",
            found=f"shape {visible.shape}, which is (query, key) or, for {batch} texts, (batch, key)",
            todo="Give it per text: mask[None] if it is (query, key), of real tokens "
            "mask[:, :, None] & mask[:, None, :].",
        )
    if not of_rows and not of_tokens:
        reject(
            "visible",
            expected=f"a mask (query, key) = ({queries}, {keys}) or (batch, query, key), or of real tokens "
            f"for {batch} text{'s' * (batch != 1)}",
            found=f"shape {visible.shape}",
            todo="From a mask of real tokens (batch, key): mask[:, :, None] & mask[:, None, :]; if attention "
            'has a batch axis, say so with layout= ("batch head query key", ...).',
        )
    if of_rows:
        return None
    return np.broadcast_to(check_mask("visible", visible, (batch, keys)), (batch, keys))


def _checked_sums(rows: Array, visible: NDArray[np.bool_]) -> Array:
    """Set invisible weights to zero, in place, and sum the rows: (batch, layer, head, query).

    One layer of one text at a time, so that the masks stay small; refuses wrong weights as `check_rows` does.
    """
    total = np.empty(rows.shape[:-1], rows.dtype)
    first, count = None, 0
    for place in np.ndindex(rows.shape[:2]):
        part = rows[place]
        np.copyto(part, 0, where=~visible[place[0]])
        wrong = ~(np.isfinite(part) & (part >= 0))
        if wrong.any():
            first = first or (*place, *first_place(wrong))
            count += int(wrong.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            part.sum(axis=-1, out=total[place])
    if first is not None:
        reject_weight("attention", rows[first], first[:-1], first[-1], count)
    return total


def _infer_visible(
    rows: Array, notes: list[str], bare: bool, real: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Causal triangle and padding columns, read from exact zeros: (batch, query, key).

    With a mask of real tokens (batch, key) only their rows and columns are read, and only they are visible.

    Padding differs between texts, never between layers: a `bare` array in which it differs over the axis that
    was read as layers gets a warning.
    """
    count = rows.shape[-1]
    mass = np.zeros((rows.shape[0], *rows.shape[-2:]), dtype=bool)  # (batch, query, key)
    for text, layer in np.ndindex(rows.shape[:2]):
        np.logical_or(mass[text], np.any(rows[text, layer] != 0, axis=0), out=mass[text])
    seen = np.ones(mass.shape, dtype=bool)
    if real is not None:  # rows of padding queries hold anything
        seen = real[:, :, None] & real[:, None, :]
        mass &= seen
    if rows.size and np.triu(seen, 1).any() and not np.triu(mass, 1).any():
        seen &= np.tri(count, dtype=bool)
        notes.append("the upper triangle is zero in every head: taken as causal")
    if bare and _padding_differs(rows):
        notes.append(
            "WARNING: columns are zero in only some entries of the first axis, which was read as layers; "
            'padding of a batch looks so. If that axis is the batch, say layout="batch head query key".'
        )
    padding = np.logical_not(np.any(mass, axis=1))  # (batch, key)
    if real is not None:
        padding &= real
    if padding.any() and rows.size:
        seen &= ~padding[:, None, :] & ~padding[:, :, None]
        notes.append(f"{int(padding.sum())} columns are zero in every head and row: taken as padding")
    return seen


def _padding_differs(rows: Array) -> bool:
    """Whether keys that get nothing in one layer get something in another; empty layers do not count."""
    reached = np.array([[np.any(layer != 0, axis=(0, 1)) for layer in text] for text in rows])
    alive = reached.any(axis=-1, keepdims=True)  # (batch, layer, key)
    return bool(((reached != reached.any(axis=1, keepdims=True)) & alive).any())


def _reject_axes(shape: tuple[int, ...], expected: str) -> None:
    reject("attention", expected=expected, found=f"shape {shape}", todo="Name the axes with layout=.")
