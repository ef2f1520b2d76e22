"""A small random Llama that reads text, built in memory: rotary, shared keys, tied words."""

from __future__ import annotations

from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from oracle.model import Embeddings, Head, Layer, Linear, Model, ModelConfig, Norm, Rotary


def byte_tokenizer() -> Tokenizer:
    """One token for each byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: place for place, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def tiny_llama(seed: int = 0, max_positions: int = 43, **choices: Any) -> Model:
    """5 layers of 4 heads over 2 key/value heads, every parameter drawn; float32."""
    rng = np.random.default_rng(seed)
    n_heads, n_shared, d_head, d_model, d_ff, vocabulary = 4, 2, 6, 22, 29, 256

    def linear(d_in: int, d_out: int, spread: float = 0.5) -> Linear:
        return Linear(rng.normal(0, spread, (d_in, d_out)).astype(np.float32))

    def norm() -> Norm:
        return Norm(rng.uniform(0.5, 1.5, d_model).astype(np.float32))

    layers = tuple(
        Layer(
            query=linear(d_model, n_heads * d_head, 0.9),
            key=linear(d_model, n_shared * d_head, 0.9),
            value=linear(d_model, n_shared * d_head),
            output=linear(n_heads * d_head, d_model, 0.3),
            attention_norm=norm(),
            up=linear(d_model, d_ff),
            down=linear(d_ff, d_model, 0.1),
            output_norm=norm(),
            gate=linear(d_model, d_ff),
        )
        for _ in range(5)
    )
    sizes = (5, n_heads, d_model, d_head, d_ff, vocabulary, max_positions)
    settings: dict[str, Any] = {
        "n_kv_heads": n_shared,
        "causal": True,
        "norm_kind": "rms",
        "norm_place": "pre",
        "rotary": Rotary(100.0, d_head),
        "tied_head": True,
    }
    config = ModelConfig("llama", *sizes, "silu", 1e-5, **settings | choices)
    words = rng.normal(0, 0.5, (vocabulary, d_model)).astype(np.float32)
    return Model(config, Embeddings(words), layers, byte_tokenizer(), "tiny", head=Head(norm()))
