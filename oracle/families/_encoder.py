"""What BERT and its kin share: settings, the default sink set, the names of a block's parts."""

from __future__ import annotations

from typing import Any

from oracle._checks import reject
from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["OLD_NORMS", "encoder_layout", "encoder_settings", "sink_ids"]

OLD_NORMS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}

_LINEAR = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
}
_NORMS = {"attention_norm": "attention.output.LayerNorm", "output_norm": "output.LayerNorm"}
# Heads on top of the encoder, and buffers that merely count: attention never sees them.
_IGNORED = (
    "cls.",
    "lm_head.",
    "pooler.",
    "classifier.",
    "qa_outputs.",
    "discriminator_predictions.",
    "generator_predictions.",
    "generator_lm_head.",
)
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")


def encoder_settings(fields: Fields, checkpoint: Checkpoint, family: str, **changes: Any) -> ModelConfig:
    """The configuration under BERT's names of fields; defaults are those of transformers' BertConfig.

    `changes` are fields of ModelConfig that a family reads for itself.
    """
    fields.choice("position_embedding_type", "absolute", {"absolute": "absolute"})
    fields.absent("is_decoder", "A decoder of this kind masks the future; it is not supported.")
    fields.absent("add_cross_attention", "Cross attention is not supported.")
    vocab_size = fields.integer("vocab_size", 30522)
    d_head = fields.per_head("hidden_size", "num_attention_heads")
    if "n_layers" not in changes:
        changes["n_layers"] = fields.layers("num_hidden_layers", len(checkpoint.tensors))
    settings: dict[str, Any] = {
        "n_heads": fields.integer("num_attention_heads"),
        "d_model": fields.integer("hidden_size"),
        "d_head": d_head,
        "d_ff": fields.integer("intermediate_size"),
        "vocab_size": vocab_size,
        "max_positions": fields.integer("max_position_embeddings", 512),
        "activation": fields.activation("hidden_act", "gelu"),
        "norm_epsilon": fields.number("layer_norm_eps", 1e-12),
        "pad_id": fields.token_id("pad_token_id", 0, vocab_size=vocab_size),
        "sink_ids": sink_ids(fields, checkpoint, vocab_size),
    }
    return ModelConfig(family=family, **(settings | changes))


def encoder_layout(fields: Fields, settings: ModelConfig, **changes: Any) -> Layout:
    """Names under which BERT, RoBERTa and ELECTRA store their parts, behind the family's own prefix."""
    layout: dict[str, Any] = {
        "words": "embeddings.word_embeddings",
        "positions": "embeddings.position_embeddings",
        "token_types": "embeddings.token_type_embeddings",
        "n_token_types": fields.integer("type_vocab_size", 2),
        "embedding_norm": "embeddings.LayerNorm",
        "layers": tuple(f"encoder.layer.{index}." for index in range(settings.n_layers)),
        "linear": _LINEAR,
        "norms": _NORMS,
        "prefixes": (f"{settings.family}.",),
        "renamed": OLD_NORMS,
        "ignored": _IGNORED,
        "buffers": _BUFFERS,
    }
    return Layout(**(layout | changes))


def sink_ids(
    fields: Fields,
    checkpoint: Checkpoint,
    vocab_size: int,
    otherwise: tuple[str, str] = ("cls_token_id", "sep_token_id"),
) -> tuple[int, ...]:
    """[CLS] and [SEP], by the tokenizer or else by the configuration; what neither knows is left out.

    `otherwise` names the configuration's fields for the two.
    """
    found: list[int] = []
    for token, field in zip(("cls_token", "sep_token"), otherwise, strict=True):
        token_id = checkpoint.special_ids.get(token)
        if token_id is None:
            token_id = fields.token_id(field, None, vocab_size=vocab_size)
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
