"""The reference itself, and the oracle against it on random weights."""

from __future__ import annotations

import builtins
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import InputError, Unavailable, load_model
from validation.compare import compare
from validation.forward_checks import Agreement, padded, random_batches
from validation.reference import STAGES, Reference, random_bert, torch_threads
from validation.stages import runner, single
from validation.tally import Tally

torch = pytest.importorskip("torch", reason='the reference needs pip install "sinkscope[reference]"')
transformers = pytest.importorskip(
    "transformers", reason='the reference needs pip install "sinkscope[reference]"'
)

CONFIGS: dict[str, dict[str, Any]] = {
    "three heads of width 10": {},
    "five heads of width 7, gelu_new": {
        "hidden_size": 35,
        "num_attention_heads": 5,
        "num_hidden_layers": 4,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-7,
    },
    "one head of width 13, one layer": {
        "hidden_size": 13,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "layer_norm_eps": 0.01,
    },
    "relu, three token types": {"hidden_act": "relu", "type_vocab_size": 3, "num_hidden_layers": 2},
    "silu": {"hidden_act": "silu", "num_hidden_layers": 2},
    "tanh gelu": {"hidden_act": "gelu_pytorch_tanh", "num_hidden_layers": 2},
}
FOUR = ("oracle-float64", "torch-float64", "oracle-float32", "torch-float32")


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    """Threads cost more than they save on models of this size."""
    with torch_threads(1):
        yield


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return random_bert(tmp_path / "small", 7)


@pytest.mark.parametrize("name", CONFIGS)
def test_oracle_agrees_with_transformers_at_every_stage_in_float64(name: str, tmp_path: Path) -> None:
    model = load_model(random_bert(tmp_path, 11, **CONFIGS[name]))
    tally = Tally("oracle-float64", "torch-float64")
    ours, theirs = (runner(model, implementation) for implementation in FOUR[:2])
    for batch in random_batches(3, model):
        for text, mask in enumerate(batch.mask):
            tally.add(theirs(batch)[text], ours(batch)[text], mask)
    assert tally.texts == 7
    assert tally.leaving is None
    assert set(tally.stages) == set(STAGES)
    assert tally.stages["attention"].max_absolute <= 1e-12


def test_float32_error_is_at_most_twice_pytorchs_over_twenty_draws(tmp_path: Path) -> None:
    found = Agreement()
    for seed in range(20):
        config = list(CONFIGS.values())[seed % 2]
        model = load_model(random_bert(tmp_path / str(seed), seed, **config))
        runs = {name: runner(model, name) for name in FOUR}
        for batch in random_batches(seed, model):
            found.add(runs, batch)
    assert 0 < found.ratio <= 2


def test_random_models_have_peaks_and_redrawn_biases(small: Path) -> None:
    model = load_model(small)
    assert model.source == small
    texts = np.random.default_rng(5).integers(101, size=(5, 37))
    maxima = Reference.load(small).run(texts)["attention"].max(axis=-1)  # (batch, layer, head, query)
    assert (maxima.mean(axis=(0, 2, 3)) > 0.4).all()
    assert (maxima.max(axis=(0, 3)) > 0.9).all()
    for layer in model.layers:
        for linear in (layer.query, layer.key, layer.value, layer.output, layer.up, layer.down):
            assert linear.bias.std() > 0.3
        for norm in (layer.attention_norm, layer.output_norm):
            assert 0.8 < norm.weight.mean() < 1.2
            assert norm.weight.std() > 0.1


def test_the_same_seed_writes_the_same_weights(small: Path, tmp_path: Path) -> None:
    random_bert(tmp_path / "again", 7)
    random_bert(tmp_path / "other", 8)
    first, again, other = (load_model(tmp_path / name).sha256 for name in ("small", "again", "other"))
    assert first == again != other


def test_scores_are_what_their_softmax_was_given(small: Path) -> None:
    ids = np.arange(19).reshape(1, -1)
    found = Reference.load(small, "float64").run(ids)
    scores = found["scores"]
    rows = np.exp(scores - scores.max(axis=-1, keepdims=True))
    rows /= rows.sum(axis=-1, keepdims=True)
    assert compare(found["attention"], rows, absolute=1e-15).within
    scale = np.sqrt(np.float64(found["queries"].shape[-1]))
    assert compare(found["queries"] @ found["keys"].swapaxes(-1, -2) / scale, scores, absolute=1e-12).within


def test_shapes_and_dtypes_of_every_stage(small: Path) -> None:
    ids = np.arange(34).reshape(2, 17)
    wanted = {
        "embeddings": (2, 17, 30),
        "queries": (2, 3, 3, 17, 10),
        "keys": (2, 3, 3, 17, 10),
        "values": (2, 3, 3, 17, 10),
        "value_norm": (2, 3, 3, 17),
        "scores": (2, 3, 3, 17, 17),
        "attention": (2, 3, 3, 17, 17),
        "hidden_states": (2, 4, 17, 30),
    }
    for dtype in ("float32", "float64"):
        found = Reference.load(small, dtype).run(ids)
        assert {name: array.shape for name, array in found.items()} == wanted
        assert {str(found[name].dtype) for name in wanted if name != "value_norm"} == {dtype}
        assert found["value_norm"].dtype == np.float64
        assert (found["embeddings"] == found["hidden_states"][:, 0]).all()


def test_value_norms_are_those_of_the_references_own_values_and_can_be_had_alone(small: Path) -> None:
    ids = np.arange(17).reshape(1, -1)
    reference = Reference.load(small, "float32")
    found = reference.run(ids)
    wanted = np.sqrt((found["values"].astype(np.float64) ** 2).sum(axis=-1))
    assert compare(found["value_norm"], wanted, relative=1e-14).within
    alone = reference.run(ids, keep=("value_norm",))
    assert list(alone) == ["value_norm"]
    assert (alone["value_norm"] == found["value_norm"]).all()


def test_token_types_and_padding_reach_the_reference(small: Path) -> None:
    reference = Reference.load(small, "float64")
    texts = [np.arange(5, 16), np.arange(20, 27)]
    plain, split, left = single(texts[0]), padded(texts, 0, 2, False), padded(texts, 0, 2, True)
    alone = reference.run(plain.token_ids)["attention"][0]
    typed = reference.run(split.token_ids[:1, :11], token_types=split.token_types[:1, :11])["attention"][0]
    assert np.abs(alone - typed).max() > 1e-3
    for batch in (split, left):
        mask = batch.mask[0]
        rows = reference.run(
            batch.token_ids, batch.mask, batch.token_types, np.maximum(np.cumsum(batch.mask, 1) - 1, 0)
        )
        real = rows["attention"][0][:, :, mask]
        assert (real[..., ~mask] == 0).all()
        assert compare(typed, real[..., mask], absolute=1e-12).within


def test_keep_runs_only_what_is_named(small: Path) -> None:
    assert list(Reference.load(small).run([[1, 2, 3]], keep=("attention",))) == ["attention"]


def test_global_state_is_left_as_it_was(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logging = transformers.utils.logging
    softmax, verbosity, bars = (
        torch.nn.functional.softmax,
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
    )
    threads, draws, dtype = torch.get_num_threads(), torch.random.get_rng_state(), torch.get_default_dtype()
    reference = Reference.load(small, "float64")
    reference.run([[1, 2, 3]])
    with pytest.raises(IndexError):
        reference.run([[10**6]])
    with torch_threads(2):
        assert torch.get_num_threads() == 2
    assert torch.nn.functional.softmax is softmax
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (verbosity, bars)
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)
    assert torch.equal(torch.random.get_rng_state(), draws)
    assert not any(
        module._forward_hooks for module in reference._network.modules() if "Linear" in type(module).__name__
    )
    assert capfd.readouterr() == ("", "")


def test_a_layer_without_its_softmax_is_an_error(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = Reference.load(small)
    attention = reference._network.encoder.layer[1].attention.self
    real = type(attention).forward

    def unseen(self: Any, *arguments: Any, **named: Any) -> Any:
        patched = torch.nn.functional.softmax
        torch.nn.functional.softmax = lambda scores, dim: scores.softmax(dim)
        try:
            return real(self, *arguments, **named)
        finally:
            torch.nn.functional.softmax = patched

    monkeypatch.setattr(attention, "forward", unseen.__get__(attention))
    with pytest.raises(Unavailable, match="2 arrays of scores came out of transformers where 3 belong"):
        reference.run([[1, 2, 3]])


def test_a_weight_that_transformers_would_make_up_is_an_error(small: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "incomplete"
    folder.mkdir()
    shutil.copy(small / "config.json", folder)
    tensors = load_file(small / "model.safetensors")
    del tensors["encoder.layer.1.attention.self.key.bias"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"encoder\.layer\.1\.attention\.self\.key\.bias"):
        Reference.load(folder)


def test_what_is_not_a_model_is_an_input_error(tmp_path: Path, small: Path) -> None:
    with pytest.raises(InputError, match="expected a model that transformers loads"):
        Reference.load(tmp_path / "nowhere")
    odd = tmp_path / "odd"
    shutil.copytree(small, odd)
    config = json.loads((odd / "config.json").read_text())
    (odd / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1}))
    with pytest.raises(InputError, match=r"transformers refuses the checkpoint: .*layer_norm_eps") as refusal:
        Reference.load(odd)
    assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="expected float32 or float64"):
        Reference.load(small, "longdouble")
    with pytest.raises(InputError, match="A single text is a batch of one"):
        Reference.load(small).run([1, 2, 3])
    with pytest.raises(InputError, match="attention_mask: expected one shape"):
        Reference.load(small).run([[1, 2, 3]], mask=[[1, 1]])


def test_weights_that_give_only_uniform_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found uniform rows in layer 0"):
        random_bert(tmp_path, 0, layer_norm_eps=1e30)


def test_without_the_extra_the_reference_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    for call in (lambda: Reference.load(tmp_path), lambda: random_bert(tmp_path, 0)):
        with pytest.raises(Unavailable, match=r'pip install "sinkscope\[reference\]"'):
            call()
