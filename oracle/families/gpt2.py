"""GPT-2: learned positions, norms before, one (input, output) matrix for queries, keys and values."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]

_LINEAR = {"output": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
_NORMS = {"attention_norm": "ln_1", "output_norm": "ln_2"}
# Names that transformers takes for these as well.
_ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; scores may be left unscaled, or be divided by the number of their layer as well."""
    fields.absent("add_cross_attention", "Cross attention is not supported.")
    fields = fields.with_aliases(_ALIASES)
    vocab_size, d_model = fields.integer("vocab_size", 50257), fields.integer("n_embd")
    settings = ModelConfig(
        family="gpt2",
        n_layers=fields.layers("n_layer", len(checkpoint.tensors)),
        n_heads=fields.integer("n_head"),
        d_model=d_model,
        d_head=fields.per_head("n_embd", "n_head"),
        d_ff=fields.optional_integer("n_inner", None) or 4 * d_model,
        vocab_size=vocab_size,
        max_positions=fields.integer("n_positions", 1024),
        activation=fields.activation("activation_function", "gelu_new"),
        norm_epsilon=fields.number("layer_norm_epsilon", 1e-5),
        pad_id=fields.token_id("pad_token_id", None, vocab_size=vocab_size),
        causal=True,
        norm_place="pre",
        score_scalar=None if fields.flag("scale_attn_weights", True) else 1.0,
        score_by_layer=fields.flag("scale_attn_by_inverse_layer_idx", False),
        tied_head=fields.flag("tie_word_embeddings", True),
    )
    layout = Layout(
        words="wte",
        positions="wpe",
        layers=tuple(f"h.{index}." for index in range(settings.n_layers)),
        linear=_LINEAR,
        fused="attn.c_attn",
        input_first=True,
        norms=_NORMS,
        final_norm="ln_f",
        head="lm_head",
        prefixes=("transformer.",),
        buffers=(".attn.bias", ".attn.masked_bias"),
    )
    return settings, layout
