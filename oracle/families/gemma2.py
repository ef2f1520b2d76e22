"""Gemma 2: norms before and after each half of a block, caps, windows in every other layer."""

from __future__ import annotations

import math
from dataclasses import replace

from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._decoder import ATTENTION, FEED_FORWARD, decoder_layout, decoder_settings, layer_windows
from oracle.families._layout import Layout
from oracle.model import ModelConfig

__all__ = ["plan"]


def plan(fields: Fields, checkpoint: Checkpoint) -> tuple[ModelConfig, Layout]:
    """Settings and names; norms scale by one plus their weight, embeddings by the root of their width."""
    fields.absent("use_bidirectional_attention", "Only causal models of this kind are supported.")
    n_layers = fields.layers("num_hidden_layers", len(checkpoint.tensors))
    window = fields.integer("sliding_window", 4096)
    vocab_size = fields.integer("vocab_size", 256000)
    settings = decoder_settings(
        fields,
        checkpoint,
        "gemma2",
        vocab_size=vocab_size,
        d_head=fields.integer("head_dim", 256),
        n_kv_heads=fields.integer("num_key_value_heads", 4),
        max_positions=fields.integer("max_position_embeddings", 8192),
        activation=fields.activation("hidden_activation", "gelu_pytorch_tanh"),
        pad_id=fields.token_id("pad_token_id", 0, vocab_size=vocab_size),
        windows=layer_windows(fields, n_layers, window, lambda index: index % 2 == 0),
        norm_kind="rms_plus_one",
        norm_place="both",
        score_scalar=fields.number("query_pre_attn_scalar", 256),
        score_cap=fields.optional_number("attn_logit_softcapping", 50.0),
        logit_cap=fields.optional_number("final_logit_softcapping", 30.0),
        tied_head=fields.flag("tie_word_embeddings", True),
    )
    layout = decoder_layout(
        settings,
        FEED_FORWARD if fields.flag("attention_bias", False) else FEED_FORWARD | ATTENTION,
        attention_post_norm="post_attention_layernorm",
        output_norm="pre_feedforward_layernorm",
        output_post_norm="post_feedforward_layernorm",
    )
    return settings, replace(layout, embedding_scale=math.sqrt(settings.d_model))
