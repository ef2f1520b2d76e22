"""What a forward pass needs, and nothing else: a ModelConfig and the weights of every layer."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oracle._checks import reject

__all__ = ["Embeddings", "Layer", "Linear", "Model", "ModelConfig", "Norm", "float_dtype"]

Array = NDArray[Any]
_Node = TypeVar("_Node")

_DTYPES = {"float32": np.float32, "float64": np.float64, "longdouble": np.longdouble}


class Linear(NamedTuple):
    """A linear map x W + b, stored as the mathematics writes it: W is (d_in, d_out)."""

    weight: Array  # (d_in, d_out)
    bias: Array  # (d_out,)


class Norm(NamedTuple):
    """Scale and shift of a LayerNorm, each (d_model,)."""

    weight: Array
    bias: Array


@dataclass(frozen=True)
class Embeddings:
    """Tables that are summed per token, then normalised."""

    words: Array  # (vocabulary, d_model)
    positions: Array  # (position, d_model)
    token_types: Array  # (token type, d_model)
    norm: Norm


@dataclass(frozen=True)
class Layer:
    """One block with the norm after each residual sum (the BERT order)."""

    query: Linear
    key: Linear
    value: Linear
    output: Linear  # (head * d_head, d_model): rows h * d_head onwards belong to head h
    attention_norm: Norm
    up: Linear
    down: Linear
    output_norm: Norm


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and choices of one architecture, under the field's names.

    `sink_ids` are the token ids that form the default sink set ([CLS], [SEP] or their equivalents).
    """

    family: str
    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    d_ff: int
    vocab_size: int
    max_positions: int
    activation: str
    norm_epsilon: float
    pad_id: int | None = None
    sink_ids: tuple[int, ...] = ()


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

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of all weights and of the whole forward pass."""
        return self.embeddings.words.dtype

    def astype(self, dtype: DTypeLike | str) -> Model:
        """The same model in float32, float64 or longdouble (weights are widened or rounded once)."""
        target = float_dtype(dtype)
        if target == self.dtype:
            return self
        embeddings, layers = _cast(self.embeddings, target), _cast(self.layers, target)
        return replace(self, embeddings=embeddings, layers=layers)


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
        return node.astype(dtype)  # type: ignore[return-value]
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: _cast(getattr(node, f.name), dtype) for f in fields(node)})
    if isinstance(node, tuple):
        parts = [_cast(part, dtype) for part in node]
        return node._make(parts) if hasattr(node, "_make") else tuple(parts)  # type: ignore[return-value]
    return node
