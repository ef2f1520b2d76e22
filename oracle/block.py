"""One block after the other: what enters the first, and what each makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.activations import ACTIVATIONS
from oracle.attention import HeadOutputs, Scoring, attend
from oracle.model import Embeddings, Layer, Model, ModelConfig, Norm
from oracle.ops import layer_norm, linear, rms_norm
from oracle.rotary import turns

__all__ = ["embed", "feed_forward", "normed", "positions_of", "run_block", "scoring_of"]

Array = NDArray[Any]


def embed(table: Embeddings, ids: Array, positions: Array, types: Array, epsilon: float) -> Array:
    """What enters the first block, (token, d_model); `positions` are rows of their table."""
    total = table.words[ids]
    if table.scale != 1:
        total *= total.dtype.type(table.scale)
    if table.project_words is not None:
        total = linear(total, table.project_words)
    if table.token_types is not None:
        total += table.token_types[types]
    if table.positions is not None:
        total += table.positions[positions]
    if table.norm is not None:
        total = layer_norm(total, table.norm, epsilon)
    return total if table.project is None else linear(total, table.project)


def feed_forward(x: Array, layer: Layer, activation: str) -> Array:
    """The network of a block: (token, d_model) to (token, d_model), through a gate where it has one."""
    function = ACTIVATIONS[activation]
    if layer.gate is None:
        return linear(function(linear(x, layer.up)), layer.down)
    inner = function(linear(x, layer.gate))
    inner *= linear(x, layer.up)
    return linear(inner, layer.down)


def normed(x: Array, norm: Norm, config: ModelConfig) -> Array:
    """The norm of `config` over the last axis."""
    if config.norm_kind == "layer":
        return layer_norm(x, norm, config.norm_epsilon)
    return rms_norm(x, norm, config.norm_epsilon, plus_one=config.norm_kind == "rms_plus_one")


def positions_of(config: ModelConfig, ids: Array, real: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The position of each token, (token,): counted from `position_offset` over real tokens."""
    counted = real & (ids != config.pad_id) if config.positions_skip_pad else real
    places = np.where(counted, np.cumsum(counted) - 1, -1)
    return np.maximum(places + config.position_offset, 0)


def run_block(
    model: Model,
    index: int,
    x: Array,
    visible: NDArray[np.bool_],
    scoring: Scoring,
    scores: Array,
    attention: Array,
    silenced: NDArray[np.bool_] | None = None,
) -> tuple[Array, HeadOutputs]:
    """Block `index` on what enters it, (token, d_model): what it puts out, and what its heads computed.

    `visible` is that of a Trace and `scoring` comes from `scoring_of`; `scores` and `attention`, both (head,
    query, key), are written into. Heads that are `silenced` (head,) write nothing, as in `attend`.
    """
    config, layer = model.config, model.layers[index]
    seen = visible if visible.ndim == 2 else visible[index, 0]
    if config.score_by_layer:
        scoring = scoring._replace(divisor=index + 1.0)
    entering = normed(x, layer.attention_norm, config) if config.norm_place != "post" else x
    heads = attend(entering, layer, config.n_heads, seen, scores, attention, scoring, silenced)
    return _add_to_residual(x, heads.output, layer, config), heads


def scoring_of(config: ModelConfig, positions: Array, dtype: np.dtype[Any]) -> Scoring:
    """How the scores of this model are made for tokens at `positions` (token,)."""
    return Scoring(
        scalar=config.score_scalar,
        cap=config.score_cap,
        turns=None if config.rotary is None else turns(config.rotary, positions, dtype),
        norm_epsilon=config.norm_epsilon,
    )


def _add_to_residual(x: Array, attended: Array, layer: Layer, config: ModelConfig) -> Array:
    """The rest of a block, from what attention wrote to what the block puts out: (token, d_model)."""
    post, activation = config.norm_place == "post", config.activation
    if config.parallel_residual:
        return x + attended + feed_forward(normed(x, layer.output_norm, config), layer, activation)
    if layer.attention_post_norm is not None:
        attended = normed(attended, layer.attention_post_norm, config)
    x = x + attended
    if post:
        x = normed(x, layer.attention_norm, config)
    fed = feed_forward(x if post else normed(x, layer.output_norm, config), layer, activation)
    if layer.output_post_norm is not None:
        fed = normed(fed, layer.output_post_norm, config)
    x = x + fed
    return normed(x, layer.output_norm, config) if post else x
