"""OPT: positions from row 2 on, words of another width, norms before or after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import Files, files_of, hold, judged, saved
from oracle_models import weights_of

from oracle import forward, load_model, logits
from oracle.block import positions_of
from validation.random_configs import RANDOM_CONFIGS
from validation.reference import Reference

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["opt"]
BARE = OTHER | {"_remove_final_layer_norm": True}


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "opt", FULL, OTHER, BARE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("opt"), "opt", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    assert found.error(position_offset=0) > 0.01
    assert found.error(norm_place="pre") > 0.01
    assert found.error(activation="gelu") > 0.01


def test_the_final_norm_is_there_unless_it_is_removed(tmp_path: Path) -> None:
    """Rows and hidden states stand before it; logits and the likeliest tokens show it."""
    found = {}
    for name, config in (("normed", OTHER), ("bare", BARE)):
        place = saved(tmp_path / name, "opt", config)
        model = load_model(place, dtype="float64")
        ids = np.arange(5, 28)
        trace = forward(model, ids)
        found[name] = model, trace, logits(model, trace)
        network = Reference.load(place, "float64")
        states = network.run(ids[None], keep=("hidden_states",))["hidden_states"][0]
        np.testing.assert_allclose(trace.hidden_states, states, rtol=0, atol=1e-12 * np.abs(states).max())
        wanted = network.logits(ids[None])[0]
        np.testing.assert_allclose(found[name][2], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
        np.testing.assert_array_equal(found[name][2].argmax(axis=-1), wanted.argmax(axis=-1))
    (normed, _, _), (bare, states, own) = found["normed"], found["bare"]
    assert normed.head.norm is not None
    assert bare.head.norm is None
    wrong = logits(replace(bare, head=replace(bare.head, norm=normed.head.norm)), states)
    assert (wrong.argmax(axis=-1) != own.argmax(axis=-1)).any()


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
