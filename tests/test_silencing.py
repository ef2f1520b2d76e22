"""Silenced heads: against a W_O without their slices, in the oracle and in transformers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from family_models import saved
from oracle_models import random_model
from safetensors.numpy import load_file, save_file
from wording import refused

from oracle import InputTypeError, Model, forward, load_model, logits, logits_without_heads, silencing
from oracle.attention import attend
from oracle.model import Linear, Rotary
from oracle.silencing import states_without_heads

IDS = [9, 4, 44, 21, 17, 3, 30, 5, 11, 58, 23]
CUT = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 0]], bool)


def small(**choices: object) -> Model:
    return random_model(3, n_layers=4, n_heads=4, d_head=6, vocab_size=61, **choices)


def without_slices(model: Model, cut: np.ndarray) -> Model:
    """The model with the slices of W_O that belong to those heads set to zero."""
    layers = []
    for layer, heads in zip(model.layers, cut, strict=True):
        weight = layer.output.weight * np.repeat(~heads, model.config.d_head)[:, None]
        layers.append(replace(layer, output=Linear(weight, layer.output.bias)))
    return replace(model, layers=tuple(layers))


CHOICES = {
    "encoder": {},
    "causal": {"norm_place": "pre", "causal": True, "rotary": Rotary(100.0, 4)},
    "windows": {"norm_place": "pre", "causal": True, "windows": (3, None, 2, None)},
    "parallel": {"norm_place": "pre", "causal": True, "parallel_residual": True},
    "by layer": {"norm_place": "pre", "causal": True, "score_by_layer": True},
    "capped": {"norm_place": "pre", "causal": True, "score_cap": 3.0, "score_scalar": 7.0},
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_equals_a_model_without_those_slices_bit_for_bit(dtype: str, choice: dict[str, object]) -> None:
    model = small(**choice).astype(dtype)
    trace = forward(model, IDS, sink="none", keep="hidden_states")
    found = states_without_heads(model, trace, CUT)
    expected = forward(without_slices(model, CUT), IDS, sink="none", keep="hidden_states").hidden_states[-1]
    assert found.dtype == model.dtype
    np.testing.assert_array_equal(found, expected)
    assert np.abs(found - trace.hidden_states[-1]).max() > 0.01


@pytest.mark.parametrize("first", range(4))
def test_from_any_layer_the_forward_pass_goes_on_bit_for_bit(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No head is silenced in truth, but the blocks from `first` on are computed again."""
    model = small(**CHOICES["windows"])
    trace = forward(model, IDS, sink="none", keep="hidden_states")
    ran = []

    def undisturbed(*arguments: object) -> object:
        ran.append(arguments[1])
        return run_block(*arguments[:-1])

    run_block = silencing.run_block
    monkeypatch.setattr(silencing, "run_block", undisturbed)
    cut = np.zeros((4, 4), bool)
    cut[first, 0] = True
    np.testing.assert_array_equal(states_without_heads(model, trace, cut), trace.hidden_states[-1])
    assert ran == list(range(first, 4))


def test_padding_is_where_it_was() -> None:
    """Also between tokens, where it would turn what rotary positions see."""
    model = small(**CHOICES["causal"])
    alone = forward(model, IDS, sink="none", keep="hidden_states")
    mask = np.ones(len(IDS) + 4, bool)
    mask[[0, 5, 6, 12]] = False
    ids = np.zeros(len(mask), int)
    ids[mask] = IDS
    padded = forward(model, ids, mask=mask, sink="none", keep="hidden_states")
    found = states_without_heads(model, padded, CUT)[mask]
    np.testing.assert_allclose(found, states_without_heads(model, alone, CUT), rtol=0, atol=1e-12)


def test_all_heads_silenced_leave_the_output_bias() -> None:
    layer = small().layers[0]
    x = np.random.default_rng(0).standard_normal((5, 13))
    scores, attention = np.full((2, 4, 5, 5), 7.0)
    every, seen = np.ones(4, bool), np.ones((5, 5), bool)
    found = attend(x, layer, 4, seen, scores, attention, silenced=every)
    np.testing.assert_array_equal(found.output, np.tile(layer.output.bias, (5, 1)))
    assert (scores == 7).all()
    assert (attention == 7).all()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="needs the extra 'reference'")
    sizes = {"vocab_size": 61, "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2}
    depth = {"num_hidden_layers": 4, "intermediate_size": 29, "max_position_embeddings": 61}
    return saved(tmp_path_factory.mktemp("llama"), "llama", sizes | depth)


def test_logits_are_those_of_transformers_without_the_slices(llama: Path, tmp_path: Path) -> None:
    from validation.reference import Reference

    cut_down = Path(shutil.copytree(llama, tmp_path / "cut"))
    tensors = load_file(llama / "model.safetensors")
    for layer, heads in enumerate(CUT):
        tensors[f"model.layers.{layer}.self_attn.o_proj.weight"][:, np.repeat(heads, 6)] = 0
    save_file(tensors, cut_down / "model.safetensors", metadata={"format": "pt"})
    wanted = Reference.load(cut_down, "float64").logits(np.array([IDS]))[0]
    model = load_model(llama, dtype="float64")
    trace = forward(model, IDS, keep="hidden_states")
    found = logits_without_heads(model, trace, CUT)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert np.abs(found - logits(model, trace)).max() > 0.1
    nothing = np.zeros_like(CUT)
    np.testing.assert_array_equal(logits_without_heads(model, trace, nothing), logits(model, trace))


def test_inputs_are_left_alone_and_wrong_ones_refused() -> None:
    model = small(**CHOICES["causal"])
    trace = forward(model, IDS, sink="none", keep="hidden_states")
    before, mask = trace.hidden_states.copy(), CUT.copy()
    mask.flags.writeable = trace.hidden_states.flags.writeable = False
    states_without_heads(model, trace, mask)
    np.testing.assert_array_equal(trace.hidden_states, before)
    with refused("silenced", "dtype int64", error=InputTypeError):
        states_without_heads(model, trace, CUT.astype(np.int64))
    with refused("silenced", "(4, 4)", "(3, 4)"):
        states_without_heads(model, trace, CUT[:3])
    with refused("trace", "float64", "float32"):
        states_without_heads(model.astype("float32"), trace, CUT)
    with refused("trace", "(5, 11, 13)"):
        states_without_heads(model, replace(trace, token_ids=np.array(IDS[1:])), CUT)
    with refused("trace.hidden_states"):
        states_without_heads(model, forward(model, IDS, sink="none", keep=()), CUT)
    with refused("model", "language-model head"):
        logits_without_heads(model, trace, CUT)
