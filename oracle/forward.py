"""forward(model, text) -> Trace: the whole model in plain NumPy, one text at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import block
from oracle._checks import InputError, as_array, reject
from oracle.attention import HeadOutputs, earlier_keys, transformed_gram, transformed_vectors, visible_keys
from oracle.beginnings import beginning_notes
from oracle.inputs import Tokens, check_length, check_mask, check_token_types, read_tokens
from oracle.model import Model, ModelConfig
from oracle.sinks import choose_sinks
from oracle.trace import KEEP_ALL, KEEP_DEFAULT, Trace

__all__ = ["forward", "forward_batch"]

Array = NDArray[Any]


def forward(
    model: Model,
    text_or_token_ids: str | Tokens | Sequence[int] | Array,
    *,
    mask: Sequence[bool] | Array | None = None,
    token_types: Sequence[int] | Array | None = None,
    sink: str | Sequence[int] | Array = "special",
    keep: Iterable[str] | None = None,
    truncate: bool = False,
    each: Callable[[int, Trace], None] | None = None,
) -> Trace:
    """Run one text and return its Trace, in the dtype of the model.

    `text_or_token_ids` is a string (the model's own tokenizer adds its special tokens) or token ids (token,).
    `mask` (token,) is False at padding, which stays in the arrays and is invisible; positions count from
    the first real token. `sink` is read by `choose_sinks`; in a causal model "special", the default, is the
    first real token, whether that is a BOS or not. `keep` names what the Trace stores: by default
    KEEP_DEFAULT, and with `each` all of it but the hidden states. A text longer than the model's positions
    raises InputError, unless `truncate` keeps its first positions (of a string: the tokenizer cuts it and
    closes it with its special tokens).

    `each` is called after every layer with (layer, trace), a Trace whose arrays have that one layer, at index
    0, and are overwritten by the next; its `visible` is what that layer sees, (query, key). What is kept does
    not grow with the number of layers then, and the Trace that is returned holds none of it. `hidden_states`
    are of all layers and cannot be kept so.
    """
    if keep is None:
        keep = KEEP_DEFAULT if each is None else (name for name in KEEP_DEFAULT if name != "hidden_states")
    kept = _check_keep(keep)
    if each is not None and "hidden_states" in kept:
        reject(
            "keep",
            expected="arrays of a single layer, because `each` is given",
            found="hidden_states, which are of all layers",
            todo="Leave hidden_states out, or run forward without each.",
        )
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
    notes = (*read.notes, *beginning_notes(model, read, real))

    def trace(seen: NDArray[np.bool_], arrays: dict[str, Array], told: bool = False) -> Trace:
        return Trace(read.tokens, read.ids, real, sinks, seen, read.text, read.offsets, notes, arrays, told)

    if each is None:
        return trace(visible, _run(model, read.ids, real, types, visible, kept, None))

    def tell(index: int, arrays: dict[str, Array]) -> None:
        each(index, trace(visible if visible.ndim == 2 else visible[index, 0], arrays))

    _run(model, read.ids, real, types, visible, kept, tell)
    return trace(visible, {}, told=True)


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


def _visible(config: ModelConfig, real: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which key each query may see: (query, key), or (layer, 1, query, key) where layers differ in that."""
    visible = visible_keys(real)
    if not config.causal:
        return visible
    windows = config.windows or (None,)
    seen = {window: visible & earlier_keys(real, window) for window in set(windows)}
    return seen[windows[0]] if len(seen) == 1 else np.stack([seen[window] for window in windows])[:, None]


def _run(
    model: Model,
    ids: Array,
    real: Array,
    types: Array,
    visible: NDArray[np.bool_],
    kept: frozenset[str],
    tell: Callable[[int, dict[str, Array]], None] | None,
) -> dict[str, Array]:
    """The kept arrays of all layers; with `tell` those of one, told after each and used again."""
    config, count, dtype = model.config, len(ids), model.dtype
    wide = np.result_type(dtype, np.float64)
    stored = config.n_layers if tell is None else 1
    per_head = (stored, config.n_heads)
    shapes = {
        "scores": (*per_head, count, count),
        "attention": (*per_head, count, count),
        "queries": (*per_head, count, config.d_head),
        "keys": (*per_head, count, config.d_head),
        "values": (*per_head, count, config.d_head),
        "hidden_states": (config.n_layers + 1, count, config.d_model),
        "value_norm": (*per_head, count),
        "transformed_norm": (*per_head, count),
        "transformed_gram": (stored, count, config.n_heads, config.n_heads),
    }
    derived = ("value_norm", "transformed_norm", "transformed_gram")
    arrays = {name: np.empty(shapes[name], wide if name in derived else dtype) for name in kept}
    spare = {name: np.empty(shapes[name][1:], dtype) for name in ("scores", "attention") if name not in kept}
    positions = block.positions_of(config, ids, real)
    x = block.embed(model.embeddings, ids, positions, types, config.norm_epsilon)
    scoring = block.scoring_of(config, positions, dtype)
    if "hidden_states" in kept:
        arrays["hidden_states"][0] = x
    for index, layer in enumerate(model.layers):
        place = index if tell is None else 0
        scores, attention = (
            arrays[name][place] if name in kept else spare[name] for name in ("scores", "attention")
        )
        x, heads = block.run_block(model, index, x, visible, scoring, scores, attention)
        if "hidden_states" in kept:
            arrays["hidden_states"][index + 1] = x
        _record(arrays, place, heads, layer.output.weight)
        if tell is not None:
            tell(index, arrays)
    return arrays


def _record(arrays: dict[str, Array], index: int, heads: HeadOutputs, output_weight: Array) -> None:
    """Store what a layer adds to the kept arrays at `index` (scores and attention are in place already)."""
    for name in arrays.keys() & {"queries", "keys", "values"}:
        arrays[name][index] = getattr(heads, name)
    if "value_norm" in arrays:
        arrays["value_norm"][index] = _norm(heads.values)
    if "transformed_norm" in arrays:
        weights = np.split(output_weight, len(heads.values))
        for head, (values, weight) in enumerate(zip(heads.values, weights, strict=True)):  # fits the cache so
            arrays["transformed_norm"][index, head] = _norm(transformed_vectors(values[None], weight)[0])
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
