"""Wrong forward passes of causal models: order of shared keys, windows, turns, caps, norms, fused maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model, ops, rotary
from oracle.model import Layer, Linear
from validation.mutants.kinds import Mutant
from validation.mutants.of_forward import other_code, other_config, other_layers, other_model

__all__ = ["CAUSAL_MUTANTS"]

Array = NDArray[Any]
Turns = tuple[Array, Array]


def _alternating(linear: Linear, of: Model) -> Linear:
    """Shared heads dealt out in turn: 0 1 2 0 1 2 where 0 0 1 1 2 2 belongs."""
    shared, d_head = linear.weight.shape[1] // of.config.d_head, of.config.d_head
    columns = np.arange(linear.weight.shape[1]).reshape(shared, d_head)
    order = np.tile(columns, (of.config.n_heads // shared, 1)).ravel()
    return Linear(linear.weight[:, order], None if linear.bias is None else linear.bias[order])


def _dealt_in_turn(layer: Layer, of: Model) -> Layer:
    return replace(layer, key=_alternating(layer.key, of), value=_alternating(layer.value, of))


def _flat_thirds(layer: Layer, of: Model) -> Layer:
    """Fused head by head, read as all queries, then all keys, then all values."""
    heads = (of.config.n_heads, of.config.d_head)

    def fused(arrays: list[Array]) -> list[Array]:
        split = [array.reshape(*array.shape[:-1], *heads) for array in arrays]
        together = np.stack(split, axis=-2)  # (..., head, three, d_head)
        return np.split(together.reshape(*together.shape[:-3], -1), 3, axis=-1)

    parts = (layer.query, layer.key, layer.value)
    weights = fused([part.weight for part in parts])
    biases = fused([part.bias for part in parts if part.bias is not None])
    query, key, value = (Linear(*pair) for pair in zip(weights, biases, strict=True))
    return replace(layer, query=query, key=key, value=value)


def _without(part: str) -> Any:
    changes: dict[str, Any] = {part: None}
    return other_layers(lambda layer, of: replace(layer, **changes))


def _windows(change: Callable[[int | None], int | None]) -> Any:
    return other_model(
        lambda m: replace(m, config=replace(m.config, windows=tuple(map(change, m.config.windows))))
    )


def _rotary(**changes: Any) -> Any:
    def changed(m: Model) -> Model:
        assert m.config.rotary is not None
        return replace(m, config=replace(m.config, rotary=m.config.rotary._replace(**changes)))

    return other_model(changed)


def _swapped(layer: Layer, of: Model) -> Layer:
    return replace(layer, gate=layer.up, up=layer.gate or layer.up)


def _turn_neighbours(x: Array, turned: Turns) -> Array:
    """Entries 2 i and 2 i + 1 turned together."""
    half = turned[0].shape[-1]
    order = np.arange(2 * half).reshape(half, 2).T.ravel()
    result = x.copy()
    result[..., order] = rotary.rotate(x[..., order], turned)
    return result


def _keys_turned_back(of: Model) -> Callable[..., Array]:
    def rotate(x: Array, turned: Turns) -> Array:
        is_key = x.shape[0] == of.config.n_kv_heads  # there are more queries
        return rotary.rotate(x, (turned[0], -turned[1]) if is_key else turned)

    return rotate


def _no_cap(scores: Array, cap: Any) -> None:
    """Leave the scores as they are."""


def _cap_after_mask(of: Model) -> Callable[..., Array]:
    cap = of.config.score_cap or 1.0
    return lambda scores, out: ops.softmax(cap * np.tanh(scores / cap), out)


def _tables(**changes: Any) -> Any:
    return other_model(lambda m: replace(m, embeddings=replace(m.embeddings, **changes)))


_ROWS, _STATES = "PyTorch: causal rows", "PyTorch: causal states"
_KEYS, _FUSED = "PyTorch: keys in groups", "PyTorch: fused rows"

CAUSAL_MUTANTS = tuple(
    Mutant(name, "forward", trial, apply)
    for name, trial, apply in (
        ("shared keys dealt in turn", _KEYS, other_layers(_dealt_in_turn)),
        ("the future seen", _ROWS, other_config(causal=False)),
        ("window one too wide", _ROWS, _windows(lambda window: window and window + 1)),
        ("window one too narrow", _ROWS, _windows(lambda window: window and window - 1)),
        ("windows in the other layers", _ROWS, _windows(lambda window: None if window else 5)),
        ("no windows", _ROWS, _windows(lambda window: None)),
        ("cap left out", _ROWS, other_config(score_cap=None)),
        (
            "cap after the mask",
            _ROWS,
            other_code("oracle.attention", _cap=lambda of: _no_cap, softmax=_cap_after_mask),
        ),
        ("scale by d_head", _ROWS, other_config(score_scalar=None)),
        ("no rotary positions", _KEYS, other_config(rotary=None)),
        (
            "neighbours turned together",
            _KEYS,
            other_code("oracle.attention", rotate=lambda of: _turn_neighbours),
        ),
        ("keys turned back", _KEYS, other_code("oracle.attention", rotate=_keys_turned_back)),
        ("turns not stretched", _KEYS, _rotary(scaling=None)),
        ("RMS norm without the one", _ROWS, other_config(norm_kind="rms")),
        ("mean taken off", _ROWS, other_config(norm_kind="layer")),
        ("embeddings not scaled", _ROWS, _tables(scale=1.0)),
        ("gate and up map swapped", _STATES, other_layers(_swapped)),
        ("gate left open", _STATES, _without("gate")),
        (
            "no norm after attention",
            _STATES,
            _without("attention_post_norm"),
        ),
        (
            "no norm after the network",
            _STATES,
            _without("output_post_norm"),
        ),
        ("flat thirds", _FUSED, other_layers(_flat_thirds)),
        ("whole heads turned", _FUSED, _rotary(dims=12)),
        ("halves one after the other", _FUSED, other_config(parallel_residual=False)),
    )
)
"""Mistakes in what BERT does not have."""
