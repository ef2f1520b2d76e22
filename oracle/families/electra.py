"""ELECTRA: BERT whose tables may be narrower than its blocks."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._encoder import encoder_layout, encoder_settings
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; the default sink set is {[CLS], [SEP]}."""
    settings = encoder_settings(fields, checkpoint, "electra")
    width = fields.integer("embedding_size", 128)
    project = "embeddings_project" if width != settings.d_model else ""
    return settings, encoder_layout(fields, settings, table_width=width, project=project)
