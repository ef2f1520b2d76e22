"""Wrong forward passes: other weights where data can carry the mistake, other code where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model, ops
from oracle import attention as heads
from oracle.model import Layer, Linear, Norm
from validation.mutants.kinds import Mutant, instead, patched
from validation.properties import Implementation

__all__ = ["FORWARD_MUTANTS", "other_code", "other_config", "other_layers", "other_model"]

Array = NDArray[Any]
Apply = Callable[[Implementation], Implementation]


def other_model(change: Callable[[Model], Model]) -> Apply:
    """Make the mutation that runs the true code on another model."""
    return instead("forward", lambda true, model, *given, **named: true(change(model), *given, **named))


def other_layers(change: Callable[[Layer, Model], Layer]) -> Apply:
    """Make the mutation that changes every layer."""
    return other_model(
        lambda model: replace(model, layers=tuple(change(layer, model) for layer in model.layers))
    )


def other_code(module: str, **functions: Callable[[Model], Callable[..., Any]]) -> Apply:
    """Make the mutation that replaces functions of a module; each is made from the model that runs."""

    def wrong(true: Any, model: Model, *given: Any, **named: Any) -> Any:
        with patched(module, **{name: make(model) for name, make in functions.items()}):
            return true(model, *given, **named)

    return instead("forward", wrong)


def other_config(**changes: Any) -> Apply:
    """Make the mutation that runs the true code under another configuration."""
    return other_model(lambda model: replace(model, config=replace(model.config, **changes)))


def _tables(change: Callable[[Any], dict[str, Any]]) -> Apply:
    return other_model(
        lambda model: replace(model, embeddings=replace(model.embeddings, **change(model.embeddings)))
    )


def _scaled(linear: Linear, factor: Any) -> Linear:
    return Linear(linear.weight * factor, linear.bias * factor)


def _unbiased(part: str) -> Apply:
    """One linear map of every layer without its bias."""

    def change(layer: Layer, model: Model) -> Layer:
        linear = getattr(layer, part)
        changes: dict[str, Any] = {part: Linear(linear.weight, np.zeros_like(linear.bias))}
        return replace(layer, **changes)

    return other_layers(change)


def _heads_rolled(layer: Layer, model: Model) -> Layer:
    weight = np.roll(layer.output.weight, model.config.d_head, axis=0)
    return replace(layer, output=Linear(weight, layer.output.bias))


def _query_transposed(layer: Layer, model: Model) -> Layer:
    return replace(layer, query=layer.query._replace(weight=layer.query.weight.T))


def _unmasked(true: Any, model: Model, token_ids: Any, mask: Any = None, **named: Any) -> Any:
    return true(model, token_ids, **named)


def _one_segment(true: Any, model: Model, token_ids: Any, token_types: Any = None, **named: Any) -> Any:
    return true(model, token_ids, **named)


def _softmax_over_queries(scores: Array, out: Array) -> Array:
    out[...] = ops.softmax(np.ascontiguousarray(scores.T)).T
    return out


def _softmax_in_float32(scores: Array, out: Array) -> Array:
    out[...] = ops.softmax(scores.astype(np.float32))
    return out


def _sample_variance(x: Array, norm: Norm, epsilon: float) -> Array:
    deviation = np.sqrt(x.var(axis=-1, ddof=1, keepdims=True) + epsilon)
    return (x - x.mean(axis=-1, keepdims=True)) / deviation * norm.weight + norm.bias


def _epsilon_outside(x: Array, norm: Norm, epsilon: float) -> Array:
    deviation = x.std(axis=-1, keepdims=True) + epsilon
    return (x - x.mean(axis=-1, keepdims=True)) / deviation * norm.weight + norm.bias


def _sum_of_tables(table: Any, ids: Array, positions: Array, types: Array) -> Array:
    return table.words[ids] + table.positions[positions] + table.token_types[types]


def _embed_bare(model: Model) -> Callable[..., Array]:
    return lambda table, ids, positions, types, epsilon: _sum_of_tables(table, ids, positions, types)


def _embed_normed(model: Model) -> Callable[..., Array]:
    return lambda table, ids, positions, types, epsilon: ops.layer_norm(
        _sum_of_tables(table, ids, positions, types), table.norm, epsilon
    )


def _embed_from_the_edge(model: Model) -> Callable[..., Array]:
    """Positions counted from the first column, padding or not."""
    return lambda table, ids, positions, types, epsilon: ops.layer_norm(
        _sum_of_tables(table, ids, np.arange(len(ids)), types), table.norm, epsilon
    )


def _attend_to_normed(model: Model) -> Callable[..., Any]:
    def attend(x: Array, layer: Layer, *rest: Any) -> Any:
        return heads.attend(ops.layer_norm(x, layer.attention_norm, model.config.norm_epsilon), layer, *rest)

    return attend


def _feed_normed(model: Model) -> Callable[..., Array]:
    from oracle.block import feed_forward

    def feed(x: Array, layer: Layer, activation: str) -> Array:
        return feed_forward(
            ops.layer_norm(x, layer.output_norm, model.config.norm_epsilon), layer, activation
        )

    return feed


def _attend_without_residual(model: Model) -> Callable[..., Any]:
    def attend(x: Array, *rest: Any) -> Any:
        found = heads.attend(x, *rest)
        return found._replace(output=found.output - x)

    return attend


def _feed_without_residual(model: Model) -> Callable[..., Array]:
    from oracle.block import feed_forward

    return lambda x, layer, activation: feed_forward(x, layer, activation) - x


def _heads_alternating(x: Array, n_heads: int) -> Array:
    return x.reshape(x.shape[0], -1, n_heads).transpose(2, 0, 1)


def _keys_only(mask: Array) -> Array:
    return np.repeat(mask[None, :], len(mask), axis=0)


_PRE_NORM = other_code(
    "oracle.block",
    attend=_attend_to_normed,
    feed_forward=_feed_normed,
    embed=_embed_normed,
    layer_norm=lambda model: lambda x, norm, epsilon: x,
)

FORWARD_MUTANTS = tuple(
    Mutant(name, "forward", trial, apply)
    for name, trial, apply in (
        ("token types left out", "PyTorch: embeddings", instead("forward", _one_segment)),
        (
            "token types swapped",
            "PyTorch: embeddings",
            _tables(lambda e: {"token_types": e.token_types[::-1]}),
        ),
        (
            "positions off by one",
            "PyTorch: embeddings",
            _tables(lambda e: {"positions": np.roll(e.positions, -1, 0)}),
        ),
        ("positions left out", "PyTorch: embeddings", _tables(lambda e: {"positions": 0 * e.positions})),
        ("embedding norm left out", "PyTorch: embeddings", other_code("oracle.block", embed=_embed_bare)),
        ("norm epsilon 1e-12", "PyTorch: embeddings", other_config(norm_epsilon=1e-12)),
        (
            "epsilon outside the root",
            "PyTorch: embeddings",
            other_code("oracle.block", layer_norm=lambda model: _epsilon_outside),
        ),
        (
            "norm by sample variance",
            "PyTorch: embeddings",
            other_code("oracle.block", layer_norm=lambda model: _sample_variance),
        ),
        (
            "scale missing",
            "PyTorch: scores",
            other_layers(lambda layer, m: replace(layer, query=_scaled(layer.query, m.config.d_head**0.5))),
        ),
        (
            "scale by d_head, no root",
            "PyTorch: scores",
            other_layers(lambda layer, m: replace(layer, query=_scaled(layer.query, m.config.d_head**-0.5))),
        ),
        ("query bias dropped", "PyTorch: scores", _unbiased("query")),
        ("key bias dropped", "PyTorch: scores", _unbiased("key")),
        (
            "query and key maps swapped",
            "PyTorch: scores",
            other_layers(lambda layer, m: replace(layer, query=layer.key, key=layer.query)),
        ),
        (
            "query matrix transposed",
            "PyTorch: scores",
            other_layers(
                lambda layer, m: replace(layer, query=layer.query._replace(weight=layer.query.weight.T))
            ),
        ),
        ("mask ignored", "PyTorch: rows", instead("forward", _unmasked)),
        (
            "softmax over queries",
            "PyTorch: rows",
            other_code("oracle.attention", softmax=lambda model: _softmax_over_queries),
        ),
        (
            "softmax in float32",
            "PyTorch: rows",
            other_code("oracle.attention", softmax=lambda model: _softmax_in_float32),
        ),
        ("value bias dropped", "PyTorch: values", _unbiased("value")),
        (
            "heads of values interleaved",
            "PyTorch: values",
            other_code("oracle.attention", split_heads=lambda model: _heads_alternating),
        ),
        ("output bias dropped", "PyTorch: states", _unbiased("output")),
        ("heads of W_O rolled", "PyTorch: states", other_layers(_heads_rolled)),
        ("layers in reverse", "PyTorch: states", other_model(lambda m: replace(m, layers=m.layers[::-1]))),
        ("gelu by tanh", "PyTorch: states", other_config(activation="gelu_new")),
        ("relu for gelu", "PyTorch: states", other_config(activation="relu")),
        ("norm before the block", "PyTorch: states", _PRE_NORM),
        (
            "no attention residual",
            "PyTorch: states",
            other_code("oracle.block", attend=_attend_without_residual),
        ),
        (
            "no feed-forward residual",
            "PyTorch: states",
            other_code("oracle.block", feed_forward=_feed_without_residual),
        ),
        (
            "norms swapped in a block",
            "PyTorch: states",
            other_layers(
                lambda layer, m: replace(
                    layer, attention_norm=layer.output_norm, output_norm=layer.attention_norm
                )
            ),
        ),
        ("mask ignored, by padding", "padding, right", instead("forward", _unmasked)),
        (
            "positions by column",
            "padding, left",
            other_code("oracle.block", embed=_embed_from_the_edge),
        ),
        (
            "padding queries given rows",
            "rows of a trace",
            other_code("oracle.forward", visible_keys=lambda model: _keys_only),
        ),
    )
)
"""Mistakes in the forward pass."""
