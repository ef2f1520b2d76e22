"""BERT: names, options and sizes of a checkpoint, without any file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle_models import weights_of

from oracle._checks import InputError
from oracle.families import FAMILIES, Checkpoint, build_model
from oracle.model import Model
from validation.random_configs import RANDOM_CONFIGS

Make = Callable[..., dict[str, np.ndarray]]


def same(first: Model, second: Model) -> bool:
    """Whether two models have the same configuration and weights."""
    pairs = zip(weights_of(first), weights_of(second), strict=True)
    return first.config == second.config and all(np.array_equal(a, b) for a, b in pairs)


def test_every_stage_agrees_with_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs the extra 'reference'")
    from family_models import hold

    hold(tmp_path, "bert", *RANDOM_CONFIGS["bert"])


def refusal(config: Any, tensors: dict[str, np.ndarray]) -> str:
    with pytest.raises(InputError) as caught:
        build_model(Checkpoint(config, tensors))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_with_and_without_the_bert_prefix(bert_config: dict[str, Any], bert_tensors: Make) -> None:
    tensors = bert_tensors(bert_config)
    plain = build_model(Checkpoint(bert_config, tensors))
    assert same(plain, build_model(Checkpoint(bert_config, {f"bert.{k}": v for k, v in tensors.items()})))
    both = tensors | {"bert.embeddings.LayerNorm.bias": tensors["embeddings.LayerNorm.bias"]}
    assert "embeddings.LayerNorm.bias and bert.embeddings.LayerNorm.bias" in refusal(bert_config, both)


def test_position_ids_buffers_and_heads_present_or_not(
    bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    tensors = bert_tensors(bert_config)
    extra = {
        "bert.embeddings.position_ids": np.arange(11)[None],
        "embeddings.token_type_ids": np.zeros((1, 11), np.int64),
        "pooler.dense.weight": np.ones((15, 15)),
        "bert.pooler.dense.bias": np.ones(15),
        "cls.predictions.decoder.weight": tensors["embeddings.word_embeddings.weight"],
        "cls.predictions.transform.LayerNorm.gamma": np.ones(15),
        "classifier.weight": np.ones((2, 15)),
        "qa_outputs.bias": np.ones(2),
    }
    plain, more = (build_model(Checkpoint(bert_config, given)) for given in (tensors, tensors | extra))
    assert same(plain, more)


def test_layernorm_gamma_and_beta_mean_weight_and_bias_only_there(
    bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    tensors = bert_tensors(bert_config)

    def old(name: str) -> str:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    renamed = {old(name): array for name, array in tensors.items()}
    assert sum(name.endswith((".gamma", ".beta")) for name in renamed) == 2 * 5
    assert same(build_model(Checkpoint(bert_config, tensors)), build_model(Checkpoint(bert_config, renamed)))
    wrong = dict(tensors)
    wrong["encoder.layer.0.output.dense.gamma"] = wrong.pop("encoder.layer.0.output.dense.weight")
    message = refusal(bert_config, wrong)
    assert "missing: encoder.layer.0.output.dense.weight (15, 7)" in message
    assert "unexpected: encoder.layer.0.output.dense.gamma (15, 7)" in message


def test_everything_that_does_not_fit_is_listed_in_one_error(
    bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    tensors = bert_tensors(bert_config)
    del tensors["encoder.layer.0.attention.self.key.bias"]
    del tensors["encoder.layer.1.output.LayerNorm.weight"]
    tensors["encoder.layer.1.crossattention.self.query.bias"] = np.ones(15)
    tensors["encoder.layer.1.intermediate.dense.weight"] = np.ones((15, 7))
    message = refusal(bert_config, tensors)
    for part in (
        "missing: encoder.layer.0.attention.self.key.bias (15,), ",
        "encoder.layer.1.output.LayerNorm.weight (15,); unexpected",
        "unexpected: encoder.layer.1.crossattention.self.query.bias (15,)",
        "wrong shape: encoder.layer.1.intermediate.dense.weight is (15, 7) where (7, 15) belongs",
    ):
        assert part in message


def test_more_and_fewer_layers_than_the_weights_have(bert_config: dict[str, Any], bert_tensors: Make) -> None:
    tensors = bert_tensors(bert_config)
    assert "encoder.layer.2.output.dense.bias (15,)" in refusal(
        bert_config | {"num_hidden_layers": 3}, tensors
    )
    assert "unexpected: encoder.layer.1." in refusal(bert_config | {"num_hidden_layers": 1}, tensors)
    assert "num_hidden_layers" in refusal(bert_config | {"num_hidden_layers": 10**9}, tensors)


def test_weights_are_shared_or_converted_and_stored_input_first(
    bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    tensors = bert_tensors(bert_config)
    for array in tensors.values():
        array.flags.writeable = False
    model = build_model(Checkpoint(bert_config, tensors, name="shared", sha256="00"))
    assert np.shares_memory(model.embeddings.words, tensors["embeddings.word_embeddings.weight"])
    assert model.layers[0].up.weight.shape == (15, 7)
    assert (model.name, model.sha256, model.tokenizer) == ("shared", "00", None)
    wide = build_model(Checkpoint(bert_config, tensors), dtype="float64")
    assert wide.dtype == np.float64
    assert same(model, wide)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gelu", "gelu"),
        ("gelu_new", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu_pytorch_tanh"),
        ("relu", "relu"),
        ("silu", "silu"),
        ("swish", "silu"),
        ("gelu_python", "gelu"),
    ],
)
def test_the_config_decides_which_gelu(
    bert_config: dict[str, Any], bert_tensors: Make, given: str, name: str
) -> None:
    model = build_model(Checkpoint(bert_config | {"hidden_act": given}, bert_tensors(bert_config)))
    assert model.config.activation == name


def test_fields_that_may_be_absent_have_the_defaults_of_transformers(
    bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra 'reference'")
    theirs = transformers.BertConfig()
    config = bert_config | {
        "vocab_size": theirs.vocab_size,
        "max_position_embeddings": theirs.max_position_embeddings,
        "type_vocab_size": theirs.type_vocab_size,
    }
    tensors = bert_tensors(config)
    for field in ("vocab_size", "max_position_embeddings", "type_vocab_size"):
        del config[field]
    ours = build_model(Checkpoint(config, tensors)).config
    assert (ours.vocab_size, ours.max_positions) == (theirs.vocab_size, theirs.max_position_embeddings)
    assert (ours.activation, ours.norm_epsilon) == (theirs.hidden_act, theirs.layer_norm_eps)
    assert ours.pad_id == theirs.pad_token_id


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "model_type"]
)
def test_a_config_lacking_a_field(bert_config: dict[str, Any], bert_tensors: Make, field: str) -> None:
    tensors = bert_tensors(bert_config)
    del bert_config[field]
    assert f"config: {field}: " in refusal(bert_config, tensors)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "mamba"),
        ("model_type", ["bert"]),
        ("position_embedding_type", "relative_key_query"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"bits": 8}),
        ("hidden_act", "quick_gelu"),
        ("hidden_act", None),
        ("hidden_size", 16),
        ("hidden_size", -15),
        ("hidden_size", 15.0),
        ("hidden_size", "15"),
        ("hidden_size", True),
        ("num_attention_heads", 0),
        pytest.param("num_attention_heads", 10**6000, id="thousands of digits"),
        ("vocab_size", 1 << 31),
        ("vocab_size", None),
        ("layer_norm_eps", 0),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", float("inf")),
        ("layer_norm_eps", "1e-12"),
        ("pad_token_id", 23),
        ("pad_token_id", -1),
        ("sep_token_id", 1.0),
    ],
)
def test_what_is_not_supported_or_not_possible_is_refused_by_name(
    bert_config: dict[str, Any], bert_tensors: Make, field: str, value: Any
) -> None:
    assert f"config: {field}: " in refusal(bert_config | {field: value}, bert_tensors(bert_config))


def test_an_unknown_architecture_is_answered_with_the_known_ones(bert_config: dict[str, Any]) -> None:
    message = refusal(bert_config | {"model_type": "mamba"}, {})
    assert "'mamba'" in message
    assert all(family in message for family in FAMILIES)
    assert "object" in refusal(json.loads("[]"), {})


def test_sinks_and_padding(bert_config: dict[str, Any], bert_tensors: Make) -> None:
    tensors = bert_tensors(bert_config)
    ids = {"cls_token": 9, "sep_token": 8}
    assert build_model(Checkpoint(bert_config, tensors, special_ids=ids)).config.sink_ids == (9, 8)
    config = bert_config | {"pad_token_id": None, "sep_token_id": 1}
    model = build_model(Checkpoint(config, tensors, special_ids={"cls_token": 9}))
    assert model.config.sink_ids == (9, 1)
    assert model.config.pad_id is None
    with pytest.raises(InputError, match="sep_token = 23"):
        build_model(Checkpoint(bert_config, tensors, special_ids={"sep_token": 23}))
    with pytest.raises(InputError, match="dtype"):
        build_model(Checkpoint(bert_config, tensors), dtype="float16")
