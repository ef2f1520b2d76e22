from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracle.loading import load_model
from oracle.model import Model
from validation.report import live
from validation.running import calm_threads

calm_threads()  # many short loops on a busy machine: waiting threads that spin cost more than all the work


@pytest.fixture(autouse=True)
def no_lines_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a command of half a minute would tell how far it is, where nothing is expected."""
    monkeypatch.setattr(live, "_EVERY", float("inf"))


@pytest.fixture(scope="session")
def minilm() -> Model:
    """The bundled encoder in float32, from the user's cache (fetched at first use)."""
    return load_model("minilm-l6")


@pytest.fixture
def bert_config() -> dict[str, Any]:
    """A small BERT whose sizes all differ, so that no axis can be taken for another."""
    return {
        "model_type": "bert",
        "vocab_size": 23,
        "hidden_size": 15,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 7,
        "max_position_embeddings": 11,
        "type_vocab_size": 2,
    }


@pytest.fixture
def bert_tensors() -> Callable[..., dict[str, np.ndarray]]:
    """Makes the tensors that a configuration calls for, as transformers names and shapes them."""

    def make(config: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        wide, narrow = config["hidden_size"], config["intermediate_size"]
        shapes = {
            "embeddings.word_embeddings.weight": (config["vocab_size"], wide),
            "embeddings.position_embeddings.weight": (config["max_position_embeddings"], wide),
            "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], wide),
            "embeddings.LayerNorm.weight": (wide,),
            "embeddings.LayerNorm.bias": (wide,),
        }
        for index in range(config["num_hidden_layers"]):
            layer = f"encoder.layer.{index}."
            for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
                shapes |= {f"{layer}{part}.weight": (wide, wide), f"{layer}{part}.bias": (wide,)}
            shapes |= {
                f"{layer}attention.output.dense.weight": (wide, wide),
                f"{layer}attention.output.dense.bias": (wide,),
                f"{layer}attention.output.LayerNorm.weight": (wide,),
                f"{layer}attention.output.LayerNorm.bias": (wide,),
                f"{layer}intermediate.dense.weight": (narrow, wide),
                f"{layer}intermediate.dense.bias": (narrow,),
                f"{layer}output.dense.weight": (wide, narrow),
                f"{layer}output.dense.bias": (wide,),
                f"{layer}output.LayerNorm.weight": (wide,),
                f"{layer}output.LayerNorm.bias": (wide,),
            }
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    return make
