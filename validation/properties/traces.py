"""Laws of a forward pass that need no second implementation: rows, padding, norms from hidden states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model
from validation import definitions
from validation.properties.finding import Finding, deviation, rounding, size_of
from validation.properties.implementation import Implementation

__all__ = [
    "padded_run_is_plain_run",
    "rows_of_a_trace",
    "silenced_heads_are_cut_slices",
    "transformed_norm_by_definition",
    "value_norm_by_definition",
]

Array = NDArray[Any]

_KEPT = ("scores", "attention", "values", "value_norm", "transformed_norm", "hidden_states")
# Two runs of different shape round differently in BLAS, and every layer amplifies that: 4096 epsilon is
# 1e-12 in float64, the bound that attention rows have against another implementation.
_RUN_EPSILONS = 4096


def rows_of_a_trace(
    implementation: Implementation, model: Model, token_ids: Any, mask: Any = None
) -> Finding:
    """Rows of real queries sum to one over real keys; rows of padding are zeros, not distributions."""
    trace = implementation.forward(model, token_ids, mask=mask)
    real = np.ones(len(token_ids), bool) if mask is None else np.asarray(mask, dtype=bool)
    gap = deviation(trace.attention.sum(axis=-1), np.broadcast_to(real * 1.0, trace.attention.shape[:-1]))
    hidden = ~(real[:, None] & real[None, :])
    if (trace.attention[..., hidden] != 0).any() or not np.isneginf(trace.scores[..., hidden]).all():
        gap = float("inf"), "a weight or a score where nothing is visible"
    bound = rounding(len(real), np.finfo(trace.attention.dtype).eps)
    return Finding("rows of a trace sum to one", gap[0], bound, gap[1])


def padded_run_is_plain_run(
    implementation: Implementation, model: Model, token_ids: Any, padding: int, left: bool
) -> Finding:
    """Masked padding on either side changes nothing that real tokens compute.

    Rows are compared absolutely, every other array relative to its own largest value.
    """
    ids = np.asarray(token_ids)
    extra = np.full(padding, model.config.pad_id or 0)
    padded = np.concatenate([extra, ids] if left else [ids, extra])
    real = np.concatenate([extra != extra, ids == ids] if left else [ids == ids, extra != extra])
    plain = implementation.forward(model, ids, keep=_KEPT)
    other = implementation.forward(model, padded, mask=real, keep=_KEPT)
    gap = (0.0, "")
    for name in _KEPT:
        wanted, found = getattr(plain, name), getattr(other, name)
        found = found[:, real] if name == "hidden_states" else found[:, :, real]
        if name in ("scores", "attention"):
            found = found[..., real]
        size = 1.0 if name == "attention" else size_of(wanted)
        gap = max(gap, deviation(found, wanted, size))
    side = "left" if left else "right"
    bound = _RUN_EPSILONS * float(np.finfo(model.dtype).eps)
    return Finding(f"padding on the {side} changes nothing", gap[0], bound, gap[1])


def silenced_heads_are_cut_slices(
    implementation: Implementation, model: Model, token_ids: Any, silenced: Any
) -> Finding:
    """Heads that are silenced (layer, head) write what a W_O without their rows writes; b_O stays whole."""
    trace = implementation.forward(model, token_ids, keep=("hidden_states",))
    layers = []
    for layer, heads in zip(model.layers, silenced, strict=True):
        rows = np.repeat(~heads, model.config.d_head)[:, None]
        layers.append(replace(layer, output=layer.output._replace(weight=layer.output.weight * rows)))
    cut = implementation.forward(replace(model, layers=tuple(layers)), token_ids, keep=("hidden_states",))
    wanted, found = cut.hidden_states[-1], implementation.states_without_heads(model, trace, silenced)
    gap = deviation(found, wanted, size_of(wanted))
    bound = _RUN_EPSILONS * float(np.finfo(model.dtype).eps)
    return Finding("silenced heads are cut out of W_O", gap[0], bound, gap[1])


def value_norm_by_definition(implementation: Implementation, model: Model, token_ids: Any) -> Finding:
    """‖v_j‖ is the norm of (x_j W_V + b_V) in the head's own columns, x the states that enter the layer."""
    trace = implementation.forward(model, token_ids, keep=("hidden_states", "value_norm"))
    wanted = np.empty_like(trace.value_norm)
    for layer, head in np.ndindex(*wanted.shape[:2]):
        for key, value in enumerate(_values(model, trace.hidden_states[layer], layer, head)):
            wanted[layer, head, key] = definitions.vector_norm(value)
    return _norm_finding("value norm by definition", implementation, model, trace.value_norm, wanted)


def transformed_norm_by_definition(implementation: Implementation, model: Model, token_ids: Any) -> Finding:
    """‖f_j‖ with f(x) = (x W_V + b_V) W_O of each head, b_O left out (Kobayashi et al. 2020)."""
    trace = implementation.forward(model, token_ids, keep=("hidden_states", "transformed_norm"))
    wanted = np.empty_like(trace.transformed_norm)
    for layer in range(model.config.n_layers):
        states = trace.hidden_states[layer]
        values = np.array([_values(model, states, layer, head) for head in range(model.config.n_heads)])
        for head, vectors in enumerate(definitions.transformed(values, model.layers[layer].output.weight)):
            for key, vector in enumerate(vectors):
                wanted[layer, head, key] = definitions.vector_norm(vector)
    return _norm_finding(
        "transformed norm by definition", implementation, model, trace.transformed_norm, wanted
    )


def _values(model: Model, states: Array, layer: int, head: int) -> Array:
    weight, bias = model.layers[layer].value
    bias = np.zeros(weight.shape[1], weight.dtype) if bias is None else bias
    return definitions.projected(states, weight, bias, head, model.config.d_head)


def _norm_finding(
    law: str, implementation: Implementation, model: Model, found: Array, wanted: Array
) -> Finding:
    gap = deviation(found, wanted, size_of(wanted))
    epsilon = float(np.finfo(model.dtype).eps)  # the projections round in the dtype of the model
    return Finding(law, gap[0], rounding(model.config.d_model, epsilon), gap[1])
