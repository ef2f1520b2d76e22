"""BERT: learned absolute positions, token types, a norm after each residual sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import DTypeLike

from oracle._checks import reject
from oracle.families._config import Fields
from oracle.families._weights import Shape, Weights, match
from oracle.model import Embeddings, Layer, Linear, Model, ModelConfig, Norm, float_dtype

__all__ = ["build"]

# A configuration's names to those of oracle.ops; the second of a pair of names is an alias.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_pytorch_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_PREFIX = "bert."
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# Heads on top of the encoder, and buffers that merely count: attention never sees them.
_IGNORED = ("cls.", "pooler.", "classifier.", "qa_outputs.")
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
# (part of Layer, its name in a checkpoint, input size, output size)
_LINEAR = (
    ("query", "attention.self.query", "d_model", "d_model"),
    ("key", "attention.self.key", "d_model", "d_model"),
    ("value", "attention.self.value", "d_model", "d_model"),
    ("output", "attention.output.dense", "d_model", "d_model"),
    ("up", "intermediate.dense", "d_model", "d_ff"),
    ("down", "output.dense", "d_ff", "d_model"),
)
_NORMS = (("attention_norm", "attention.output.LayerNorm"), ("output_norm", "output.LayerNorm"))


def build(
    config: Mapping[str, Any],
    tensors: Mapping[str, Any],
    *,
    dtype: DTypeLike,
    tokenizer: Any,
    name: str,
    sha256: str | None,
    special_ids: Mapping[str, int],
    config_source: str,
    weights_source: str,
) -> Model:
    """See `oracle.families.build_model`; the default sink set is {[CLS], [SEP]}."""
    fields = Fields(config, config_source)
    settings, token_types = _settings(fields, len(tensors), special_ids)
    expected = _expected(settings, token_types)
    weights = match(tensors, expected, _canonical, dtype=float_dtype(dtype), source=weights_source)
    embeddings = Embeddings(
        words=weights["embeddings.word_embeddings.weight"],
        positions=weights["embeddings.position_embeddings.weight"],
        token_types=weights["embeddings.token_type_embeddings.weight"],
        norm=_norm(weights, "embeddings.LayerNorm"),
    )
    layers = tuple(_layer(weights, f"encoder.layer.{index}.") for index in range(settings.n_layers))
    return Model(settings, embeddings, layers, tokenizer=tokenizer, name=name, sha256=sha256)


def _settings(fields: Fields, n_tensors: int, special_ids: Mapping[str, int]) -> tuple[ModelConfig, int]:
    """The configuration and the number of token types. Defaults are those of transformers' BertConfig."""
    fields.choice("position_embedding_type", "absolute", {"absolute": "absolute"})
    fields.absent("is_decoder", "A BERT decoder masks the future; it is not supported.")
    fields.absent("add_cross_attention", "Cross attention is not supported.")
    fields.absent("pruned_heads", "Save the model with all of its heads.")
    fields.absent("quantization_config", "Save the model dequantised.")
    d_model, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    if d_model % n_heads:
        fields.refuse(
            "hidden_size", expected=f"a multiple of num_attention_heads ({n_heads})", todo="Correct one."
        )
    n_layers = fields.integer("num_hidden_layers")
    if n_layers > n_tensors:  # before a list of names is made that no file could hold
        fields.refuse(
            "num_hidden_layers",
            expected=f"no more layers than the weights hold tensors ({n_tensors})",
            todo="Take the weights and the config.json that were saved together.",
        )
    vocab_size = fields.integer("vocab_size", 30522)
    settings = ModelConfig(
        family="bert",
        n_layers=n_layers,
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_model // n_heads,
        d_ff=fields.integer("intermediate_size"),
        vocab_size=vocab_size,
        max_positions=fields.integer("max_position_embeddings", 512),
        activation=fields.choice("hidden_act", "gelu", _ACTIVATIONS),
        norm_epsilon=fields.number("layer_norm_eps", 1e-12),
        pad_id=fields.token_id("pad_token_id", 0, vocab_size=vocab_size),
        sink_ids=_sink_ids(fields, special_ids, vocab_size),
    )
    return settings, fields.integer("type_vocab_size", 2)


def _sink_ids(fields: Fields, special_ids: Mapping[str, int], vocab_size: int) -> tuple[int, ...]:
    """[CLS] and [SEP], by the tokenizer or else by the configuration; what neither knows is left out."""
    found: list[int] = []
    for token in ("cls_token", "sep_token"):
        token_id = special_ids.get(token)
        if token_id is None:
            token_id = fields.token_id(f"{token}_id", None, vocab_size=vocab_size)
        elif token_id >= vocab_size:
            reject(
                f"tokenizer of {fields.source}",
                expected=f"token ids below vocab_size ({vocab_size})",
                found=f"{token} = {token_id}",
                todo="Take the tokenizer that was saved with the model.",
            )
        if token_id is not None and token_id not in found:
            found.append(token_id)
    return tuple(found)


def _canonical(stored: str) -> str | None:
    """A tensor's name without prefix and in today's spelling; None where it is no part of the encoder."""
    name = stored.removeprefix(_PREFIX)
    if name.startswith(_IGNORED) or name in _BUFFERS:
        return None
    for old, new in _OLD_NAMES.items():
        if name.endswith(f".{old}"):
            return name.removesuffix(old) + new
    return name


def _expected(settings: ModelConfig, token_types: int) -> dict[str, Shape]:
    """Names and shapes as a checkpoint stores them: a matrix is (output, input)."""
    width = settings.d_model
    sizes = {"d_model": width, "d_ff": settings.d_ff}
    shapes: dict[str, Shape] = {
        "embeddings.word_embeddings.weight": (settings.vocab_size, width),
        "embeddings.position_embeddings.weight": (settings.max_positions, width),
        "embeddings.token_type_embeddings.weight": (token_types, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for index in range(settings.n_layers):
        for _, stored, d_in, d_out in _LINEAR:
            shapes[f"encoder.layer.{index}.{stored}.weight"] = (sizes[d_out], sizes[d_in])
            shapes[f"encoder.layer.{index}.{stored}.bias"] = (sizes[d_out],)
        for _, stored in _NORMS:
            shapes[f"encoder.layer.{index}.{stored}.weight"] = (width,)
            shapes[f"encoder.layer.{index}.{stored}.bias"] = (width,)
    return shapes


def _norm(weights: Weights, stored: str) -> Norm:
    return Norm(weights[f"{stored}.weight"], weights[f"{stored}.bias"])


def _layer(weights: Weights, prefix: str) -> Layer:
    linear = {
        part: Linear(weights[f"{prefix}{stored}.weight"].T, weights[f"{prefix}{stored}.bias"])
        for part, stored, _, _ in _LINEAR
    }
    norms = {part: _norm(weights, f"{prefix}{stored}") for part, stored in _NORMS}
    return Layer(**linear, **norms)  # type: ignore[arg-type]
