"""Layers and weightings as a user writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from oracle._checks import reject
from validation.table import HEAD_SUMMED, WEIGHTINGS

__all__ = ["ALL_WEIGHTINGS", "parse_layers", "parse_weightings"]

ALL_WEIGHTINGS = (*WEIGHTINGS, HEAD_SUMMED)


def parse_layers(layers: str | Sequence[int] | None, n_layers: int) -> tuple[int, ...]:
    """Layer numbers from "0,3-5" (or a sequence of integers), sorted, each once; None or "all" is every one.

    Raises InputError for anything else, for a range that runs backwards and for a layer that is not there.
    """
    if layers is None or (isinstance(layers, str) and layers.strip().lower() == "all"):
        return tuple(range(n_layers))
    try:
        if isinstance(layers, str):
            chosen = [layer for part in layers.split(",") for layer in _range(part)]
        else:
            chosen = [int(layer) for layer in layers]
    except ValueError:
        _reject_layers(layers, n_layers)
    if not chosen or min(chosen) < 0 or max(chosen) >= n_layers:
        _reject_layers(layers, n_layers)
    return tuple(sorted(set(chosen)))


def parse_weightings(
    weightings: str | Sequence[str] | None, available: Sequence[str] = ALL_WEIGHTINGS
) -> tuple[str, ...]:
    """Weightings by name ("attention,value_norm" or a sequence), in their usual order; None or "all": all."""
    if weightings is None or weightings == "all":
        return tuple(available)
    asked = [name.strip() for name in weightings.split(",")] if isinstance(weightings, str) else weightings
    unknown = [name for name in asked if name not in available]
    if unknown or not asked:
        reject(
            "weighting",
            expected=f"names from {', '.join(available)}",
            found=", ".join(map(repr, unknown)) or "none",
            todo="The norm weightings need a model, or an array of that name beside `attention`.",
        )
    return tuple(name for name in available if name in asked)


def _range(part: str) -> range:
    """Layers of "3" or "3-5"; ValueError for anything else."""
    first, dash, last = part.strip().partition("-")
    start = int(first)
    stop = int(last) if dash else start
    if stop < start or not first.strip().isdigit():
        raise ValueError(part)
    return range(start, min(stop, 10**6) + 1)


def _reject_layers(layers: Any, n_layers: int) -> NoReturn:
    last = n_layers - 1
    reject(
        "layers",
        expected=f"layers from 0 to {last}, such as 0,{max(last - 1, 0)}-{last}",
        found=repr(layers),
        todo="Give numbers and ranges with commas between them.",
    )
