"""A small Llama as a GGUF file, as llama.cpp's own writer makes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

BYTES = sorted(  # the letters that stand for bytes in a byte-level vocabulary
    chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]
)
SPECIAL = ("<|end|>", "<|start|>", "<|stop|>")
MERGES = ("Ġ t", "h e", "Ġt he", "i n", "Ġ Ġ", "o n", "ð Ł", "Ġ 2", "2 0")
TOKENS = (*SPECIAL, *BYTES, *(merge.replace(" ", "") for merge in MERGES))
LAYERS, HEADS, KV_HEADS, D_HEAD, D_FF = 2, 6, 2, 16, 160
WIDE = HEADS * D_HEAD

FIELDS: dict[str, Any] = {
    "llama.block_count": LAYERS,
    "llama.context_length": 61,
    "llama.embedding_length": WIDE,
    "llama.feed_forward_length": D_FF,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 1000.0,
    "llama.rope.dimension_count": D_HEAD,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.ggml.padding_token_id": 2,
    "tokenizer.ggml.add_bos_token": False,
}


def weights(seed: int = 0, tied: bool = True) -> dict[str, np.ndarray]:
    """Random weights under the file's names; matrices are (output, input), in transformers' order of rows."""
    rng = np.random.default_rng(seed)
    small = KV_HEADS * D_HEAD
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(TOKENS), WIDE), "output_norm": (WIDE,)}
    shapes |= {} if tied else {"output": (len(TOKENS), WIDE)}
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {f"{block}attn_norm": (WIDE,), f"{block}ffn_norm": (WIDE,)}
        shapes |= {f"{block}attn_q": (WIDE, WIDE), f"{block}attn_output": (WIDE, WIDE)}
        shapes |= {f"{block}attn_k": (small, WIDE), f"{block}attn_v": (small, WIDE)}
        shapes |= {f"{block}ffn_gate": (D_FF, WIDE), f"{block}ffn_up": (D_FF, WIDE)}
        shapes |= {f"{block}ffn_down": (WIDE, D_FF)}
    return {
        f"{name}.weight": rng.normal(1 if "norm" in name else 0, 0.3, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def permuted(name: str, rows: np.ndarray) -> np.ndarray:
    """Rows of a q or k matrix as a file stores them: the two that turn together side by side in each head."""
    if not name.endswith(("attn_q.weight", "attn_k.weight")):
        return rows
    halves = rows.reshape(-1, 2, D_HEAD // 2, rows.shape[-1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))


def write_gguf(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    change: Mapping[str, Any] | None = None,
    *,
    kinds: Mapping[str, str] | None = None,
    architecture: str = "llama",
) -> Path:
    """A GGUF file of `tensors`, with FIELDS changed (None takes one out), types by tensor name or all F32."""
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    for key, value in (FIELDS | dict(change or {})).items():
        match value:
            case None:
                continue
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, list(value))
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType[(kinds or {}).get(name, "F32")]
        stored = gguf.quants.quantize(permuted(name, tensor), kind)
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
