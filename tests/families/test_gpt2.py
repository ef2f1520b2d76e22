"""GPT-2: (input, output) matrices, queries, keys and values in one, scores divided by the layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import Files, files_of, hold, judged, saved
from oracle_models import weights_of

from oracle import Model
from oracle.model import Linear
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["gpt2"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "gpt2", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("gpt2"), "gpt2", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(score_by_layer=False) > 0.01
    assert found.error(score_scalar=1.0) > 0.01
    assert found.error(activation="gelu") > 1e-6
    assert found.error(norm_place="post") > 0.01
    assert found.error(position_offset=1) > 0.01

    def turned(model: Model) -> Model:
        """The square matrix read as (output, input): its shape cannot tell."""
        layers = tuple(
            replace(layer, output=Linear(layer.output.weight.T, layer.output.bias)) for layer in model.layers
        )
        return replace(model, layers=layers)

    assert found.error(turned) > 0.01


def test_names_with_and_without_prefix_and_buffers(folder: Path) -> None:
    files = files_of(folder)
    plain = Files(
        files.config,
        {name.removeprefix("transformer."): array for name, array in files.tensors.items()}
        | {"h.0.attn.bias": np.ones((1, 1, 61, 61)), "h.0.attn.masked_bias": np.float32(-1e4)},
    )
    for one, other in zip(weights_of(files.build()), weights_of(plain.build()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    files.refusal("add_cross_attention", True)
    files.refusal("activation_function", "tanh")
    files.refusal("scale_attn_weights", 1)
    files.refusal("n_embd", 36)
    files.refusal("n_inner", 0)


def test_a_second_name_of_a_field_must_say_the_same(folder: Path) -> None:
    """transformers takes either name, and the second one where both are there."""
    files = files_of(folder)
    names = {
        "hidden_size": 35,
        "max_position_embeddings": 61,
        "num_attention_heads": 5,
        "num_hidden_layers": 3,
    }
    assert files.build(names).config == files.build(dict.fromkeys(names)).config == files.build().config
    for name, value in names.items():
        assert f"({value}), or no such field" in files.refusal(name, 1)
    alone = ("n_embd", "n_positions", "n_head", "n_layer")
    assert files.build(names, without=alone).config == files.build().config
