"""OPT: learned positions from row 2 on, words of another width, norms before or (350m) after."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]

_LINEAR = {
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "output": "self_attn.out_proj",
    "up": "fc1",
    "down": "fc2",
}
_NORMS = {"attention_norm": "self_attn_layer_norm", "output_norm": "final_layer_norm"}
_PROJECTIONS = frozenset({"project_words", "project_out"})


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; a projection leads from the words' width to the blocks' and another one back."""
    fields.on("layer_norm_elementwise_affine", "Bare norms are not supported.")
    vocab_size, d_model = fields.integer("vocab_size", 50272), fields.integer("hidden_size")
    before = fields.flag("do_layer_norm_before", True)
    settings = ModelConfig(
        family="opt",
        n_layers=fields.layers("num_hidden_layers", len(checkpoint.tensors)),
        n_heads=fields.integer("num_attention_heads"),
        d_model=d_model,
        d_head=fields.per_head("hidden_size", "num_attention_heads"),
        d_ff=fields.integer("ffn_dim"),
        vocab_size=vocab_size,
        max_positions=fields.integer("max_position_embeddings", 2048),
        activation=fields.activation("activation_function", "relu"),
        norm_epsilon=1e-5,
        pad_id=fields.token_id("pad_token_id", 1, vocab_size=vocab_size),
        causal=True,
        norm_place="pre" if before else "post",
        position_offset=2,
        tied_head=fields.flag("tie_word_embeddings", True),
    )
    width = fields.optional_integer("word_embed_proj_dim", None) or d_model
    projected = width != d_model
    final = before and not fields.flag("_remove_final_layer_norm", False)
    layout = Layout(
        words="embed_tokens",
        positions="embed_positions",
        project_words="project_in" if projected else "",
        project_out="project_out" if projected else "",
        table_width=width,
        layers=tuple(f"layers.{index}." for index in range(settings.n_layers)),
        linear=_LINEAR,
        unbiased=_PROJECTIONS if fields.flag("enable_bias", True) else _PROJECTIONS | set(_LINEAR),
        norms=_NORMS,
        final_norm="final_layer_norm" if final else "",
        head="lm_head",
        prefixes=("model.", "decoder."),
    )
    return settings, layout
