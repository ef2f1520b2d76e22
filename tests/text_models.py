"""Small models that read text, traces made by hand, and what a printed table takes on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from oracle import Model, ModelConfig, Trace
from oracle.model import Embeddings, Layer, Linear, Norm
from validation.report.document import Column, Part, Table

VOCABULARY = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "doctor", "nurse", "saw", "she", "a", "donkey", "sleep"),
    *("##s", "##ing", "walk", ".", ",", "!", '"', "'"),
)
CLS, SEP = 2, 3


def small_tokenizer() -> Tokenizer:
    """Word pieces of VOCABULARY, [CLS] and [SEP] around them, nothing for control characters."""
    vocabulary = {token: index for index, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", CLS), ("[SEP]", SEP)]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token, _ in ends])
    return tokenizer


def small_model(seed: int = 0, max_positions: int = 31) -> Model:
    """2 layers of 3 heads, every parameter drawn, so that rows are far from uniform; float64."""
    rng = np.random.default_rng(seed)
    heads, d_head, d_ff = 3, 5, 7
    wide = heads * d_head

    def linear(d_in: int, d_out: int) -> Linear:
        return Linear(rng.normal(0, 0.5, (d_in, d_out)), rng.normal(0, 0.5, d_out))

    def norm() -> Norm:
        return Norm(rng.normal(1, 0.3, wide), rng.normal(0, 0.5, wide))

    def layer() -> Layer:
        square = [linear(wide, wide) for _ in range(4)]
        return Layer(*square, norm(), linear(wide, d_ff), linear(d_ff, wide), norm())

    tables = [rng.normal(0, 0.5, (rows, wide)) for rows in (len(VOCABULARY), max_positions, 2)]
    sizes = (2, heads, wide, d_head, d_ff, len(VOCABULARY), max_positions)
    config = ModelConfig("bert", *sizes, "gelu", 1e-12, 0, (CLS, SEP))
    return Model(config, Embeddings(*tables, norm()), (layer(), layer()), small_tokenizer(), "small")


def hand_trace(text: str, attention: Any, value_norm: Any = None, transformed_norm: Any = None) -> Trace:
    """A trace of `text` with rows (layer, head, query, key) and norms (layer, head, key) that are given."""
    encoding = small_tokenizer().encode(text)
    rows = np.asarray(attention, dtype=np.float64)
    count, ids = len(encoding.ids), np.asarray(encoding.ids)
    assert rows.shape[-2:] == (count, count), f"{text!r} has {count} tokens"
    ones = np.ones((*rows.shape[:2], count))
    norms = [
        ones if norm is None else np.broadcast_to(norm, ones.shape) for norm in (value_norm, transformed_norm)
    ]
    gram = np.zeros((len(rows), count, rows.shape[1], rows.shape[1]))
    kept = {"attention": rows, "value_norm": norms[0], "transformed_norm": norms[1], "transformed_gram": gram}
    gram += np.einsum("lhk,lgk->lkhg", norms[1], norms[1])  # as if all heads wrote in one direction
    mask, sinks = np.ones(count, bool), np.isin(ids, (CLS, SEP))
    visible = np.ones((count, count), bool)
    offsets = tuple(encoding.offsets)
    return Trace(tuple(encoding.tokens), ids, mask, sinks, visible, text, offsets, (), kept)


def by_key(parts: Iterable[Part]) -> dict[str, Any]:
    """Parts by their key, the last one where a key comes twice."""
    return {part.key: part for part in parts}


def width(table: Table) -> int:
    """Characters of a table's rows on the screen: every column as wide as it needs, two spaces between."""

    def spell(value: Any, column: Column) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        plain = isinstance(value, float) and column.format.endswith("d")
        return str(value) if plain else format(value, column.format)

    def widest(place: int, column: Column) -> int:
        cells = [spell(row[place], column) for row in table.rows]
        return max(map(len, [*cells, *column.heading.split()]))

    needed: Sequence[int] = [widest(place, column) for place, column in enumerate(table.columns)]
    return sum(needed) + 2 * (len(needed) - 1)
