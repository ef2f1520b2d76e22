"""Qwen2: biases of queries, keys and values, windows in the last layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from family_models import files_of, hold, judged, saved
from wording import refused

from oracle import forward, load_model, sink_share
from validation.measuring import measure
from validation.random_configs import RANDOM_CONFIGS
from validation.report.document import Check
from validation.studies.invariance_cells import measure_cells
from validation.table import tabulate
from validation.verify import verify

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["qwen2"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "qwen2", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("qwen2"), "qwen2", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(windows=(7, 7, 7)) > 0.01
    assert found.error(windows=(None, None, 7)) > 0.01
    assert found.error(windows=(None, 6, 7)) > 0.01
    assert found.error(windows=()) > 0.01


def test_windows_by_layer_types_or_by_the_first_layer_that_has_one(folder: Path) -> None:
    files = files_of(folder)
    assert files.config["layer_types"] == ["full_attention", "sliding_attention", "sliding_attention"]
    assert files.build().config.windows == (None, 7, 7)
    assert files.build({}, without=("layer_types",)).config.windows == (None, 7, 7)
    full = {"use_sliding_window": False, "layer_types": None}
    assert files.build(full).config.windows == ()
    assert "full_attention for each" in files.refusal("layer_types", ["full_attention"] * 2)
    files.refusal("layer_types", ["full_attention", "linear_attention", "full_attention"])
    files.config["sliding_window"] = None
    files.refusal("layer_types", files.config["layer_types"])


def test_what_is_visible_may_differ_by_layer(folder: Path) -> None:
    trace = forward(load_model(folder), np.arange(5, 16))
    causal = np.tri(11, dtype=bool)
    near = causal & ~np.tri(11, k=-7, dtype=bool)
    assert trace.visible.shape == (3, 1, 11, 11)
    for layer, seen in enumerate((causal, near, near)):
        np.testing.assert_array_equal(trace.visible_in(layer), seen)
        np.testing.assert_array_equal(trace.attention[layer] > 0, np.broadcast_to(seen, (5, 11, 11)))
    share = sink_share(trace.attention, trace.sink_mask, trace.value_norm, trace.visible)
    assert (share[1:, :, 7:] == 0).all()
    assert (share[0] > 0).all()


def test_a_report_counts_the_rows_of_each_layer_by_its_own_window(folder: Path) -> None:
    trace = forward(load_model(folder), np.arange(5, 28))
    norms = {"value_norm": trace.value_norm}
    arrays = (trace.attention, trace.sink_mask, trace.visible, norms)
    table = tabulate(*arrays, min_content_keys=5)
    for layer in range(3):
        assert sorted(set(table.query[table.layer == layer].tolist())) == list(range(5, 23))
    assert not table.no_sink[table.layer == 0].any()
    assert table.no_sink[table.layer == 1].sum() == 5 * (23 - 7)
    seen = trace.visible_in(1)
    alone = tabulate(trace.attention, trace.sink_mask, seen, norms, layers=[1], min_content_keys=5)
    np.testing.assert_array_equal(table.shares["value_norm"][table.layer == 1], alone.shares["value_norm"])
    full = tabulate(*arrays)  # a window of 7 never has 8 content keys
    assert set(full.layer.tolist()) == {0}
    assert full.left_out == 5 * (7 + 2 * 22)
    found = verify(table, *arrays, 40, 0)
    assert isinstance(found, Check)
    assert found.ok, found.found


def test_a_model_with_windows_goes_through_measure(folder: Path) -> None:
    texts = [np.arange(5, 40), np.arange(50, 70)]
    report = measure(load_model(folder), texts, min_content_keys=4, verify=20)
    (check,) = (part for part in report if isinstance(part, Check))
    assert check.ok, check.found


def test_a_study_that_compares_layers_refuses_windows_that_differ(folder: Path) -> None:
    with refused("model", "all layers see the same keys", "windows differ by layer"):
        measure_cells(load_model(folder), [np.arange(5, 40)])
