"""Attention arrays that people already have: which axis is which, what is visible, what was closed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, at_least_float64, reject
from oracle.rows import check_rows, check_visible

__all__ = ["AttentionArrays", "read_attention"]

Array = NDArray[Any]

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
    size that contradicts them is refused with the readings that there are. Without `visible` ((query, key)
    or (batch, query, key)), an upper triangle that is zero in every head is taken as causal, and columns
    that are zero in every head and row as padding; the notes say so. Raises InputError as `check_rows` does,
    and for layers that are None or missing (Hugging Face gives those under sdpa and flash attention). A note
    that begins with WARNING says that a bare 4-D array looks like a batch.
    """
    array, axes = _stack(attention, layout)
    notes = [f"axes read as ({', '.join(axes.split())}) from shape {array.shape}"]
    sizes = dict(zip(axes.split(), array.shape, strict=True))
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
        readings = " or ".join(f"({', '.join(names.split())})" for names in _LAYOUTS[array.ndim])
        reject(
            "attention",
            expected=" and ".join(f"{size} on the {name} axis" for name, size in wrong.items()),
            found=" and ".join(str(sizes.get(name, 1)) for name in wrong) + f", {notes[0]}",
            todo=f"Say what the axes are with layout= (the readings are {readings}).",
        )
    array = _to_five(array, axes)
    wide = at_least_float64("attention", array)
    if visible is None:
        bare = layout is None and axes == _LAYOUTS[4][0] and not _is_list_of_layers(attention)
        seen = _infer_visible(wide, notes, bare)
    else:
        given = as_array("visible", visible)
        if given.ndim not in (2, 3):
            reject(
                "visible",
                expected="a mask (query, key) or (batch, query, key)",
                found=f"shape {given.shape}",
                todo="From a mask of real tokens: visible = mask[:, None] & mask[None, :].",
            )
        per_text = np.broadcast_to(0.0, (wide.shape[0], *wide.shape[-2:]))
        seen = np.broadcast_to(check_visible(given, per_text), per_text.shape)
    per_head = seen[:, None, None]
    rows = check_rows(wide, per_head)
    total = np.where(per_head, wide, 0).sum(axis=-1)
    off = np.abs(total - 1)[total != 0]
    closed = int((off > 64 * np.finfo(np.float64).eps).sum())
    empty = total == 0
    undefined = int((empty & per_head.any(axis=-1)).sum())
    if closed:
        notes.append(f"rows closed to sum to one: {closed}, the largest deviation {off.max():.1e}")
    if undefined:
        notes.append(f"rows without mass, undefined: {undefined}")
    return AttentionArrays(np.where(empty[..., None], 0, rows), seen, tuple(notes), closed, undefined)


def _stack(attention: Any, layout: str | None) -> tuple[Array, str]:
    """One array and its axis names."""
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
            attention, layout = np.stack(layers), layout or f"layer {per_layer}"
    array = as_array("attention", attention)
    axes = layout or _LAYOUTS.get(array.ndim, ("",))[0]
    if sorted(axes.split()) not in [sorted(names.split()) for group in _LAYOUTS.values() for names in group]:
        _reject_axes(array.shape, "3 to 5 axes, or a layout of the names batch, layer, head, query, key")
    if len(axes.split()) != array.ndim:
        _reject_axes(array.shape, f"the {len(axes.split())} axes of layout {axes!r}")
    return array, axes


def _is_list_of_layers(attention: Any) -> bool:
    return isinstance(attention, (list, tuple)) and len(attention) > 0 and hasattr(attention[0], "shape")


def _to_five(array: Array, axes: str) -> Array:
    """Put axes into the order (batch, layer, head, query, key), adding those that are absent."""
    names = axes.split()
    for missing in ("layer", "batch"):
        if missing not in names:
            array, names = array[None], [missing, *names]
    order = [names.index(name) for name in ("batch", "layer", "head", "query", "key")]
    return array.transpose(order)


def _infer_visible(rows: Array, notes: list[str], bare: bool) -> NDArray[np.bool_]:
    """Causal triangle and padding columns, read from exact zeros: (batch, query, key).

    Padding differs between texts, never between layers: a `bare` array in which it differs over the axis that
    was read as layers gets a warning.
    """
    count = rows.shape[-1]
    mass = (rows != 0).any(axis=(1, 2))  # (batch, query, key)
    seen = np.ones(mass.shape, dtype=bool)
    if count > 1 and rows.size and not np.triu(mass, 1).any():
        seen &= np.tri(count, dtype=bool)
        notes.append("the upper triangle is zero in every head: taken as causal")
    reached = (rows != 0).any(axis=(2, 3))  # (batch, layer, key)
    alive = reached.any(axis=-1, keepdims=True)
    if bare and ((reached != reached.any(axis=1, keepdims=True)) & alive).any():
        notes.append(
            "WARNING: columns are zero in only some entries of the first axis, which was read as layers; "
            'padding of a batch looks so. If that axis is the batch, say layout="batch head query key".'
        )
    padding = ~mass.any(axis=1)  # (batch, key)
    if padding.any() and rows.size:
        seen &= ~padding[:, None, :] & ~padding[:, :, None]
        notes.append(f"{int(padding.sum())} columns are zero in every head and row: taken as padding")
    return seen


def _reject_axes(shape: tuple[int, ...], expected: str) -> None:
    reject("attention", expected=expected, found=f"shape {shape}", todo="Name the axes with layout=.")
