"""RoBERTa: BERT whose positions start after the padding id, at which padding stands."""

from __future__ import annotations

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._encoder import encoder_layout, encoder_settings, sink_ids
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; the default sink set is {<s>, </s>}."""
    vocab_size = fields.integer("vocab_size", 50265)
    pad_id = fields.token_id("pad_token_id", 1, vocab_size=vocab_size)
    rows = fields.integer("max_position_embeddings", 512)
    if pad_id is None or pad_id + 1 >= rows:
        fields.refuse("pad_token_id", expected=f"an id below {rows - 1}: positions follow it", todo="Set it.")
    settings = encoder_settings(
        fields,
        checkpoint,
        "roberta",
        vocab_size=vocab_size,
        pad_id=pad_id,
        max_positions=rows - pad_id - 1,
        position_offset=pad_id + 1,
        positions_skip_pad=True,
        sink_ids=sink_ids(fields, checkpoint, vocab_size, ("bos_token_id", "eos_token_id")),
    )
    return settings, encoder_layout(fields, settings)
