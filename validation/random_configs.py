"""Two odd-sized configurations of every family, the first of each with every supported quirk switched on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["RANDOM_CONFIGS"]

Config = Mapping[str, Any]

_LINEAR = {"rope_type": "linear", "rope_theta": 500.0, "factor": 3.0}
_PLAIN = {"rope_type": "default", "rope_theta": 700.0}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def _sizes(width: int, heads: int, layers: int = 3, vocabulary: int = 101, **others: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": layers}
    return sizes | {"vocab_size": vocabulary, "max_position_embeddings": 61, **others}


def _encoder(width: int, heads: int, layers: int = 3, **others: Any) -> dict[str, Any]:
    return _sizes(width, heads, layers, intermediate_size=29, layer_norm_eps=3e-5, **others)


def _decoder(width: int, heads: int, shared: int, **others: Any) -> dict[str, Any]:
    own = {"num_key_value_heads": shared, "intermediate_size": 29, "rms_norm_eps": 3e-5}
    return _sizes(width, heads, **(own | others))


RANDOM_CONFIGS: Mapping[str, tuple[Config, Config]] = {
    "albert": (
        _encoder(35, 5, embedding_size=11, num_hidden_groups=2, type_vocab_size=3),
        _encoder(21, 3, 2, embedding_size=13, inner_group_num=2, hidden_act="relu"),
    ),
    "bert": (
        _encoder(35, 5, type_vocab_size=3, hidden_act="gelu_new"),
        _encoder(21, 3, 2, hidden_act="relu"),
    ),
    "distilbert": (
        {
            "vocab_size": 101,
            "dim": 35,
            "n_layers": 3,
            "n_heads": 5,
            "hidden_dim": 29,
            "max_position_embeddings": 61,
            "activation": "relu",
            "pad_token_id": 3,
            "sinusoidal_pos_embds": True,
        },
        {
            "vocab_size": 97,
            "dim": 21,
            "n_layers": 2,
            "n_heads": 3,
            "hidden_dim": 31,
            "max_position_embeddings": 67,
        },
    ),
    "electra": (
        _encoder(35, 5, embedding_size=11, type_vocab_size=3, hidden_act="relu"),
        _encoder(21, 3, 2, embedding_size=21),
    ),
    "gemma2": (
        _decoder(
            36,
            6,
            2,
            head_dim=10,
            attention_bias=True,
            sliding_window=5,
            query_pre_attn_scalar=7,
            attn_logit_softcapping=19.0,
            final_logit_softcapping=3.0,
            rope_parameters=_LINEAR,
        ),
        _decoder(
            33,
            3,
            1,
            head_dim=14,
            attn_logit_softcapping=None,
            final_logit_softcapping=None,
            hidden_activation="silu",
            sliding_window=11,
            layer_types=["full_attention", "full_attention", "sliding_attention"],
            tie_word_embeddings=False,
            rope_parameters=_PLAIN,
        ),
    ),
    "gpt2": (
        {
            "vocab_size": 101,
            "n_embd": 35,
            "n_layer": 3,
            "n_head": 5,
            "n_positions": 61,
            "n_inner": 29,
            "layer_norm_epsilon": 3e-5,
            "scale_attn_by_inverse_layer_idx": True,
            "tie_word_embeddings": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {
            "vocab_size": 97,
            "n_embd": 22,
            "n_layer": 2,
            "n_head": 2,
            "n_positions": 67,
            "activation_function": "relu",
            "scale_attn_weights": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    "gpt_neox": (
        _encoder(60, 5, rope_parameters=_LINEAR | {"partial_rotary_factor": 0.5}),
        _encoder(
            33,
            3,
            2,
            use_parallel_residual=False,
            attention_bias=False,
            tie_word_embeddings=True,
            hidden_act="gelu_new",
            rope_parameters=_PLAIN | {"partial_rotary_factor": 0.37},
        ),
    ),
    "llama": (
        _decoder(40, 4, 2, head_dim=14, attention_bias=True, mlp_bias=True, rope_parameters=_LLAMA3),
        _decoder(50, 5, 5, vocabulary=97, tie_word_embeddings=True, hidden_act="gelu"),
    ),
    "mistral": (
        _decoder(36, 6, 2, head_dim=10, sliding_window=5, rope_parameters=_LINEAR),
        _decoder(
            30, 3, 3, sliding_window=None, tie_word_embeddings=True, hidden_act="gelu", rope_parameters=_PLAIN
        ),
    ),
    "opt": (
        _sizes(35, 5, ffn_dim=29, word_embed_proj_dim=11, do_layer_norm_before=False),
        _sizes(
            21, 3, 2, ffn_dim=31, activation_function="gelu", enable_bias=False, tie_word_embeddings=False
        ),
    ),
    "qwen2": (
        _decoder(
            30,
            5,
            1,
            use_sliding_window=True,
            sliding_window=7,
            max_window_layers=1,
            rope_parameters=_LINEAR,
        ),
        _decoder(42, 3, 3, vocabulary=97, tie_word_embeddings=True, rope_parameters=_PLAIN),
    ),
    "qwen3": (
        _decoder(
            35,
            6,
            3,
            head_dim=14,
            attention_bias=True,
            use_sliding_window=True,
            sliding_window=7,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters=_LINEAR,
        ),
        _decoder(33, 3, 1, head_dim=10, vocabulary=97, tie_word_embeddings=True, rope_parameters=_PLAIN),
    ),
    "roberta": (
        _encoder(35, 5, type_vocab_size=3, pad_token_id=5, hidden_act="gelu_new"),
        _encoder(21, 3, 2, type_vocab_size=1),
    ),
}
"""Fields of transformers' configurations by `model_type`."""
