"""GPT-NeoX: heads fused one by one, a part of each turns, halves of a block side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from family_models import files_of, hold, judged, saved

from oracle.families import _layout
from oracle.families._layout import _unfused as unfused
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["gpt_neox"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "gpt_neox", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("gpt_neox"), "gpt_neox", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(folder)
    rotary = found.model.config.rotary
    assert rotary is not None
    assert rotary.dims == 6
    assert found.error(parallel_residual=False) > 0.01
    assert found.error(rotary=rotary._replace(dims=12)) > 0.01
    assert found.error(rotary=rotary._replace(scaling=None)) > 0.01
    monkeypatch.setattr(_layout, "_unfused", lambda fused, config, by_head: unfused(fused, config, False))
    flat = files_of(folder).build()
    assert found.error(lambda model: flat) > 0.01


def test_queries_keys_and_values_stand_head_by_head(folder: Path) -> None:
    files = files_of(folder)
    stored = files.tensors["gpt_neox.layers.1.attention.query_key_value.weight"]  # (output, input)
    layer = files.build().layers[1]
    for head in range(5):
        for place, part in enumerate((layer.query, layer.key, layer.value)):
            start = (3 * head + place) * 12
            own = part.weight[:, head * 12 : (head + 1) * 12]
            np.testing.assert_array_equal(own, stored[start : start + 12].T.astype(np.float64))


def test_fields_and_names_of_older_files(folder: Path) -> None:
    files = files_of(folder)
    today = files.build({"rope_parameters": {"rope_theta": 500.0, "partial_rotary_factor": 0.5}})
    older = {"rotary_emb_base": 500, "rotary_pct": 0.5}
    assert files.build(older, without=("rope_parameters",)).config == today.config
    head = files.build().head.words.weight
    files.tensors["lm_head.weight"] = files.tensors.pop("embed_out.weight")
    np.testing.assert_array_equal(files.build().head.words.weight, head)
    assert files.build({"head_dim": 12}).config == files.build().config
    assert "(12), or no such field" in files.refusal("head_dim", 6)  # transformers would turn three of 12
    files.config.pop("rope_parameters")
    assert "of the 12 entries" in files.refusal("partial_rotary_factor", None)  # a quarter is three
