"""What Llama and its kin share: RMSNorm before each half of a block, rotary positions, gates, shared keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._layout import Layout
from oracle.families._rotary import read_rotary
from oracle.model import ModelConfig

__all__ = ["ATTENTION", "FEED_FORWARD", "decoder_layout", "decoder_settings", "late_windows", "layer_windows"]

ATTENTION = frozenset({"query", "key", "value", "output"})
FEED_FORWARD = frozenset({"gate", "up", "down"})

_LINEAR = {
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "output": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
_NORMS = {"attention_norm": "input_layernorm", "output_norm": "post_attention_layernorm"}


def decoder_settings(fields: Fields, checkpoint: Checkpoint, family: str, **changes: Any) -> ModelConfig:
    """The configuration under Llama's names of fields; defaults are those of transformers' LlamaConfig.

    `changes` are fields of ModelConfig that a family reads for itself.
    """
    vocab_size, n_heads = fields.integer("vocab_size", 32000), fields.integer("num_attention_heads")
    d_head = changes.get("d_head") or fields.optional_integer("head_dim", None)
    if d_head is None:
        d_head = fields.per_head("hidden_size", "num_attention_heads")
    n_kv_heads = changes.pop("n_kv_heads", None) or fields.optional_integer("num_key_value_heads", None)
    n_kv_heads = n_kv_heads or n_heads
    if n_heads % n_kv_heads:
        fields.refuse(
            "num_key_value_heads",
            expected=f"a divisor of num_attention_heads ({n_heads})",
            todo="Correct one.",
        )
    settings: dict[str, Any] = {
        "n_layers": fields.layers("num_hidden_layers", len(checkpoint.tensors)),
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "d_model": fields.integer("hidden_size"),
        "d_head": d_head,
        "d_ff": fields.integer("intermediate_size"),
        "vocab_size": vocab_size,
        "max_positions": fields.integer("max_position_embeddings", 2048),
        "activation": fields.activation("hidden_act", "silu"),
        "norm_epsilon": fields.number("rms_norm_eps", 1e-6),
        "pad_id": fields.token_id("pad_token_id", None, vocab_size=vocab_size),
        "causal": True,
        "norm_kind": "rms",
        "norm_place": "pre",
        "rotary": read_rotary(fields, d_head, whole=True),
        "tied_head": fields.flag("tie_word_embeddings", False),
    }
    return ModelConfig(family=family, **(settings | changes))


def decoder_layout(settings: ModelConfig, unbiased: frozenset[str], **norms: str) -> Layout:
    """Names under which all of them store their parts; `norms` are those beside or instead of Llama's two."""
    return Layout(
        words="embed_tokens",
        layers=tuple(f"layers.{index}." for index in range(settings.n_layers)),
        linear=_LINEAR,
        norms=_NORMS | norms,
        unbiased=unbiased,
        final_norm="norm",
        head="lm_head",
        prefixes=("model.",),
        buffers=("rotary_emb.inv_freq",),
    )


def layer_windows(
    fields: Fields, n_layers: int, window: int | None, sliding: Callable[[int], bool]
) -> tuple[int | None, ...]:
    """The window of each layer: `layer_types` says which have one, or else `sliding` of a layer's index.

    Without any it is empty.
    """
    kinds, known = fields.get("layer_types"), ("sliding_attention", "full_attention")
    if kinds is not None:
        allowed = known[1:] if window is None else known
        if (
            not isinstance(kinds, list)
            or len(kinds) != n_layers
            or any(kind not in allowed for kind in kinds)
        ):
            fields.refuse(
                "layer_types",
                expected=f"{' or '.join(allowed)} for each of {n_layers} layers",
                todo="Take the config.json that was saved with the model.",
            )
        sliding = [kind == known[0] for kind in kinds].__getitem__
    windows = tuple(window if sliding(index) else None for index in range(n_layers))
    return windows if any(windows) else ()


def late_windows(fields: Fields, checkpoint: Checkpoint) -> tuple[int | None, ...]:
    """The windows of Qwen: where `use_sliding_window` asks for them, from layer `max_window_layers` on."""
    n_layers = fields.layers("num_hidden_layers", len(checkpoint.tensors))
    window = None
    if fields.flag("use_sliding_window", False):
        window = fields.optional_integer("sliding_window", 4096)
    first = fields.integer("max_window_layers", 28, minimum=0)
    return layer_windows(fields, n_layers, window, lambda index: index >= first)
