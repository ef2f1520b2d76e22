"""A GGUF file of the architecture llama in transformers' terms: configuration, names, order of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject
from oracle.families._config import Fields, shown
from oracle.families._weights import match
from oracle.loading._gguf_header import GgufFile, GgufTensor

__all__ = ["configuration", "rotary_rows", "tensors_by_name"]

_ARCHITECTURE = "llama"
_NOT_APPROXIMATED = "It is not supported, and nothing near is put in its place."

# Fields of the architecture that are read here; any other one that is not off is refused.
_READ = (
    *("block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size"),
    *("attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length"),
    *("attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count", "rope.scaling.type"),
)
_SCALES = ("rope.scale_linear", "rope.scaling.factor", "logit_scale", "residual_scale", "embedding_scale")
# What leaves a plain Llama as it is; of names that do not stand here, zero and false.
_OFF: dict[str, tuple[bool | int, ...]] = {
    "attention.causal": (True,),
    "rope.scaling.attn_factor": (1,),  # rotations are multiplied by it, also by zero
    "rope.scaling.yarn_attn_factor": (1,),
    **dict.fromkeys(_SCALES, (0, 1)),
}

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
# (name in a block of the file, name in a layer of transformers, output size, input size; a norm has one size)
_BLOCK = (
    ("attn_norm", "input_layernorm", "d_model", None),
    ("attn_q", "self_attn.q_proj", "queries", "d_model"),
    ("attn_k", "self_attn.k_proj", "keys", "d_model"),
    ("attn_v", "self_attn.v_proj", "keys", "d_model"),
    ("attn_output", "self_attn.o_proj", "d_model", "queries"),
    ("ffn_norm", "post_attention_layernorm", "d_model", None),
    ("ffn_gate", "mlp.gate_proj", "d_ff", "d_model"),
    ("ffn_up", "mlp.up_proj", "d_ff", "d_model"),
    ("ffn_down", "mlp.down_proj", "d_model", "d_ff"),
)


def configuration(file: GgufFile) -> dict[str, Any]:
    """The configuration of a LlamaForCausalLM, as transformers writes it in config.json.

    Another architecture, part of a split file, and every option that a plain Llama does not have raise
    InputError by name. Numbers are those of the file: epsilon and rotary base are float32 there.
    """
    source = str(file.path)
    fields = Fields(file.metadata, source)
    architecture = fields.get("general.architecture")
    if not isinstance(architecture, str) or architecture != _ARCHITECTURE:
        todo = "GGUF files of other architectures are not read; a directory saved by transformers may be."
        fields.refuse("general.architecture", expected=_ARCHITECTURE, todo=todo)
    parts = fields.get("split.count", 1)
    if type(parts) is not int or parts > 1:
        todo = "Join the parts with llama.cpp's llama-gguf-split --merge."
        fields.refuse("split.count", expected="one file with the whole model", todo=todo)
    _refuse_other_options(fields, file)
    d_model, heads = _size(fields, "embedding_length"), _size(fields, "attention.head_count")
    kv_heads = _size(fields, "attention.head_count_kv", heads)
    d_head = _size(fields, "attention.key_length", d_model // heads or 1)
    for field in ("attention.value_length", "rope.dimension_count"):
        if _size(fields, field, d_head) != d_head:
            fields.refuse(f"llama.{field}", expected=f"the width of a head, {d_head}", todo=_NOT_APPROXIMATED)
    if d_head % 2:
        fields.refuse("llama.attention.key_length", expected="an even width of a head", todo="Correct it.")
    if heads % kv_heads:
        fields.refuse(
            "llama.attention.head_count_kv", expected=f"a divisor of {heads} heads", todo="Correct one."
        )
    layers = _size(fields, "block_count")
    if layers > len(file.tensors):  # before a list of names is made that no file could hold
        fields.refuse(
            "llama.block_count",
            expected=f"at most {len(file.tensors)}, the number of tensors",
            todo="Correct it.",
        )
    embedding = file.tensors.get("token_embd.weight")
    rows = embedding.shape[0] if embedding else 1
    vocab_size = _size(fields, "vocab_size", rows)
    tokens = {
        role: fields.token_id(f"tokenizer.ggml.{field}_token_id", None, vocab_size=vocab_size)
        for role, field in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocab_size,
        "hidden_size": d_model,
        "intermediate_size": _size(fields, "feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": d_head,
        "hidden_act": "silu",
        "max_position_embeddings": _size(fields, "context_length"),
        "rms_norm_eps": fields.number("llama.attention.layer_norm_rms_epsilon"),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": fields.number("llama.rope.freq_base", 10000.0),
        },
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        **{f"{role}_token_id": token for role, token in tokens.items()},
    }


def tensors_by_name(file: GgufFile, config: dict[str, Any]) -> dict[str, tuple[str, GgufTensor]]:
    """Names in transformers' terms, each with the file's own name of it and the tensor.

    Whatever is missing, not expected, or of another shape than `config` calls for is listed in one
    InputError. The rows of q and k still stand as the file has them (see `rotary_rows`).
    """
    sizes = {
        "d_model": config["hidden_size"],
        "d_ff": config["intermediate_size"],
        "queries": config["num_attention_heads"] * config["head_dim"],
        "keys": config["num_key_value_heads"] * config["head_dim"],
    }
    width, tied = sizes["d_model"], config["tie_word_embeddings"]
    names = {stored: name for stored, name in _TOP.items() if not (tied and stored == "output.weight")}
    shapes = {
        stored: (width,) if stored == "output_norm.weight" else (config["vocab_size"], width)
        for stored in names
    }
    for layer in range(config["num_hidden_layers"]):
        for part, name, out, into in _BLOCK:
            stored = f"blk.{layer}.{part}.weight"
            names[stored] = f"model.layers.{layer}.{name}.weight"
            shapes[stored] = (sizes[out], sizes[into]) if into else (sizes[out],)
    match(file.tensors, shapes, lambda stored: stored, dtype="float32", source=str(file.path))
    return {name: (stored, file.tensors[stored]) for stored, name in names.items()}


def rotary_rows(name: str, config: dict[str, Any]) -> NDArray[np.int64] | None:
    """Where each row of the q or k matrix `name` stands in the file; None for a tensor that stands as it is.

    The file puts the two dimensions that rotary embeddings turn together side by side in each head,
    transformers puts them half a head apart.
    """
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
    if heads is None:
        return None
    rows = np.arange(config[heads] * config["head_dim"])
    return rows.reshape(config[heads], config["head_dim"] // 2, 2).swapaxes(1, 2).reshape(-1)


def _size(fields: Fields, name: str, *default: int) -> int:
    return fields.integer(f"llama.{name}", *default)


def _refuse_other_options(fields: Fields, file: GgufFile) -> None:
    """Refuse what a plain Llama does not have, by name."""
    fields.choice("llama.rope.scaling.type", "none", {"none": "none"})
    for key in file.metadata:
        name = key.removeprefix("llama.")
        if name == key or name in _READ:
            continue
        value = fields.get(key)
        off = _OFF.get(name, (0,))
        if isinstance(value, (str, list, np.ndarray)) or value not in off:
            expected = f"{off[-1]}, or no such option" if name in _OFF else "no such option"
            fields.refuse(key, expected=expected, todo=_NOT_APPROXIMATED)
    if "rope_freqs.weight" in file.tensors:
        reject(
            f"{file.path}: rope_freqs.weight",
            expected="rotary frequencies without factors",
            found=f"factors {shown(file.tensors['rope_freqs.weight'].shape)}",
            todo=_NOT_APPROXIMATED,
        )
