"""Qwen3: Llama with a norm of each head's queries and keys, and heads of a width of their own."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._decoder import ATTENTION, FEED_FORWARD, decoder_layout, decoder_settings, late_windows
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; windows as in Qwen2."""
    settings = decoder_settings(
        fields,
        checkpoint,
        "qwen3",
        d_head=fields.integer("head_dim", 128),
        windows=late_windows(fields, checkpoint),
    )
    unbiased = FEED_FORWARD if fields.flag("attention_bias", False) else FEED_FORWARD | ATTENTION
    norms = {"query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"}
    return settings, decoder_layout(settings, unbiased, **norms)
