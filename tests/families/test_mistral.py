"""Mistral: one sliding window in all layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from family_models import files_of, hold, judged, saved

from oracle import forward, load_model
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["mistral"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "mistral", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("mistral"), "mistral", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    for window in (4, 6, None):
        assert found.error(windows=(window,) * 3) > 0.01


def test_a_window_counts_the_query_itself(folder: Path) -> None:
    trace = forward(load_model(folder), np.arange(5, 14))
    keys = np.arange(9)
    near = (keys <= keys[:, None]) & (keys > keys[:, None] - 5)
    np.testing.assert_array_equal(trace.visible, near)
    np.testing.assert_array_equal(trace.visible_in(2), near)
    np.testing.assert_array_equal(trace.attention > 0, np.broadcast_to(near, (3, 6, 9, 9)))
    assert np.isneginf(trace.scores[..., ~near]).all()


def test_a_window_counts_real_tokens_only(folder: Path) -> None:
    model = load_model(folder, dtype="float64")
    ids = np.arange(5, 14)
    alone = forward(model, ids).attention
    mask = np.array([0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1], bool)
    padded = np.zeros(13, np.int64)
    padded[mask] = ids
    rows = forward(model, padded, mask=mask).attention[:, :, mask][..., mask]
    np.testing.assert_allclose(rows, alone, rtol=0, atol=1e-13)


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    files.refusal("layer_types", ["full_attention"] * 3)
    files.refusal("sliding_window", 0)
    assert files.build({"sliding_window": None}).config.windows == ()
    assert files.build({}, without=("sliding_window",)).config.windows == (4096,) * 3
