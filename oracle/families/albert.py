"""ALBERT: narrow tables, and a few blocks that are run again and again."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._encoder import encoder_layout, encoder_settings
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]

_LINEAR = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "output": "attention.dense",
    "up": "ffn",
    "down": "ffn_output",
}
_NORMS = {"attention_norm": "attention.LayerNorm", "output_norm": "full_layer_layer_norm"}
_MOST = 1000  # layers: the tensors of shared ones set no limit


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; layers are dealt out to groups in order, each of which runs all of its blocks."""
    runs = fields.integer("num_hidden_layers")
    groups, inner = fields.integer("num_hidden_groups", 1), fields.integer("inner_group_num", 1)
    if not max(groups, runs * inner) <= _MOST or groups > runs:
        fields.refuse(
            "num_hidden_groups",
            expected=f"no more groups than layers ({runs}), and no more than {_MOST} blocks run",
            todo="Take the config.json that was saved with the model.",
        )
    settings = encoder_settings(
        fields,
        checkpoint,
        "albert",
        n_layers=runs * inner,
        activation=fields.activation("hidden_act", "gelu_new"),
    )
    order = [(int(run / (runs / groups)), block) for run in range(runs) for block in range(inner)]
    layout = encoder_layout(
        fields,
        settings,
        table_width=fields.integer("embedding_size", 128),
        project="encoder.embedding_hidden_mapping_in",
        layers=tuple(f"encoder.albert_layer_groups.{g}.albert_layers.{b}." for g, b in order),
        linear=_LINEAR,
        norms=_NORMS,
        ignored=("pooler.", "predictions.", "sop_classifier.", "classifier.", "qa_outputs."),
    )
    return settings, layout
