"""RoBERTa: positions that start after the padding id."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import Files, files_of, hold, judged, saved
from oracle_models import weights_of
from wording import refused

from oracle import forward, load_model
from oracle.block import positions_of
from oracle.families import Checkpoint, build_model
from validation.random_configs import RANDOM_CONFIGS
from validation.reference import Reference

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["roberta"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "roberta", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("roberta"), "roberta", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(position_offset=0) > 0.01
    assert found.error(position_offset=5) > 0.01
    assert found.error(activation="gelu") > 1e-6


def test_positions_start_after_the_padding_id_at_which_padding_stands(folder: Path) -> None:
    files = files_of(folder)
    config = replace(files.build().config, pad_id=1, position_offset=2)
    ids, everything = np.array([0, 31414, 2, 1, 1]), np.ones(5, bool)
    for real in (everything, ids != 1):
        assert positions_of(config, ids, real).tolist() == [2, 3, 4, 1, 1]


def test_a_padding_id_that_the_mask_calls_real_counts_as_padding(folder: Path) -> None:
    ids = np.array([[9, 5, 8, 7, 5, 6]])
    rows = Reference.load(folder, "float64").run(ids, keep=("attention",))["attention"][0]
    found = forward(load_model(folder, dtype="float64"), ids[0], sink="none").attention
    np.testing.assert_allclose(found, rows, rtol=0, atol=1e-12)


def test_the_longest_text_is_shorter_than_the_table(folder: Path) -> None:
    model = load_model(folder)
    assert model.config.max_positions == 61 - 6
    assert len(forward(model, [9] * 55, sink="none", keep=()).tokens) == 55
    with refused("text", "at most 55 tokens"):
        forward(model, [9] * 56, sink="none")


def test_sinks_are_bos_and_eos(folder: Path) -> None:
    files = files_of(folder)
    assert files.build().config.sink_ids == (0, 2)
    assert files.build({"bos_token_id": None}).config.sink_ids == (2,)
    named = Checkpoint(files.config, files.tensors, special_ids={"cls_token": 7, "sep_token": 8})
    assert build_model(named).config.sink_ids == (7, 8)


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    for value in (None, 60, 101):
        files.refusal("pad_token_id", value)
    files.refusal("is_decoder", True)
    files.refusal("position_embedding_type", "relative_key")


def test_names_with_prefix_and_heads(folder: Path) -> None:
    files = files_of(folder)
    whole = {f"roberta.{name}": array for name, array in files.tensors.items()}
    heads = {"lm_head.dense.weight": np.ones((35, 35)), "classifier.out_proj.bias": np.ones(2)}
    other = Files(files.config, whole | heads).build()
    for one, two in zip(weights_of(files.build()), weights_of(other), strict=True):
        np.testing.assert_array_equal(one, two)
