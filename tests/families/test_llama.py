"""Llama: rotary positions and their stretching, shared keys and values, biases, the head."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from family_models import Files, files_of, hold, judged, saved
from wording import refused

from oracle import Model, forward, load_model, logits
from oracle.model import Linear, Rotary, RotaryScaling
from oracle.ops import rms_norm
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

FULL, OTHER = RANDOM_CONFIGS["llama"]
LLAMA3: dict[str, Any] = FULL["rope_parameters"]


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    hold(tmp_path, "llama", FULL, OTHER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("llama"), "llama", FULL)


def test_wrong_forward_passes_are_noticed(folder: Path) -> None:
    found = judged(folder)
    rotary = found.model.config.rotary
    assert rotary is not None
    assert found.error(rotary=None) > 0.01
    assert found.error(rotary=rotary._replace(dims=12)) > 0.01
    assert found.error(rotary=rotary._replace(base=501.0)) > 1e-6
    assert found.error(rotary=rotary._replace(scaling=None)) > 0.01
    assert found.error(norm_kind="layer") > 0.01
    assert found.error(norm_place="post") > 0.01
    assert found.error(causal=False) > 0.01
    assert found.error(norm_epsilon=1e-6) > 1e-9

    def swapped(model: Model) -> Model:
        """Heads that alternate between the shared keys."""
        order = np.arange(56).reshape(2, 2, 14).transpose(1, 0, 2).ravel()
        layers = tuple(
            replace(
                layer,
                query=Linear(layer.query.weight[:, order], layer.query.bias[order]),
                output=Linear(layer.output.weight[order], layer.output.bias),
            )
            for layer in model.layers
        )
        return replace(model, layers=layers)

    assert found.error(swapped) > 0.01


def test_four_heads_over_two_repeat_in_order(folder: Path) -> None:
    model = load_model(folder, dtype="float64")
    trace = forward(model, np.arange(5, 16))
    for norms in (trace.value_norm, trace.values, trace.keys):
        np.testing.assert_array_equal(norms[:, 0], norms[:, 1])
        np.testing.assert_array_equal(norms[:, 2], norms[:, 3])
        assert (norms[:, 0] != norms[:, 2]).all()
    layer = model.layers[0]
    norms = np.ones((1, 40)) @ layer.value.weight + layer.value.bias
    assert norms.shape == (1, 2 * 14)
    assert np.abs(trace.queries[:, 0] - trace.queries[:, 1]).max() > 0.1


def test_the_sink_of_a_causal_model_is_its_first_token(folder: Path) -> None:
    model = load_model(folder)
    assert model.config.sink_ids == ()
    assert forward(model, [7, 8, 9]).sink_mask.tolist() == [True, False, False]
    padded = forward(model, [0, 7, 8], mask=[False, True, True])
    assert padded.sink_mask.tolist() == [False, True, False]
    assert not forward(model, [7, 8], sink="none").sink_mask.any()
    np.testing.assert_array_equal(forward(model, [7, 8, 9]).visible, np.tri(3, dtype=bool))


def test_positions_in_the_fields_of_older_releases(folder: Path) -> None:
    files = files_of(folder)
    today = files.build().config
    scaling = {name: value for name, value in LLAMA3.items() if name not in ("rope_theta", "rope_type")}
    for kind in ("type", "rope_type"):
        older = {"rope_theta": 500.0, "rope_scaling": scaling | {kind: "llama3"}}
        assert files.build(older, without=("rope_parameters",)).config == today
    plain = files.build({"rope_theta": 700.0}, without=("rope_parameters",)).config.rotary
    assert plain == Rotary(700.0, 14)
    assert files.build({"rope_scaling": None}, without=("rope_parameters",)).config.rotary == Rotary(1e4, 14)
    linear = {"rope_scaling": {"type": "linear", "factor": 2.0}}
    assert files.build(linear, without=("rope_parameters",)).config.rotary == Rotary(
        1e4, 14, RotaryScaling(2.0)
    )


def test_the_trained_length_may_stand_outside(folder: Path, tmp_path: Path) -> None:
    """transformers takes that one where both are there, so that they must be the same."""
    files = files_of(folder)
    name = "original_max_position_embeddings"
    assert files.build({name: 32}).config == files.build({name: None}).config == files.build().config
    assert "rope_parameters says (32), or no such field" in files.refusal(name, 16)
    plain = {"rope_type": "linear", "factor": 2.0, name: 32}  # which has no use for it
    assert files.build({"rope_parameters": plain, name: 16}).config.rotary == Rotary(
        1e4, 14, RotaryScaling(2.0)
    )
    inner = {field: value for field, value in LLAMA3.items() if field != name}
    shutil.copytree(folder, tmp_path / "outside")
    config = files.config | {"rope_parameters": inner, name: 16}
    (tmp_path / "outside" / "config.json").write_text(json.dumps(config))
    rotary = judged(tmp_path / "outside").model.config.rotary
    assert rotary is not None
    assert rotary.scaling == RotaryScaling(4.0, 16.0, 1.0, 4.0)


def test_options_that_are_not_there_are_refused_by_name(folder: Path) -> None:
    files = files_of(folder)
    for kind in ("dynamic", "yarn", "longrope", None, 3):
        assert "default or linear or llama3" in files.refusal(
            "rope_parameters", {"rope_type": kind or "none", "factor": 2.0}
        )
    files.refusal("rope_parameters", {"full_attention": {"rope_type": "default"}})
    files.refusal("rope_parameters", [1])
    files.refusal("rope_parameters", LLAMA3 | {"high_freq_factor": 1.0})
    files.refusal("rope_parameters", LLAMA3 | {"factor": 0})
    files.refusal("rope_parameters", {"partial_rotary_factor": 0.5})
    assert "whole heads" in files.refusal("rope_parameters", {"partial_rotary_factor": 0.45})
    files.refusal("num_key_value_heads", 3)
    files.refusal("attention_bias", "yes")
    files.refusal("hidden_act", "gelu_10")
    files.refusal("quantization_config", {"bits": 4})
    files.refusal("num_hidden_layers", 10**8)


def test_the_head_is_its_own_tied_or_absent(folder: Path) -> None:
    files = files_of(folder)
    ids = np.arange(5, 16)
    whole = files.build()
    states = forward(whole, ids).hidden_states[-1]
    own = logits(whole, states)
    assert own.shape == (11, 101)
    tied = files.build({"tie_word_embeddings": True})
    assert tied.head is not None
    assert tied.head.words is None
    scaled = rms_norm(states, whole.head.norm, 3e-5)
    np.testing.assert_allclose(logits(tied, states), scaled @ whole.embeddings.words.T, rtol=1e-13)
    assert np.abs(own - logits(tied, states)).max() > 0.1
    trunk = {name.removeprefix("model."): array for name, array in files.tensors.items()}
    trunk.pop("lm_head.weight")
    bare = Files(files.config, trunk).build()
    np.testing.assert_array_equal(forward(bare, ids).hidden_states[-1], states)
    with refused("model", "saved without one"):
        logits(bare, states)


def test_stray_buffers_are_passed_over(folder: Path) -> None:
    files = files_of(folder)
    files.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(7, np.float32)
    assert len(files.build().layers) == 3
