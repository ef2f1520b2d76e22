"""What trials run on: seeded arrays, a small model drawn at random, and a second opinion on another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import Model, ModelConfig, Trace, Unavailable, Unit, forward, weighted_rows
from oracle._checks import InputError
from oracle.loading import load_model
from oracle.model import Embeddings, Layer, Linear, Norm
from validation.mutants.distance_subjects import HeadTexts, RowPair, head_texts, matrices, row_pair
from validation.texts import SENTENCES

__all__ = ["NO_SINK", "Judged", "Rows", "Subjects", "Text", "random_model", "token_ids"]

Array = NDArray[Any]

NO_SINK = "There is no sink in these texts: the tokenizer adds no special token."

_SEED = 4
# Prime sizes that all differ, so that no axis passes for another; large weights, so that rows are sharp.
_LAYERS, _HEADS, _D_HEAD, _D_FF, _TOKENS, _PADDING = 3, 5, 7, 23, 13, 2
_UNITS = (
    Unit("[CLS]", "sink", (0,)),
    Unit("one", "word", (1,)),
    Unit("pieces", "word", (2, 3, 4)),
    Unit(",", "punctuation", (5,)),
    Unit("two", "word", (6, 7)),
    Unit("three", "word", (8, 9)),
    Unit(".", "punctuation", (10,)),
    Unit("[SEP]", "sink", (11,)),
)


class Rows(NamedTuple):
    """Sharp random rows with padding whose weights and norms are garbage."""

    attention: Array  # (layer, head, query, key)
    sink_mask: NDArray[np.bool_]  # (key,)
    norm: Array  # (layer, head, key)
    visible: NDArray[np.bool_]  # (key,)

    def real(self) -> tuple[Array, Array, Array]:
        """Attention, sink mask and norm of the visible keys alone."""
        seen = self.visible
        return self.attention[..., seen], self.sink_mask[seen], self.norm[..., seen]


class Text(NamedTuple):
    """Rows of a text in pieces, by weighting, each (layer, head, query, key), and its units."""

    weights: dict[str, Array]
    units: tuple[Unit, ...]


class Judged(NamedTuple):
    """A model, what it was given, and what PyTorch made of the same weights."""

    model: Model
    token_ids: Array  # (token,)
    mask: NDArray[np.bool_]  # (token,)
    token_types: Array  # (token,)
    stages: dict[str, Array]  # without the batch axis


@dataclass(frozen=True)
class Subjects:
    """The inputs of all trials; `model` and `texts` are the user's, everything else is seeded."""

    model: Model
    texts: Sequence[str | Sequence[int]] | None = None

    @cached_property
    def rows(self) -> Rows:
        """Seeded attention rows; three kinds of norm ratios occur (below, near and above one)."""
        rng = np.random.default_rng(_SEED)
        real = _TOKENS - _PADDING
        attention = np.exp(rng.normal(0, 2, (2, _HEADS, _TOKENS, _TOKENS)))
        attention /= attention[..., :real].sum(axis=-1, keepdims=True)
        norm = rng.uniform(0.2, 3, (2, _HEADS, _TOKENS))
        keys = np.arange(_TOKENS)
        return Rows(attention, np.isin(keys, (0, real - 1)), norm, keys < real)

    @cached_property
    def heads(self) -> tuple[Array, Array, Array]:
        """Rows (head, query, key), values (head, key, d_head) and W_O of one layer."""
        rng = np.random.default_rng(_SEED + 1)
        attention = np.exp(rng.normal(0, 2, (_HEADS, _TOKENS, _TOKENS)))
        values, width = rng.normal(0, 1, (_HEADS, _TOKENS, _D_HEAD)), _HEADS * _D_HEAD
        return attention / attention.sum(axis=-1, keepdims=True), values, rng.normal(0, 0.5, (width, width))

    @cached_property
    def words(self) -> Text:
        """A text of words of one to three pieces, punctuation and two sinks."""
        rng = np.random.default_rng(_SEED + 2)
        count = _UNITS[-1].tokens[-1] + 1
        attention = np.exp(rng.normal(0, 2, (2, _HEADS, count, count)))
        attention /= attention.sum(axis=-1, keepdims=True)
        norm = rng.uniform(0.2, 3, (2, _HEADS, count))
        return Text({"attention": attention, "value_norm": weighted_rows(attention, norm)}, _UNITS)

    @cached_property
    def pair(self) -> RowPair:
        """Rows and scores of heads side by side."""
        return row_pair(_SEED + 3)

    @cached_property
    def head_texts(self) -> HeadTexts:
        """All heads of several texts, whose distances are pooled."""
        return head_texts(_SEED + 4)

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Two distance matrices (head, head) with ties and a NaN."""
        return matrices(_SEED + 5)

    @cached_property
    def distinct_matrices(self) -> tuple[Array, Array]:
        """Two distance matrices (head, head) without ties."""
        return matrices(_SEED + 6, tied=False)

    @cached_property
    def small(self) -> Model:
        """A small model drawn without PyTorch, in float64."""
        return random_model(_SEED)

    @cached_property
    def ids(self) -> list[int]:
        """Token ids for the small model, (token,)."""
        return token_ids(self.small, _TOKENS, _SEED)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Which of as many tokens are real, (token,): padding stands on the right."""
        return np.arange(_TOKENS) < _TOKENS - _PADDING

    @cached_property
    def traces(self) -> list[Trace]:
        """The user's model on the user's texts, else on the bundled sentences or on random token ids.

        Unavailable where a bundled sentence is too long for the model, or its tokenizer cannot read it.
        """
        texts: Sequence[str | Sequence[int]]
        if self.texts is not None:
            texts = self.texts
        elif self.model.tokenizer is not None:
            texts = SENTENCES
        else:
            length = min(_TOKENS, self.model.config.max_positions)
            texts = [token_ids(self.model, length, seed) for seed in range(3)]
        sink = "special" if self.model.config.sink_ids else "first"
        try:
            return [forward(self.model, text, sink=sink, keep=("attention", "value_norm")) for text in texts]
        except InputError as error:
            if self.texts is not None:
                raise
            raise Unavailable(f"The bundled sentences do not suit {self.model.name}: {error}") from error

    @property
    def judged(self) -> Judged:
        """A random BERT run by PyTorch in float64; Unavailable where that is not installed."""
        if isinstance(self._judged, Unavailable):
            raise self._judged
        return self._judged

    @cached_property
    def _judged(self) -> Judged | Unavailable:
        try:
            from validation.reference import Reference, random_bert

            with TemporaryDirectory() as directory:
                random_bert(directory, _SEED)
                model = load_model(directory, dtype="float64")
                ids = np.array(token_ids(model, _TOKENS, _SEED))
                mask = self.mask
                types = (np.arange(_TOKENS) >= _TOKENS // 2).astype(np.int64)
                stages = Reference.load(directory, "float64").run(ids[None], mask[None], types[None])
        except Unavailable as error:
            return error
        return Judged(model, ids, mask, types, {name: array[0] for name, array in stages.items()})


def token_ids(model: Model, count: int, seed: int) -> list[int]:
    """Random ids between the model's first and last special id, where it names any."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(3, model.config.vocab_size, count).tolist()
    if model.config.sink_ids:
        ids[0], ids[-1] = model.config.sink_ids[0], model.config.sink_ids[-1]
    return ids


def random_model(seed: int, heads: int = _HEADS, shared: int | None = None) -> Model:
    """A BERT of prime sizes with every parameter redrawn: spread about 0.5, norm weights about one.

    Its `heads` share the keys and values of `shared` heads, or have their own. Maps to queries and keys have
    a larger spread and those that write into the residual stream a smaller one, or tokens become alike from
    layer to layer and rows lose their peaks.
    """
    rng = np.random.default_rng(seed)
    width, vocabulary, positions = heads * _D_HEAD, 31, 19
    narrow = (shared or heads) * _D_HEAD

    def linear(d_in: int, d_out: int, spread: float = 0.5) -> Linear:
        return Linear(rng.normal(0, spread, (d_in, d_out)), rng.normal(0, spread, d_out))

    def norm() -> Norm:
        return Norm(rng.uniform(0.5, 1.5, width), rng.normal(0, 0.5, width))

    words, places, types = (rng.normal(0, 0.5, (rows, width)) for rows in (vocabulary, positions, 2))
    embeddings = Embeddings(words, places, types, norm())
    layers = tuple(
        Layer(
            query=linear(width, width, 0.8),
            key=linear(width, narrow, 0.8),
            value=linear(width, narrow),
            output=linear(width, width, 0.15),
            attention_norm=norm(),
            up=linear(width, _D_FF),
            down=linear(_D_FF, width, 0.15),
            output_norm=norm(),
        )
        for _ in range(_LAYERS)
    )
    config = ModelConfig(
        family="bert",
        n_layers=_LAYERS,
        n_heads=heads,
        n_kv_heads=shared,
        d_model=width,
        d_head=_D_HEAD,
        d_ff=_D_FF,
        vocab_size=vocabulary,
        max_positions=positions,
        activation="gelu",
        norm_epsilon=1e-5,
        pad_id=0,
        sink_ids=(1, 2),
    )
    return Model(config, embeddings, layers, name="random")
