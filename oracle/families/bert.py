"""BERT: learned absolute positions, token types, a norm after each residual sum."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._encoder import encoder_layout, encoder_settings
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; the default sink set is {[CLS], [SEP]}."""
    settings = encoder_settings(fields, checkpoint, "bert")
    return settings, encoder_layout(fields, settings)
