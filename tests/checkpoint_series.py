"""Checkpoints of a small Llama that tests write with NumPy alone, and rows whose split is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from oracle.measures import row_measures
from validation.studies.collapse.demo_texts import tokenizer_files
from validation.studies.collapse.split import RowEntropies

CHARACTERS = "abcdefgh"
TEXTS = ("abcdefghabcdefgh", "hhgfedcbaabcab", "gagahedbfcgagahedbfc")


def write_checkpoint(
    folder: Path, seed: int, *, layers: int = 2, characters: str = CHARACTERS, sharp: float = 1.0
) -> Path:
    """A directory with a Llama of 2 heads; `sharp` scales its queries, and 0 makes every row uniform."""
    rng = np.random.default_rng(seed)
    wide, narrow, vocabulary = 12, 10, len(characters) + 1
    config = {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": wide,
        "intermediate_size": narrow,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "bos_token_id": 0,
        "tie_word_embeddings": False,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, wide),
        "model.norm.weight": (wide,),
        "lm_head.weight": (vocabulary, wide),
    }
    for layer in range(layers):
        start = f"model.layers.{layer}."
        shapes |= {f"{start}{name}_layernorm.weight": (wide,) for name in ("input", "post_attention")}
        shapes |= {f"{start}self_attn.{name}_proj.weight": (wide, wide) for name in "qkvo"}
        shapes |= {f"{start}mlp.{name}_proj.weight": (narrow, wide) for name in ("gate", "up")}
        shapes[f"{start}mlp.down_proj.weight"] = (wide, narrow)
    tensors = {}
    for name, shape in shapes.items():
        drawn = 0.5 * rng.standard_normal(shape)
        drawn = 1 + 0.2 * drawn if "norm" in name else drawn
        tensors[name] = (sharp * drawn if "q_proj" in name else drawn).astype(np.float32)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for name, text in tokenizer_files(characters, bos=True).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def write_series(folder: Path, steps: Sequence[int] = (0, 8, 128)) -> list[str]:
    """Checkpoints step0, step8 and so on whose rows become sharper; their places."""
    return [
        str(write_checkpoint(folder / f"step{step}", seed=3, sharp=0.5 + number))
        for number, step in enumerate(steps)
    ]


def row(share: float, content: Sequence[float]) -> np.ndarray:
    """One row: the sink at key 0, and the content closed to what is left."""
    parts = np.asarray(content, dtype=np.float64)
    return np.concatenate([[share], (1 - share) * parts / parts.sum()])


def figures(rows: Sequence[np.ndarray]) -> RowEntropies:
    """What is kept of rows (row, key) with the sink at key 0."""
    stacked = np.stack(rows)
    found = row_measures(stacked, np.arange(stacked.shape[1]) == 0, entropies=True)
    return RowEntropies(found.shares["attention"], *found.entropy)
