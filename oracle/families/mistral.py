"""Mistral: Llama without biases, with one sliding window in all layers."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._decoder import ATTENTION, FEED_FORWARD, decoder_layout, decoder_settings
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; `sliding_window` may be null."""
    fields.absent("layer_types", "Windows that differ by layer belong to another architecture.")
    window = fields.optional_integer("sliding_window", 4096)
    n_layers = fields.layers("num_hidden_layers", len(checkpoint.tensors))
    windows = () if window is None else (window,) * n_layers
    n_kv_heads = fields.optional_integer("num_key_value_heads", 8)
    settings = decoder_settings(fields, checkpoint, "mistral", n_kv_heads=n_kv_heads, windows=windows)
    return settings, decoder_layout(settings, ATTENTION | FEED_FORWARD)
