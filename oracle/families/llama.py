"""Llama (also SmolLM2): the plain member of its kin."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._decoder import ATTENTION, FEED_FORWARD, decoder_layout, decoder_settings
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; all maps of attention, or of the feed-forward network, have a bias or none has."""
    settings = decoder_settings(fields, checkpoint, "llama")
    unbiased = frozenset() if fields.flag("attention_bias", False) else ATTENTION
    if not fields.flag("mlp_bias", False):
        unbiased |= FEED_FORWARD
    return settings, decoder_layout(settings, unbiased)
