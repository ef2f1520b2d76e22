"""Where a checkpoint keeps the parts of a Model, and a Model put together from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.families._checkpoint import Checkpoint
from oracle.families._weights import Shape, Weights, match
from oracle.model import Embeddings, Head, Layer, Linear, Model, ModelConfig, Norm

__all__ = ["Layout", "assemble"]

Array = NDArray[Any]

_FUSED = ("query", "key", "value")


@dataclass(frozen=True)
class Layout:
    """Names of a checkpoint's tensors, without the prefix and without ".weight" and ".bias".

    An empty name means that there is no such part. `fused` is the one map to queries, keys and values: those
    of all heads one after another, or `fused_by_head` the three of each head together.
    """

    words: str
    layers: tuple[str, ...]  # what stands before the names of each layer; one that is shared is named again
    linear: Mapping[str, str]  # parts of Layer
    norms: Mapping[str, str]  # parts of Layer
    positions: str = ""
    token_types: str = ""
    n_token_types: int = 0
    embedding_norm: str = ""
    project: str = ""
    project_words: str = ""
    table_width: int = 0  # of the embeddings; 0: d_model
    embedding_scale: float = 1.0
    fused: str = ""
    fused_by_head: bool = False
    input_first: bool = False  # matrices of blocks are stored (input, output)
    unbiased: frozenset[str] = frozenset()  # linear parts without a bias; of `fused` under that name
    final_norm: str = ""
    project_out: str = ""
    head: str = ""
    prefixes: tuple[str, ...] = ()  # each may stand before all names
    renamed: Mapping[str, str] = field(default_factory=dict)  # how a name may end to how it ends here
    ignored: tuple[str, ...] = ()  # how names of tensors begin that have no part in the computation
    buffers: tuple[str, ...] = ()  # and how such names end

    def canonical(self, stored: str) -> str | None:
        """A checkpoint's name of a tensor as it is expected here; None where the tensor has no part."""
        for prefix in self.prefixes:
            stored = stored.removeprefix(prefix)
        if stored.startswith(self.ignored) or stored.endswith(self.buffers):
            return None
        for old, new in self.renamed.items():
            if f".{stored}".endswith(f".{old}"):
                return stored.removesuffix(old) + new
        return stored


def assemble(checkpoint: Checkpoint, config: ModelConfig, layout: Layout, dtype: np.dtype[Any]) -> Model:
    """The Model that `layout` finds in the checkpoint; every tensor is checked before one is read."""
    expected = _expected(config, layout)
    stored = {layout.canonical(name) for name in checkpoint.tensors}
    words = f"{layout.head}.weight"
    has_words = bool(layout.head) and not config.tied_head and words in stored
    if has_words:
        expected[words] = expected[f"{layout.words}.weight"]
    elif config.tied_head:  # some files hold the word table a second time
        layout = replace(layout, ignored=(*layout.ignored, words))
    source = checkpoint.weights_source
    weights = match(checkpoint.tensors, expected, layout.canonical, dtype=dtype, source=source)
    head = None
    if config.causal:
        head = Head(
            norm=_norm(weights, layout.final_norm),
            project=_linear(weights, layout.project_out),
            words=_linear(weights, layout.head) if has_words else None,
        )
    built = {prefix: _layer(weights, prefix, config, layout) for prefix in dict.fromkeys(layout.layers)}
    return Model(
        config,
        Embeddings(
            words=weights[f"{layout.words}.weight"],
            positions=weights[f"{layout.positions}.weight"] if layout.positions else None,
            token_types=weights[f"{layout.token_types}.weight"] if layout.token_types else None,
            norm=_norm(weights, layout.embedding_norm),
            project=_linear(weights, layout.project),
            project_words=_linear(weights, layout.project_words),
            scale=layout.embedding_scale,
        ),
        tuple(built[prefix] for prefix in layout.layers),
        tokenizer=checkpoint.tokenizer,
        name=checkpoint.name,
        sha256=checkpoint.sha256,
        source=checkpoint.source,
        head=head,
    )


def _expected(config: ModelConfig, layout: Layout) -> dict[str, Shape]:
    """Names and shapes as a checkpoint stores them: a matrix is (output, input) unless it says otherwise."""
    width, table = config.d_model, layout.table_width or config.d_model
    # A projected word table has another width than the table of positions that is added after it.
    summed = width if layout.project_words else table
    shapes: dict[str, Shape] = {f"{layout.words}.weight": (config.vocab_size, table)}
    if layout.positions:
        shapes[f"{layout.positions}.weight"] = (config.max_positions + config.position_offset, summed)
    if layout.token_types:
        shapes[f"{layout.token_types}.weight"] = (layout.n_token_types, summed)
    maps = {"project": (table, width), "project_words": (table, width), "project_out": (width, table)}
    for part, (d_in, d_out) in maps.items():
        if name := getattr(layout, part):
            shapes |= _linear_shapes(name, d_in, d_out, part not in layout.unbiased)
    shifted = config.norm_kind == "layer"
    for name, size in ((layout.embedding_norm, table), (layout.final_norm, width)):
        if name:
            shapes |= _norm_shapes(name, size, shifted)
    heads, shared = config.n_heads * config.d_head, (config.n_kv_heads or config.n_heads) * config.d_head
    sizes = {
        "query": (width, heads),
        "key": (width, shared),
        "value": (width, shared),
        "fused": (width, 3 * heads),
        "output": (heads, width),
        "gate": (width, config.d_ff),
        "up": (width, config.d_ff),
        "down": (config.d_ff, width),
    }
    stored = {**layout.linear, "fused": layout.fused} if layout.fused else layout.linear
    for prefix in dict.fromkeys(layout.layers):
        for part, name in stored.items():
            biased, (d_in, d_out) = part not in layout.unbiased, sizes[part]
            shapes |= _linear_shapes(prefix + name, d_in, d_out, biased, layout.input_first)
        for part, name in layout.norms.items():
            of_head = part in ("query_norm", "key_norm")
            shapes |= _norm_shapes(prefix + name, config.d_head if of_head else width, shifted)
    return shapes


def _linear_shapes(
    name: str, d_in: int, d_out: int, biased: bool, input_first: bool = False
) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {f"{name}.weight": (d_in, d_out) if input_first else (d_out, d_in)}
    if biased:
        shapes[f"{name}.bias"] = (d_out,)
    return shapes


def _norm_shapes(name: str, size: int, shifted: bool) -> dict[str, Shape]:
    return dict.fromkeys((f"{name}.weight", f"{name}.bias") if shifted else (f"{name}.weight",), (size,))


def _layer(weights: Weights, prefix: str, config: ModelConfig, layout: Layout) -> Layer:
    parts: dict[str, Any] = {
        part: _linear(weights, prefix + name, layout.input_first) for part, name in layout.linear.items()
    }
    if layout.fused:
        fused = _linear(weights, prefix + layout.fused, layout.input_first)
        parts |= _unfused(fused, config, layout.fused_by_head)
    parts |= {part: _norm(weights, prefix + name) for part, name in layout.norms.items()}
    return Layer(**parts)


def _unfused(fused: Linear, config: ModelConfig, by_head: bool) -> dict[str, Linear]:
    """Queries, keys and values as maps of their own, from the one that puts out all three."""

    def third(array: Array, place: int) -> Array:
        """From the last axis: each third whole, or gathered from the thirds of each head."""
        outer = array.shape[:-1]
        shape = (config.n_heads, 3, config.d_head) if by_head else (3, config.n_heads * config.d_head)
        return array.reshape(*outer, *shape)[(..., place, slice(None))].reshape(*outer, -1)

    return {
        part: Linear(third(fused.weight, place), None if fused.bias is None else third(fused.bias, place))
        for place, part in enumerate(_FUSED)
    }


def _linear(weights: Weights, name: str, input_first: bool = False) -> Any:
    """The Linear of that name, None without a name; with a bias where one is expected."""
    if not name:
        return None
    weight = weights[f"{name}.weight"]
    bias = weights[f"{name}.bias"] if f"{name}.bias" in weights else None
    return Linear(weight if input_first else weight.T, bias)


def _norm(weights: Weights, name: str) -> Any:
    """The Norm of that name, None without a name."""
    if not name:
        return None
    return Norm(weights[f"{name}.weight"], weights[f"{name}.bias"] if f"{name}.bias" in weights else None)
