"""Configurations of every family with one field spoilt: refused in one line, or read right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from family_models import Files, files_of, saved
from oracle_models import weights_of
from wording import refused

from oracle import InputError, forward
from oracle.families import FAMILIES
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

CAUSAL = ("gemma2", "gpt2", "gpt_neox", "llama", "mistral", "opt", "qwen2", "qwen3")
HEADS = {"lm_head.weight", "embed_out.weight"}  # stand outside
SPOILT: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2,
    10**30,
    0.5,
    float("nan"),
    "x",
    [],
    [None] * 3,
    ["full_attention"] * 3,
    {},
    {"rope_type": "yarn"},
    {"a": {}},
)


def test_there_are_configurations_of_every_family() -> None:
    assert set(RANDOM_CONFIGS) == set(FAMILIES)


@pytest.fixture(scope="module", params=FAMILIES)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    family = request.param
    return files_of(saved(tmp_path_factory.mktemp("configs"), family, RANDOM_CONFIGS[family][0]))


def test_a_spoilt_field_is_refused_or_read_right(files: Files) -> None:
    fields = {*files.config, "rope_scaling", "rope_theta", "quantization_config"} - {"model_type"}
    said, built = [], 0
    for field in sorted(fields):
        for value in SPOILT:
            try:
                model = files.build({field: value})
            except InputError as error:
                said.append(str(error))
            else:
                trace = forward(model, [6, 7, 8], sink="none", keep="attention", truncate=True)
                np.testing.assert_allclose(trace.attention.sum(axis=-1), 1, rtol=1e-12)
                built += 1
    assert not any("\n" in message or len(message) > 4000 for message in said)
    assert len(said) > 50
    assert built > 50


def test_a_decoder_that_sees_the_future_is_refused(files: Files) -> None:
    """For every one of these values transformers masks no future; an encoder's never was."""
    if files.config["model_type"] not in CAUSAL:
        assert not files.build({"is_causal": False}).config.causal
        return
    for value in (False, None, 0):
        with refused("config: is_causal", "expected true, or no such field", f"found {value}"):
            files.build({"is_causal": value})
    assert files.build({"is_causal": True}).config == files.build().config


def test_layers_and_weights_of_their_own_are_refused(files: Files) -> None:
    with refused("config: per_layer_config", "it to be off or absent"):
        files.build({"per_layer_config": {"0": {"attention_dropout": 0.1}}})
    with refused("config: transformers_weights", "it to be off or absent"):
        files.build({"transformers_weights": "other.safetensors"})


def test_names_with_and_without_the_prefix(files: Files) -> None:
    family = files.config["model_type"]
    prefix = {"gpt2": "transformer.", "gpt_neox": "gpt_neox.", "opt": "model.decoder."}.get(family)
    prefix = prefix or ("model." if family in CAUSAL else f"{family}.")
    bare = {name.removeprefix(prefix): array for name, array in files.tensors.items()}
    whole = {name if name in HEADS else prefix + name: array for name, array in bare.items()}
    assert not (set(bare) - HEADS) & set(whole)
    built = [weights_of(Files(files.config, tensors).build()) for tensors in (files.tensors, bare, whole)]
    for array, *others in zip(*built, strict=True):
        for other in others:
            np.testing.assert_array_equal(array, other)
