"""A model whose forward pass is not finite: refused with its name and the first tensor that is to blame."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle._checks import InputError
from oracle.model import Model
from oracle.trace import Trace

__all__ = ["NotFiniteError", "refuse_not_finite"]

_LOOKED_AT = ("attention", "value_norm", "transformed_norm")


class NotFiniteError(InputError):
    """An InputError about the model as a whole, whatever the text was."""


def refuse_not_finite(model: Model, trace: Trace, kept: Container[str], first_layer: int = 0) -> None:
    """Raise NotFiniteError where rows or norms of a trace hold NaN or infinities.

    Only then are the weights read, to name the first that is not finite. `kept` names the arrays that the
    trace holds, `first_layer` is the layer at their index 0. What no rows or norms show (the last layer's
    feed-forward network) is not looked at.
    """
    for name in (name for name in _LOOKED_AT if name in kept):
        for layer, values in enumerate(getattr(trace, name), first_layer):
            with np.errstate(invalid="ignore", over="ignore"):
                finite = np.isfinite(values.sum())  # makes no mask as large as the rows
            if not finite and not np.isfinite(values).all():
                _refuse(model, f"{name} of layer {layer}")


def _refuse(model: Model, where: str) -> NoReturn:
    for name, tensor in _tensors(model):
        finite = np.isfinite(tensor)
        if not finite.all():
            value, wrong = tensor[~finite][0], int((~finite).sum())
            found = f"{value} in {name} ({wrong:,} of {tensor.size:,} numbers are not finite)"
            raise NotFiniteError(
                f"model {model.name}: expected finite weights; found {found}. Fetch or save the model again."
            )
    raise NotFiniteError(
        f"model {model.name}: expected a forward pass that stays finite; found {where} not finite, though "
        f"all weights are. Its numbers leave the range of {model.dtype}: look at config.json and the weights."
    )


def _tensors(model: Model) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every weight that rows and norms are made from, with its name in words, in the order of their use."""
    yield from _arrays("embeddings", model.embeddings)
    for number, layer in enumerate(model.layers):
        yield from _arrays(f"layer {number}", layer)


def _arrays(name: str, node: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(node, np.ndarray):
        yield name, node
    elif is_dataclass(node):
        for field in fields(node):
            yield from _arrays(f"{name} {field.name}", getattr(node, field.name))
    elif isinstance(node, tuple):
        for part in getattr(node, "_fields", ()):
            yield from _arrays(f"{name} {part}", getattr(node, part))
