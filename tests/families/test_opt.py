"""OPT: positions from row 2 on, words of another width, norms before or after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from family_models import Files, files_of, hold, judged, saved
from oracle_models import weights_of

from oracle.block import positions_of
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["opt"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "opt", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("opt"), "opt", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(position_offset=0) > 0.01
    assert found.error(norm_place="pre") > 0.01
    assert found.error(activation="gelu") > 0.01


def test_positions_start_at_row_two_and_padding_has_row_one(folder: Path) -> None:
    config = files_of(folder).build().config
    real = np.array([False, True, True, True, False])
    assert positions_of(config, np.arange(5), real).tolist() == [1, 2, 3, 4, 1]
    assert config.max_positions == 61


def test_names_with_and_without_prefixes(folder: Path) -> None:
    files = files_of(folder)
    bare = {
        name.removeprefix("model.").removeprefix("decoder."): array for name, array in files.tensors.items()
    }
    plain = Files(files.config, bare).build()
    for one, other in zip(weights_of(files.build()), weights_of(plain), strict=True):
        np.testing.assert_array_equal(one, other)


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    files.refusal("layer_norm_elementwise_affine", False)
    files.refusal("enable_bias", 1)
    files.refusal("pad_token_id", 101)
