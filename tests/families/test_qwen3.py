"""Qwen3: norms of each head's queries and keys, heads of a width of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import hold, judged, saved

from oracle import Model, forward, load_model
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["qwen3"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "qwen3", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("qwen3"), "qwen3", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(windows=(None, 7, None)) > 0.01

    def bare(model: Model) -> Model:
        layers = tuple(replace(layer, query_norm=None, key_norm=None) for layer in model.layers)
        return replace(model, layers=layers)

    def exchanged(model: Model) -> Model:
        layers = tuple(
            replace(layer, query_norm=layer.key_norm, key_norm=layer.query_norm) for layer in model.layers
        )
        return replace(model, layers=layers)

    assert found.error(bare) > 0.01
    assert found.error(exchanged) > 0.01


def test_norms_come_before_the_turn_and_keep_each_head_apart(folder: Path) -> None:
    model = load_model(folder, dtype="float64")
    trace = forward(model, np.arange(5, 16))
    turned = np.linalg.norm(trace.keys[0, :, :, [0, 7]], axis=0)  # what a turn keeps
    weight = model.layers[0].key_norm.weight
    assert weight.shape == (14,)
    assert turned.shape == (6, 11)
    bound = np.sqrt(14) * np.abs(weight).max()
    assert (np.linalg.norm(trace.keys[0], axis=-1) <= bound).all()
