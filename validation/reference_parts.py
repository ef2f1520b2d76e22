"""Where the networks of transformers keep what is compared, and how their weights are drawn anew.

torch is handed in: this module knows names and arrays only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = [
    "CAUSAL",
    "blocks",
    "captured_softmax",
    "captured_states",
    "captured_vectors",
    "lifted",
    "own_positions",
    "query_parts",
    "quiet",
    "redraw",
    "runs_of_blocks",
    "skipped_rows",
    "widen_buffers",
]

CAUSAL = frozenset({"gemma2", "gpt2", "gpt_neox", "llama", "mistral", "opt", "qwen2", "qwen3"})
"""Families with a language-model head."""

# Families whose position ids the network has to make by itself, from padding ids or from the mask.
_OWN_POSITIONS = frozenset({"opt", "roberta"})
_BLOCKS = {
    "albert": "encoder.albert_layer_groups",
    "distilbert": "transformer.layer",
    "gpt2": "h",
    "opt": "decoder.layers",
}
# Maps that write into the residual stream: were they as large as others, all tokens would become alike.
_WRITING = (
    "output.dense.weight",
    "c_proj.weight",
    "attention.dense.weight",
    "dense_4h_to_h.weight",
    "out_proj.weight",
    "fc2.weight",
    "out_lin.weight",
    "lin2.weight",
    "ffn_output.weight",
    "o_proj.weight",
    "down_proj.weight",
)


def own_positions(network: Any) -> bool:
    """Whether the network must count positions for itself."""
    return network.config.model_type in _OWN_POSITIONS


def skipped_rows(network: Any) -> int:
    """Rows of the table of positions that no token has: RoBERTa starts after its padding id."""
    config = network.config
    return int(config.pad_token_id + 1) if config.model_type == "roberta" else 0


def blocks(network: Any) -> list[Any]:
    """The blocks of a network, each once; ALBERT runs its own several times."""
    kind = network.config.model_type
    default = "layers" if kind in CAUSAL else "encoder.layer"
    found = network.base_model
    for name in _BLOCKS.get(kind, default).split("."):
        found = getattr(found, name)
    return [layer for group in found for layer in group.albert_layers] if kind == "albert" else list(found)


def runs_of_blocks(network: Any) -> list[list[int]]:
    """The layers in which each of `blocks` runs."""
    config, found = network.config, blocks(network)
    if config.model_type != "albert":
        return [[layer] for layer in range(len(found))]
    layers, groups, inner = config.num_hidden_layers, config.num_hidden_groups, config.inner_group_num
    runs: list[list[int]] = [[] for _ in found]
    for layer in range(layers):
        for block in range(inner):
            runs[int(layer / (layers / groups)) * inner + block].append(layer * inner + block)
    return runs


def query_parts(block: Any, kind: str, n_heads: int) -> list[Any]:
    """Tensors that put out the queries of a block, as views that can be scaled in place."""
    if kind == "gpt2":
        fused = block.attn.c_attn
        return [tensor.data[..., : fused.nf // 3] for tensor in (fused.weight, fused.bias)]
    if kind == "gpt_neox":
        fused = block.attention.query_key_value
        tensors = [tensor for tensor in (fused.weight, fused.bias) if tensor is not None]
        return [tensor.data.view(n_heads, 3, -1, *tensor.shape[1:])[:, 0] for tensor in tensors]
    if kind == "qwen3":
        return [block.self_attn.q_norm.weight.data]
    if kind in CAUSAL:
        query = block.self_attn.q_proj
    elif kind == "distilbert":
        query = block.attention.q_lin
    else:
        query = block.attention.query if kind == "albert" else block.attention.self.query
    return [tensor.data for tensor in (query.weight, query.bias) if tensor is not None]


def redraw(torch: Any, network: Any, rng: np.random.Generator) -> None:
    """Draw every parameter: normal with spread 0.5, or 0.1 where it writes into the residual stream.

    Norm weights are uniform from 0.5 to 1.5, those of Gemma, which count from one, a whole less.
    """
    shifted = network.config.model_type == "gemma2"
    for name, parameter in network.named_parameters():
        shape = tuple(parameter.shape)
        if name.endswith("weight") and len(shape) == 1:
            values = rng.uniform(0.5, 1.5, shape) - shifted
        else:
            values = rng.normal(0, 0.1 if name.endswith(_WRITING) else 0.5, shape)
        parameter.data = torch.from_numpy(values.astype(np.float32))


@contextmanager
def quiet(torch: Any, transformers: Any) -> Iterator[None]:
    """Neither log lines nor progress bars of theirs, and no draw from torch's own random numbers."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def lifted(torch: Any) -> Iterator[None]:
    """Let code that asks for float32 have float64; not for several threads at once.

    RMS norms, rotary tables and some softmaxes of transformers compute in float32 whatever the model is in.
    """
    before = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = before


def widen_buffers(torch: Any, network: Any) -> None:
    """Make rotary tables and embedding scales anew in float64, in which loading left them rounded."""
    for module in network.modules():
        if hasattr(module, "inv_freq"):
            with lifted(torch):
                module.inv_freq = type(module)(config=module.config).inv_freq
        if hasattr(module, "scalar_embed_scale"):
            module.embed_scale = torch.tensor(module.scalar_embed_scale, dtype=torch.float64)


@contextmanager
def captured_softmax(torch: Any, captured: list[Any]) -> Iterator[None]:
    """Keep a copy of what softmax is given, while it does its work; not for several threads at once."""
    functional = torch.nn.functional
    original = functional.softmax

    def softmax(scores: Any, *arguments: Any, **named: Any) -> Any:
        captured.append(scores.detach().clone())
        return original(scores, *arguments, **named)

    functional.softmax = softmax
    try:
        yield
    finally:
        functional.softmax = original


@contextmanager
def captured_vectors(network: Any, captured: dict[str, list[Any]]) -> Iterator[None]:
    """Keep the queries, keys and values that attention is given: turned, not yet repeated, not yet scaled."""
    module: Any = sys.modules[type(network.base_model).__module__]
    original: Callable[..., Any] = module.eager_attention_forward

    def attend(block: Any, query: Any, key: Any, value: Any, *arguments: Any, **named: Any) -> Any:
        early = named.get("scaling") == 1.0 and block.scaling != 1.0  # OPT scales its queries beforehand
        captured["queries"].append(query / block.scaling if early else query)
        captured["keys"].append(key)
        captured["values"].append(value)
        return original(block, query, key, value, *arguments, **named)

    module.eager_attention_forward = attend
    try:
        yield
    finally:
        module.eager_attention_forward = original


@contextmanager
def captured_states(network: Any, captured: list[Any]) -> Iterator[None]:
    """Keep what enters the first block, and what each block puts out."""

    def enter(_: Any, given: Any, named: Any) -> None:
        if not captured:  # ALBERT comes back to its first block
            captured.append(given[0] if given else named["hidden_states"])

    def leave(_: Any, __: Any, output: Any) -> None:
        captured.append(output[0] if isinstance(output, tuple) else output)

    found = blocks(network)
    handles = [found[0].register_forward_pre_hook(enter, with_kwargs=True)]
    handles += [block.register_forward_hook(leave) for block in found]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
