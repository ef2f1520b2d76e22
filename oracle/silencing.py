"""What a causal model predicts when some of its heads write nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, reject, reject_type
from oracle.block import positions_of, run_block, scoring_of
from oracle.language_model import logits
from oracle.model import Model
from oracle.trace import Trace

__all__ = ["logits_without_heads", "states_without_heads"]

Array = NDArray[Any]


def logits_without_heads(model: Model, trace: Trace, silenced: NDArray[np.bool_]) -> Array:
    """Logits (token, vocabulary) of the text of `trace` with some heads silenced, in the dtype of the model.

    `silenced` (layer, head) is True where a head's output is zeroed before W_O; the output bias stays, which
    equals a model whose W_O lacks the slices of those heads. `trace` is this model's own, undisturbed, with
    its `hidden_states` kept: everything below the first silenced head is taken from there and not computed
    again. With nothing silenced the result is `logits(model, trace)`. Raises InputError for a model without
    a language-model head, and as `states_without_heads` does.
    """
    return logits(model, states_without_heads(model, trace, silenced))


def states_without_heads(model: Model, trace: Trace, silenced: NDArray[np.bool_]) -> Array:
    """What the last block puts out, (token, d_model), with some heads silenced as in `logits_without_heads`.

    Works for every model. Raises InputTypeError for a `silenced` that is not boolean, and InputError for one
    of another shape, for a trace without `hidden_states` and for one of another model or dtype.
    """
    config = model.config
    cut = _check_silenced(silenced, (config.n_layers, config.n_heads))
    states = trace.hidden_states
    shape = (config.n_layers + 1, len(trace.token_ids), config.d_model)
    if states.shape != shape or states.dtype != model.dtype:
        reject(
            "trace",
            expected=f"hidden states (layer + 1, token, d_model) = {shape} in {model.dtype}",
            found=f"{states.shape} in {states.dtype}",
            todo="Run forward on this very model, with keep=('hidden_states',).",
        )
    layers = np.flatnonzero(cut.any(axis=1))
    if not len(layers):
        return states[-1]
    positions = positions_of(config, trace.token_ids, trace.mask)
    scoring = scoring_of(config, positions, model.dtype)
    scores, attention = np.empty((2, config.n_heads, len(positions), len(positions)), model.dtype)
    x = states[layers[0]]
    for index in range(layers[0], config.n_layers):
        x, _ = run_block(model, index, x, trace.visible, scoring, scores, attention, cut[index])
    return x


def _check_silenced(silenced: Any, shape: tuple[int, int]) -> NDArray[np.bool_]:
    cut = as_array("silenced", silenced)
    if cut.dtype != bool:
        reject_type(
            "silenced",
            expected="a boolean mask (layer, head)",
            found=f"dtype {cut.dtype}",
            todo="Mark the heads to silence with True.",
        )
    if cut.shape != shape:
        reject(
            "silenced",
            expected=f"a mask (layer, head) = {shape}",
            found=f"shape {cut.shape}",
            todo="Give every head of every layer.",
        )
    return cut
