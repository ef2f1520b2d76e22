"""DistilBERT: BERT without token types, under other names."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._encoder import OLD_NORMS, sink_ids
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]

_LINEAR = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "output": "attention.out_lin",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
}
_NORMS = {"attention_norm": "sa_layer_norm", "output_norm": "output_layer_norm"}
# Names that transformers takes for these as well.
_ALIASES = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; the default sink set is {[CLS], [SEP]}."""
    fields = fields.with_aliases(_ALIASES)
    vocab_size = fields.integer("vocab_size", 30522)
    settings = ModelConfig(
        family="distilbert",
        n_layers=fields.layers("n_layers", len(checkpoint.tensors)),
        n_heads=fields.integer("n_heads"),
        d_model=fields.integer("dim"),
        d_head=fields.per_head("dim", "n_heads"),
        d_ff=fields.integer("hidden_dim"),
        vocab_size=vocab_size,
        max_positions=fields.integer("max_position_embeddings", 512),
        activation=fields.activation("activation", "gelu"),
        norm_epsilon=1e-12,
        pad_id=fields.token_id("pad_token_id", 0, vocab_size=vocab_size),
        sink_ids=sink_ids(fields, checkpoint, vocab_size),
    )
    layout = Layout(
        words="embeddings.word_embeddings",
        positions="embeddings.position_embeddings",
        embedding_norm="embeddings.LayerNorm",
        layers=tuple(f"transformer.layer.{index}." for index in range(settings.n_layers)),
        linear=_LINEAR,
        norms=_NORMS,
        prefixes=("distilbert.",),
        renamed=OLD_NORMS,
        ignored=("vocab_", "pre_classifier.", "classifier.", "qa_outputs."),
        buffers=("embeddings.position_ids",),
    )
    return settings, layout
