"""DistilBERT: no token types, and names of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from family_models import Files, files_of, hold, judged, saved
from oracle_models import weights_of
from wording import refused

from oracle import forward, load_model
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["distilbert"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "distilbert", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("distilbert"), "distilbert", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(activation="gelu") > 0.01
    assert found.error(norm_epsilon=1e-5) > 1e-7
    assert found.error(norm_place="pre") > 0.01


def test_token_types_are_refused(folder: Path) -> None:
    model = load_model(folder)
    forward(model, [5, 6], token_types=[0, 0], sink="none")
    with refused("token_types", "below 1"):
        forward(model, [5, 6], token_types=[0, 1], sink="none")


def test_names_with_prefix_heads_and_old_norms(folder: Path) -> None:
    files = files_of(folder)
    old = {
        f"distilbert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma"): array
        for name, array in files.tensors.items()
    }
    heads = {"vocab_transform.weight": np.ones((35, 35)), "pre_classifier.bias": np.ones(35)}
    other = Files(files.config, old | heads).build()
    for one, two in zip(weights_of(files.build()), weights_of(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_second_name_of_a_field_must_say_the_same(folder: Path) -> None:
    files = files_of(folder)
    names = {"hidden_size": 35, "num_attention_heads": 5, "num_hidden_layers": 3}
    assert files.build(names).config == files.build(dict.fromkeys(names)).config == files.build().config
    for name, value in names.items():
        assert f"({value}), or no such field" in files.refusal(name, 1)
    assert files.build(names, without=("dim", "n_heads", "n_layers")).config == files.build().config
