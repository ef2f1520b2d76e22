"""Rows of one text as part of everything that is audited: which keys they see, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject
from oracle.inputs import read_tokens
from oracle.model import Model
from validation.table import visible_in

__all__ = ["check_windows", "one_mask", "whole_place"]

_PLACE = re.compile(r"layer (\d+), head (\d+), query (\d+)")


def check_windows(model: Model, texts: Sequence[str], layers: Sequence[int], truncate: bool = False) -> None:
    """Refuse layers whose windows differ by more than `texts` are long, before any text is run."""
    windows = model.config.windows
    if len({windows[layer] for layer in layers} if windows else ()) < 2:
        return
    longest = max((len(read_tokens(model, text, truncate).ids) for text in texts), default=0)
    reach = {layer: min(windows[layer] or longest, longest) for layer in layers}
    if len(set(reach.values())) > 1:
        _reject_windows(f"{model.name}, whose windows differ by layer", reach)


def one_mask(visible: NDArray[np.bool_], layers: Sequence[int]) -> NDArray[np.bool_]:
    """What each query sees in all of `layers`, (query, key), from that or from (layer, 1, query, key).

    Raises InputError where they do not see the same: heads of different layers are compared.
    """
    masks = [visible_in(visible, layer) for layer in layers]
    if any(not np.array_equal(mask, masks[0]) for mask in masks[1:]):
        names = {layer: mask.tobytes() for layer, mask in zip(layers, masks, strict=True)}
        _reject_windows("masks that differ by layer", names)
    return masks[0]


def whole_place(said: str, text: int, layers: Sequence[int], queries: Sequence[int] | NDArray[Any]) -> str:
    """An error about some rows of a text, with the row's place among those that the caller gave.

    `layers` and `queries` are those of which the rows were; texts are numbered from 1, all else from 0.
    """

    def placed(found: re.Match[str]) -> str:
        layer, head, query = map(int, found.groups())
        return f"text {text + 1}, layer {layers[layer]}, head {head}, query {int(queries[query])}"

    return _PLACE.sub(placed, said)


def _reject_windows(found: str, kinds: dict[int, Any]) -> None:
    """Refuse layers that see different keys; `kinds` says by layer what it sees."""
    first = next(iter(kinds.values()))
    alike = ",".join(str(layer) for layer, kind in kinds.items() if kind == first)
    reject(
        "layers",
        expected="layers that all see the same keys",
        found=found,
        todo=f"Choose layers of one window, such as {alike}.",
    )
