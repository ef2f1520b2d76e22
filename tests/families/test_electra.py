"""ELECTRA: tables that may be narrower than the blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import files_of, hold, judged, saved
from wording import refused

from oracle import Model
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["electra"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "electra", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("electra"), "electra", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(activation="gelu") > 0.01

    def unbiased(model: Model) -> Model:
        table = model.embeddings
        return replace(model, embeddings=replace(table, project=table.project._replace(bias=None)))

    assert found.error(unbiased) > 0.01


def test_the_projection_is_there_where_widths_differ(folder: Path) -> None:
    files = files_of(folder)
    table = files.build().embeddings
    assert table.words.shape == (101, 11)
    assert table.project is not None
    assert table.project.weight.shape == (11, 35)
    with refused("weights", "embeddings_project.bias"):
        files.build({"embedding_size": 35})
    files.tensors["discriminator_predictions.dense.weight"] = np.ones((35, 35))
    assert len(files.build().layers) == 3
