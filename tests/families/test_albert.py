"""ALBERT: narrow tables, and blocks that are run again and again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import files_of, hold, judged, saved

from oracle import InputError, load_model
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["albert"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "albert", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("albert"), "albert", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(activation="gelu") > 1e-6
    assert found.error(lambda model: replace(model, layers=model.layers[:1] + 2 * model.layers[2:])) > 0.01


def test_three_layers_over_two_groups_share_their_weights(folder: Path) -> None:
    model = load_model(folder)
    assert [layer is model.layers[0] for layer in model.layers] == [True, True, False]
    wide = model.astype("float64")
    assert [layer is wide.layers[0] for layer in wide.layers] == [True, True, False]
    assert model.embeddings.words.shape == (101, 11)


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    files.refusal("num_hidden_groups", 4)
    for field in ("num_hidden_layers", "inner_group_num"):
        with pytest.raises(InputError, match="no more than 1000 blocks"):
            files.build({field: 10**9})


def test_heads_are_passed_over(folder: Path) -> None:
    files = files_of(folder)
    files.tensors["predictions.decoder.weight"] = np.ones((101, 11))
    files.tensors["sop_classifier.classifier.bias"] = np.ones(2)
    assert files.build().config.n_layers == 3
