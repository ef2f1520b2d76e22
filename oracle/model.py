"""What a forward pass needs, and nothing else: a ModelConfig and the weights of every layer."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oracle._checks import reject

__all__ = [
    "Embeddings",
    "Head",
    "Layer",
    "Linear",
    "Model",
    "ModelConfig",
    "Norm",
    "Rotary",
    "RotaryScaling",
    "float_dtype",
]

Array = NDArray[Any]
_Node = TypeVar("_Node")

_DTYPES = {"float32": np.float32, "float64": np.float64, "longdouble": np.longdouble}


class Linear(NamedTuple):
    """A linear map x W + b, stored as the mathematics writes it: W is (d_in, d_out)."""

    weight: Array  # (d_in, d_out)
    bias: Array | None = None  # (d_out,)


class Norm(NamedTuple):
    """Scale and shift of a LayerNorm, each (d_model,); an RMSNorm has no shift."""

    weight: Array
    bias: Array | None = None


@dataclass(frozen=True)
class Embeddings:
    """Tables that are summed per token, then normalised where there is a norm.

    They have the width of the blocks, unless `project` maps the normalised sum, (d_table, d_model), or
    `project_words` the words before they are summed.
    """

    words: Array  # (vocabulary, d_table)
    positions: Array | None = None  # (position, d_table); a token's row is position_offset plus its place
    token_types: Array | None = None  # (token type, d_table)
    norm: Norm | None = None
    project: Linear | None = None
    project_words: Linear | None = None
    scale: float = 1.0  # of the words, before they are summed


@dataclass(frozen=True)
class Layer:
    """One block. Where its norms stand is said by `ModelConfig.norm_place`.

    `attention_norm` and `output_norm` follow the two residual sums ("post"), or else stand before attention
    and before the feed-forward network; the two post norms, of "both", are taken of what each of them adds.
    """

    query: Linear  # (d_model, head * d_head)
    key: Linear  # (d_model, key/value head * d_head)
    value: Linear  # (d_model, key/value head * d_head)
    output: Linear  # (head * d_head, d_model): rows h * d_head onwards belong to head h
    attention_norm: Norm
    up: Linear
    down: Linear
    output_norm: Norm
    gate: Linear | None = None
    query_norm: Norm | None = None  # (d_head,), an RMSNorm of each head's query
    key_norm: Norm | None = None
    attention_post_norm: Norm | None = None
    output_post_norm: Norm | None = None


@dataclass(frozen=True)
class Head:
    """From the last block's output to logits: a norm, a projection, the map to the vocabulary.

    `words` is None where the checkpoint holds no such map, or the word table serves as one (`tied_head`).
    """

    norm: Norm | None = None
    project: Linear | None = None
    words: Linear | None = None  # (d_model, vocabulary)


class RotaryScaling(NamedTuple):
    """How frequencies are stretched for longer texts than a model was first trained on.

    Without `original_positions` all are divided by `factor` ("linear"). With it ("llama3") those whose
    wavelength is above original_positions / low_factor are, those below original_positions / high_factor
    are left alone, and between the two the divisor changes smoothly.
    """

    factor: float
    original_positions: float | None = None
    low_factor: float = 1.0
    high_factor: float = 4.0


class Rotary(NamedTuple):
    """Rotary positions: entries i and i + dims / 2 of a head turn together by position * base^(-2i / dims).

    Only the first `dims` entries of a query or key turn (Su et al. 2021, arXiv 2104.09864, section 3.2).
    """

    base: float
    dims: int  # even
    scaling: RotaryScaling | None = None


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and choices of one architecture, under the field's names; the defaults are those of BERT.

    `sink_ids` are the token ids that form the default sink set ([CLS], [SEP] or their equivalents); that of a
    causal model is its first token.
    """

    family: str
    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    d_ff: int
    vocab_size: int
    max_positions: int  # tokens of the longest text
    activation: str
    norm_epsilon: float
    pad_id: int | None = None
    sink_ids: tuple[int, ...] = ()
    bos_id: int | None = None  # of a causal model: the token that its texts begin with, if it names one
    n_kv_heads: int | None = None  # key/value heads that groups of heads share; None: one for each head
    causal: bool = False
    windows: tuple[int | None, ...] = ()  # of each layer: how many keys a query sees, itself included
    norm_kind: str = "layer"  # "layer", "rms", or "rms_plus_one", which scales by one plus its weight
    norm_place: str = "post"  # "post": of each residual sum; "pre": of what enters; "both": see Layer
    parallel_residual: bool = False  # the feed-forward network reads what attention reads, not what it wrote
    position_offset: int = 0  # the row of the first token; padding has the one before it
    positions_skip_pad: bool = False  # tokens that are `pad_id` count as padding, whatever the mask says
    rotary: Rotary | None = None
    score_scalar: float | None = None  # scores are q·k over the root of it; None: d_head
    score_by_layer: bool = False  # and over the number of the layer, from one
    score_cap: float | None = None  # c tanh(score / c), before the mask
    logit_cap: float | None = None
    tied_head: bool = False


@dataclass(frozen=True)
class Model:
    """A checkpoint made ready for `forward`: weights of one dtype, configuration, provenance.

    `tokenizer` is opaque here: anything with `encode(text)` returning ids, tokens and offsets, or None.
    `sha256` is the hash of the weight files and `source` their directory; None for a model made in memory.
    """

    config: ModelConfig
    embeddings: Embeddings
    layers: tuple[Layer, ...]
    tokenizer: Any = None
    name: str = "unnamed"
    sha256: str | None = None
    source: Path | None = None
    head: Head | None = None  # of a causal model

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of all weights and of the whole forward pass."""
        return self.embeddings.words.dtype

    def astype(self, dtype: DTypeLike | str) -> Model:
        """The same model in float32, float64 or longdouble (weights are widened or rounded once)."""
        target = float_dtype(dtype)
        if target == self.dtype:
            return self
        cast = {id(layer): _cast(layer, target) for layer in self.layers}  # shared layers stay shared
        layers = tuple(cast[id(layer)] for layer in self.layers)
        embeddings, head = _cast(self.embeddings, target), _cast(self.head, target)
        return replace(self, embeddings=embeddings, layers=layers, head=head)


def float_dtype(dtype: DTypeLike | str) -> np.dtype[Any]:
    """The NumPy dtype of "float32", "float64", "longdouble" or an equal dtype; others raise InputError."""
    known = [np.dtype(kind) for kind in _DTYPES.values()]
    try:
        wanted = np.dtype(_DTYPES.get(str(dtype), dtype))
    except TypeError:
        wanted = np.dtype(object)
    if dtype is None or wanted not in known:  # NumPy would read None as float64
        reject("dtype", expected=" or ".join(_DTYPES), found=str(dtype), todo="Name one of the three.")
    return wanted


def _cast(node: _Node, dtype: np.dtype[Any]) -> _Node:
    """Rebuild nested dataclasses and tuples with every array in `dtype`."""
    if isinstance(node, np.ndarray):
        return node.astype(dtype)  # type: ignore[return-value]  # an array for an array
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: _cast(getattr(node, f.name), dtype) for f in fields(node)})
    if isinstance(node, tuple):
        parts = [_cast(part, dtype) for part in node]
        # type-ignore: a tuple of the kind that came in
        return node._make(parts) if hasattr(node, "_make") else tuple(parts)  # type: ignore[return-value]
    return node
