"""forward(model, text) -> Trace: the whole model in plain NumPy, one text at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import InputError, as_array, reject
from oracle.activations import ACTIVATIONS
from oracle.attention import (
    HeadOutputs,
    Scoring,
    attend,
    earlier_keys,
    transformed_gram,
    transformed_vectors,
    visible_keys,
)
from oracle.beginnings import beginning_notes
from oracle.inputs import check_length, check_mask, check_token_types, read_tokens
from oracle.model import Embeddings, Layer, Model, ModelConfig, Norm
from oracle.ops import layer_norm, linear, rms_norm
from oracle.rotary import turns
from oracle.sinks import choose_sinks
from oracle.trace import KEEP_ALL, KEEP_DEFAULT, Trace

__all__ = [
    "embed",
    "feed_forward",
    "forward",
    "forward_batch",
    "normed",
    "positions_of",
    "run_block",
    "scoring_of",
]

Array = NDArray[Any]


def forward(
    model: Model,
    text_or_token_ids: str | Sequence[int] | Array,
    *,
    mask: Sequence[bool] | Array | None = None,
    token_types: Sequence[int] | Array | None = None,
    sink: str | Sequence[int] | Array = "special",
    keep: Iterable[str] = KEEP_DEFAULT,
    truncate: bool = False,
) -> Trace:
    """Run one text and return its Trace, in the dtype of the model.

    `text_or_token_ids` is a string (the model's own tokenizer adds its special tokens) or token ids (token,).
    `mask` (token,) is False at padding, which stays in the arrays and is invisible; positions count from
    the first real token. `sink` is read by `choose_sinks`; in a causal model "special", the default, is the
    first real token, whether that is a BOS or not. `keep` names what the Trace stores. A text
    longer than the model's positions raises InputError, unless `truncate` keeps its first positions
    (of a string: the tokenizer cuts it and closes it with its special tokens).
    """
    kept = _check_keep(keep)
    if truncate and (mask is not None or token_types is not None):
        reject(
            "truncate",
            expected="a text or token ids alone, which are cut at the end",
            found="a mask or token types beside them, which would no longer fit",
            todo="Cut all of them to the same tokens first.",
        )
    read = read_tokens(model, text_or_token_ids, truncate)
    real = check_mask(mask, len(read.ids))
    check_length(model, int(real.sum()))
    types = check_token_types(model, token_types, len(read.ids))
    if model.config.causal and isinstance(sink, str) and sink == "special":
        sink = "first"
    sinks = choose_sinks(sink, read.tokens, read.ids, real, model.config.sink_ids)
    visible = _visible(model.config, real)
    arrays = _run(model, read.ids, real, types, visible, kept)
    notes = (*read.notes, *beginning_notes(model, read, real))
    return Trace(read.tokens, read.ids, real, sinks, visible, read.text, read.offsets, notes, arrays)


def forward_batch(
    model: Model,
    token_ids: Sequence[Sequence[int]] | Array,
    mask: Sequence[Sequence[bool]] | Array,
    *,
    token_types: Sequence[Sequence[int]] | Array | None = None,
    sink: str | Sequence[int] | Array = "special",
    keep: Iterable[str] = KEEP_DEFAULT,
) -> list[Trace]:
    """One Trace per text of a padded batch: `token_ids` and `mask` are (batch, token).

    Padding on either side is kept in the arrays and invisible, so each text equals its unpadded run.
    """
    ids, real = as_array("token_ids", token_ids), as_array("mask", mask)
    if ids.ndim != 2 or real.shape != ids.shape:
        reject(
            "mask",
            expected="token_ids and mask of one shape (batch, token)",
            found=f"{ids.shape} and {real.shape}",
            todo="Pad the texts to one length and mark real tokens with True.",
        )
    types = np.zeros(ids.shape, np.int64) if token_types is None else as_array("token_types", token_types)
    if types.shape != ids.shape:
        reject(
            "token_types",
            expected=f"(batch, token) = {ids.shape}",
            found=f"shape {types.shape}",
            todo="Give the segment of each token of each text.",
        )
    keep = _check_keep(keep)
    traces = []
    for text in range(len(ids)):
        try:
            traces.append(
                forward(model, ids[text], mask=real[text], token_types=types[text], sink=sink, keep=keep)
            )
        except InputError as error:
            raise InputError(f"{error} (text {text} of the batch)") from None
    return traces


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


def _visible(config: ModelConfig, real: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which key each query may see: (query, key), or (layer, 1, query, key) where layers differ in that."""
    visible = visible_keys(real)
    if not config.causal:
        return visible
    windows = config.windows or (None,)
    seen = {window: visible & earlier_keys(real, window) for window in set(windows)}
    return seen[windows[0]] if len(seen) == 1 else np.stack([seen[window] for window in windows])[:, None]


def _run(
    model: Model, ids: Array, real: Array, types: Array, visible: NDArray[np.bool_], kept: frozenset[str]
) -> dict[str, Array]:
    config, count, dtype = model.config, len(ids), model.dtype
    wide = np.result_type(dtype, np.float64)
    per_head = (config.n_layers, config.n_heads)
    shapes = {
        "scores": (*per_head, count, count),
        "attention": (*per_head, count, count),
        "queries": (*per_head, count, config.d_head),
        "keys": (*per_head, count, config.d_head),
        "values": (*per_head, count, config.d_head),
        "hidden_states": (config.n_layers + 1, count, config.d_model),
        "value_norm": (*per_head, count),
        "transformed_norm": (*per_head, count),
        "transformed_gram": (config.n_layers, count, config.n_heads, config.n_heads),
    }
    derived = ("value_norm", "transformed_norm", "transformed_gram")
    arrays = {name: np.empty(shapes[name], wide if name in derived else dtype) for name in kept}
    spare = {name: np.empty(shapes[name][1:], dtype) for name in ("scores", "attention") if name not in kept}
    positions = positions_of(config, ids, real)
    x = embed(model.embeddings, ids, positions, types, config.norm_epsilon)
    scoring = scoring_of(config, positions, dtype)
    if "hidden_states" in kept:
        arrays["hidden_states"][0] = x
    for index, layer in enumerate(model.layers):
        scores, attention = (
            arrays[name][index] if name in kept else spare[name] for name in ("scores", "attention")
        )
        x, heads = run_block(model, index, x, visible, scoring, scores, attention)
        if "hidden_states" in kept:
            arrays["hidden_states"][index + 1] = x
        _record(arrays, index, heads, layer.output.weight)
    return arrays


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


def _record(arrays: dict[str, Array], index: int, heads: HeadOutputs, output_weight: Array) -> None:
    """Store what layer `index` adds to the kept arrays (scores and attention are in place already)."""
    for name in arrays.keys() & {"queries", "keys", "values"}:
        arrays[name][index] = getattr(heads, name)
    if "value_norm" in arrays:
        arrays["value_norm"][index] = _norm(heads.values)
    if "transformed_norm" in arrays:
        arrays["transformed_norm"][index] = _norm(transformed_vectors(heads.values, output_weight))
    if "transformed_gram" in arrays:
        arrays["transformed_gram"][index] = transformed_gram(heads.values, output_weight)


def _check_keep(keep: Iterable[str]) -> frozenset[str]:
    kept = frozenset(keep.split(",") if isinstance(keep, str) else keep)
    if unknown := kept - set(KEEP_ALL):
        reject(
            "keep",
            expected=f"names from {', '.join(KEEP_ALL)}",
            found=", ".join(sorted(unknown)),
            todo="Name those.",
        )
    return kept


def _norm(vectors: Array) -> Array:
    """Euclidean norm over the last axis, squares summed in float64 or wider."""
    vectors = vectors.astype(np.result_type(vectors.dtype, np.float64), copy=False)
    return np.sqrt(np.einsum("...d,...d->...", vectors, vectors))
