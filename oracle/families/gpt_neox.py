"""GPT-NeoX (also Pythia): fused head by head, a part of each head turns, halves of a block in parallel."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._layout import Layout
from oracle.families._rotary import read_rotary
from oracle.model import ModelConfig

__all__ = ["plan"]

_LINEAR = {"output": "attention.dense", "up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h"}
_NORMS = {"attention_norm": "input_layernorm", "output_norm": "post_attention_layernorm"}


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; in older files rotary positions are `rotary_emb_base` and `rotary_pct`."""
    vocab_size = fields.integer("vocab_size", 50432)
    d_head = fields.per_head("hidden_size", "num_attention_heads")
    fields.alike("head_dim", "hidden_size / num_attention_heads", d_head)  # it would turn another part
    settings = ModelConfig(
        family="gpt_neox",
        n_layers=fields.layers("num_hidden_layers", len(checkpoint.tensors)),
        n_heads=fields.integer("num_attention_heads"),
        d_model=fields.integer("hidden_size"),
        d_head=d_head,
        d_ff=fields.integer("intermediate_size"),
        vocab_size=vocab_size,
        max_positions=fields.integer("max_position_embeddings", 2048),
        activation=fields.activation("hidden_act", "gelu"),
        norm_epsilon=fields.number("layer_norm_eps", 1e-5),
        pad_id=fields.token_id("pad_token_id", None, vocab_size=vocab_size),
        causal=True,
        norm_place="pre",
        parallel_residual=fields.flag("use_parallel_residual", True),
        rotary=read_rotary(fields, d_head, base="rotary_emb_base", part="rotary_pct", default_part=0.25),
        tied_head=fields.flag("tie_word_embeddings", False),
    )
    layout = Layout(
        words="embed_in",
        layers=tuple(f"layers.{index}." for index in range(settings.n_layers)),
        linear=_LINEAR,
        fused="attention.query_key_value",
        fused_by_head=True,
        unbiased=frozenset() if fields.flag("attention_bias", True) else frozenset({"fused", "output"}),
        norms=_NORMS,
        final_norm="final_layer_norm",
        head="lm_head",
        prefixes=("gpt_neox.",),
        renamed={"embed_out.weight": "lm_head.weight"},
        buffers=("attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"),
    )
    return settings, layout
