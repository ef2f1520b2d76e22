"""Qwen2: Llama with biases of queries, keys and values, and with windows in the last layers if asked."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._decoder import FEED_FORWARD, decoder_layout, decoder_settings, late_windows
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names."""
    windows = late_windows(fields, checkpoint)
    settings = decoder_settings(fields, checkpoint, "qwen2", windows=windows)
    return settings, decoder_layout(settings, FEED_FORWARD | {"output"})
