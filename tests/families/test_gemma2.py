"""Gemma 2: norms before and after, capped scores and logits, windows in every other layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from family_models import files_of, hold, judged, saved

from oracle import Model, attention, forward, load_model, logits
from oracle.ops import softmax
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["gemma2"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "gemma2", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("gemma2"), "gemma2", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(folder)
    assert found.error(score_cap=None) > 0.01
    assert found.error(score_cap=20.0) > 1e-4
    assert found.error(score_scalar=None) > 0.01
    assert found.error(norm_kind="rms") > 0.01
    assert found.error(norm_place="pre") == found.error()  # the post norms are parts of the layer
    assert found.error(windows=(None, 5, None)) > 0.01
    assert found.error(windows=(4, None, 5)) > 0.01

    def change(**parts: Any) -> Callable[[Model], Model]:
        return lambda model: replace(model, layers=tuple(replace(layer, **parts) for layer in model.layers))

    assert found.error(change(attention_post_norm=None)) > 0.01
    assert found.error(change(output_post_norm=None)) > 0.01

    def unscaled(model: Model) -> Model:
        return replace(model, embeddings=replace(model.embeddings, scale=1.0))

    assert found.error(unscaled) > 0.01
    monkeypatch.setattr(attention, "_cap", lambda scores, cap: None)
    monkeypatch.setattr(attention, "softmax", capped_after_the_mask)
    assert found.error() > 0.01


def capped_after_the_mask(scores: np.ndarray, out: np.ndarray) -> np.ndarray:
    return softmax(19 * np.tanh(scores / 19), out)


def test_scores_and_logits_stay_below_their_caps(folder: Path) -> None:
    model = load_model(folder, dtype="float64")
    trace = forward(model, np.arange(5, 28))
    seen = np.isfinite(trace.scores)
    assert 15 < np.abs(trace.scores[seen]).max() < 19
    np.testing.assert_array_equal(seen, np.broadcast_to(trace.visible, seen.shape))
    found = logits(model, trace)
    assert 2.5 < np.abs(found).max() < 3
    assert model.head is not None
    assert model.head.words is None


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    files.refusal("use_bidirectional_attention", True)
    files.refusal("query_pre_attn_scalar", 0)
    files.refusal("attn_logit_softcapping", -1.0)
    files.refusal("hidden_activation", None)
    files.refusal("sliding_window", None)
    older = files.build({}, without=("layer_types",)).config
    assert older.windows == (5, None, 5)
    assert files.build({}, without=("final_logit_softcapping",)).config.logit_cap == 30
