"""Small models and a small tokenizer that tests build in memory, with sizes that no two axes share."""

from __future__ import annotations

from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from oracle.model import Embeddings, Layer, Linear, Model, ModelConfig, Norm

PAD, UNK, CLS, SEP = range(4)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def random_model(
    seed: int = 0,
    *,
    n_layers: int = 2,
    n_heads: int = 3,
    d_head: int = 5,
    d_model: int = 13,
    d_ff: int = 19,
    vocab_size: int = 61,
    max_positions: int = 37,
    n_types: int = 3,
    spread: float = 0.5,
    tokenizer: Any = None,
    **choices: Any,
) -> Model:
    """A float64 BERT with every parameter drawn, biases and norm weights too, so that rows are peaked.

    `choices` are further fields of ModelConfig.
    """
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return spread * rng.standard_normal(shape)

    def linear(d_in: int, d_out: int) -> Linear:
        return Linear(draw(d_in, d_out), draw(d_out))

    def norm() -> Norm:
        return Norm(1 + draw(d_model), draw(d_model))

    wide = n_heads * d_head
    layers = tuple(
        Layer(
            query=linear(d_model, wide),
            key=linear(d_model, wide),
            value=linear(d_model, wide),
            output=linear(wide, d_model),
            attention_norm=norm(),
            up=linear(d_model, d_ff),
            down=linear(d_ff, d_model),
            output_norm=norm(),
        )
        for _ in range(n_layers)
    )
    config = ModelConfig(
        family="bert",
        n_layers=n_layers,
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_head,
        d_ff=d_ff,
        vocab_size=vocab_size,
        max_positions=max_positions,
        activation="gelu",
        norm_epsilon=1e-12,
        pad_id=PAD,
        sink_ids=(CLS, SEP),
        **choices,
    )
    tables = Embeddings(
        draw(vocab_size, d_model), draw(max_positions, d_model), draw(n_types, d_model), norm()
    )
    return Model(config, tables, layers, tokenizer, name="random")


def arrays_in(node: Any) -> list[np.ndarray]:
    """Every array of nested dataclasses and tuples, in order."""
    if isinstance(node, np.ndarray):
        return [node]
    if node is None or isinstance(node, float):
        return []
    parts = node if isinstance(node, tuple) else vars(node).values()
    return [array for part in parts for array in arrays_in(part)]


def weights_of(model: Model) -> list[np.ndarray]:
    """Every array of a model, in order."""
    return arrays_in((model.embeddings, model.layers, model.head))


def letter_tokenizer() -> Tokenizer:
    """A BERT tokenizer whose word pieces are single letters: 61 entries, everything else is [UNK]."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{x}" for x in LETTERS), *"'!.,-"]
    tokenizer = Tokenizer(
        models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    tokenizer.add_special_tokens([AddedToken(piece, special=True) for piece in pieces[:4]])
    return tokenizer


def random_rows(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Peaked attention rows: softmax of wide random scores, written out here."""
    weights = np.exp(3 * rng.standard_normal(shape))
    return weights / weights.sum(axis=-1, keepdims=True)
