"""Wrong norms: the forward pass is right, and what is recorded of its value vectors is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model, Trace
from oracle.attention import transformed_vectors
from oracle.model import Layer
from oracle.trace import KEEP_DEFAULT
from validation.mutants.kinds import Mutant, instead
from validation.properties import Implementation

__all__ = ["NORM_MUTANTS"]

Array = NDArray[Any]
Apply = Callable[[Implementation], Implementation]


def _recorded(name: str, change: Callable[[Model, Trace], Array]) -> Apply:
    """The norm `name` of a trace replaced by change(model, trace)."""

    def wrong(
        true: Any, model: Model, token_ids: Any, *, keep: Any = KEEP_DEFAULT, **arguments: Any
    ) -> Trace:
        trace = true(model, token_ids, keep=(*keep, "values", "value_norm"), **arguments)
        return replace(trace, _kept={**trace._kept, name: change(model, trace)})

    return instead("forward", wrong)


def _value(change: Callable[[Array], Array]) -> Apply:
    return _recorded("value_norm", lambda model, trace: change(trace.value_norm))


def _transformed(vectors: Callable[[Array, Layer], Array]) -> Apply:
    """‖f‖ of other vectors: vectors(values (head, key, d_head), layer) gives (head, key, d_model)."""

    def change(model: Model, trace: Trace) -> Array:
        pairs = zip(trace.values, model.layers, strict=True)
        return np.stack([np.linalg.norm(vectors(values, layer), axis=-1) for values, layer in pairs])

    return _recorded("transformed_norm", change)


def _without_bias(values: Array, layer: Layer) -> Array:
    """Values without b_V: (head, key, d_head)."""
    bias = layer.value.bias
    return values if bias is None else values - bias.reshape(len(values), 1, -1)


def _interleaved(values: Array, layer: Layer) -> Array:
    """W_O read as if the heads alternated from row to row."""
    weight = layer.output.weight.reshape(-1, len(values), layer.output.weight.shape[1])
    return values @ weight.transpose(1, 0, 2)


def _values_without_bias(model: Model, trace: Trace) -> Array:
    pairs = zip(trace.values, model.layers, strict=True)
    return np.stack([np.linalg.norm(_without_bias(values, layer), axis=-1) for values, layer in pairs])


NORM_MUTANTS = tuple(
    Mutant(name, "measure", trial, apply)
    for name, trial, apply in (
        ("norm of [CLS] 0", "‖v‖ by loops", _value(lambda n: n * (np.arange(n.shape[-1]) > 0))),
        ("heads permuted, ‖v‖", "‖v‖ by loops", _value(lambda n: np.roll(n, 1, axis=1))),
        ("norms of the next layer", "‖v‖ by loops", _value(lambda n: np.roll(n, -1, axis=0))),
        ("‖v‖ squared", "‖v‖ by loops", _value(np.square)),
        (
            "‖v‖ as sum of magnitudes",
            "‖v‖ by loops",
            _recorded("value_norm", lambda model, trace: np.abs(trace.values).sum(axis=-1)),
        ),
        ("b_V dropped, ‖v‖", "‖v‖ by loops", _recorded("value_norm", _values_without_bias)),
        (
            "b_V dropped, ‖v W_O‖",
            "‖v W_O‖ by loops",
            _transformed(lambda v, layer: transformed_vectors(_without_bias(v, layer), layer.output.weight)),
        ),
        (
            "b_O added",
            "‖v W_O‖ by loops",
            _transformed(lambda v, layer: transformed_vectors(v, layer.output.weight) + layer.output.bias),
        ),
        (
            "W_O transposed",
            "‖v W_O‖ by loops",
            _transformed(lambda v, layer: transformed_vectors(v, layer.output.weight.T)),
        ),
        (
            "heads of W_O reversed",
            "‖v W_O‖ by loops",
            _transformed(lambda v, layer: transformed_vectors(v[::-1], layer.output.weight)[::-1]),
        ),
        ("heads of W_O interleaved", "‖v W_O‖ by loops", _transformed(_interleaved)),
        (
            "W_O left out",
            "‖v W_O‖ by loops",
            _recorded("transformed_norm", lambda model, trace: trace.value_norm),
        ),
    )
)
"""Mistakes in ‖v‖ and ‖v W_O‖."""
