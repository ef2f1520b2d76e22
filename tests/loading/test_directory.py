"""Directories that load, and what they load as."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from oracle._checks import InputError, InputTypeError
from oracle.loading import load_model
from oracle.model import Model

Make = Callable[..., dict[str, np.ndarray]]


def assert_same_weights(model: Model, tensors: dict[str, np.ndarray]) -> None:
    """Every array of `model` is the tensor of that name, exactly, with matrices as (d_in, d_out)."""

    def check(array: np.ndarray, name: str) -> None:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            expected = tensors[name].astype(model.dtype)
        np.testing.assert_array_equal(array, expected, err_msg=name)
        assert array.dtype == model.dtype

    check(model.embeddings.words, "embeddings.word_embeddings.weight")
    check(model.embeddings.positions, "embeddings.position_embeddings.weight")
    check(model.embeddings.token_types, "embeddings.token_type_embeddings.weight")
    check(model.embeddings.norm.weight, "embeddings.LayerNorm.weight")
    check(model.embeddings.norm.bias, "embeddings.LayerNorm.bias")
    places = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "output_norm": "output.LayerNorm",
    }
    assert len(model.layers) == model.config.n_layers
    for index, layer in enumerate(model.layers):
        for part, name in places.items():
            weight, bias = getattr(layer, part)
            check(weight.T, f"encoder.layer.{index}.{name}.weight")
            check(bias, f"encoder.layer.{index}.{name}.bias")


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_a_directory_gives_its_weights_exactly(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make, dtype: str
) -> None:
    model = load_model(bert_folder, dtype=dtype)
    assert model.dtype == np.dtype(dtype)
    assert_same_weights(model, bert_tensors(bert_config))
    assert model.name == "tiny"
    assert model.config.sink_ids == (2, 3)
    weights = (bert_folder / "model.safetensors").read_bytes()
    assert model.sha256 == hashlib.sha256(weights).hexdigest()
    assert load_model(str(bert_folder)).config == model.config


def test_float32_weights_are_views_of_the_mapped_file(bert_folder: Path) -> None:
    model = load_model(bert_folder)
    words = model.embeddings.words
    assert type(words) is np.ndarray
    assert not words.flags.owndata
    assert not words.flags.writeable
    assert words.flags.aligned
    assert not model.layers[0].up.weight.flags.owndata


@pytest.mark.parametrize("stored", ["float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_checkpoints_in_every_float_type(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make, stored: str, dtype: str
) -> None:
    tensors = {name: array.astype(stored) for name, array in bert_tensors(bert_config).items()}
    save_file(tensors, bert_folder / "model.safetensors")
    assert_same_weights(load_model(bert_folder, dtype=dtype), tensors)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bfloat16_tensors_load_exactly(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make, dtype: str
) -> None:
    """All 65,536 bfloat16 numbers; the file is written by hand, because NumPy has no such type."""
    bert_config |= {"vocab_size": 4096, "hidden_size": 16, "num_attention_heads": 4}
    (bert_folder / "config.json").write_text(json.dumps(bert_config))
    tensors = {
        name: (array.view(np.uint32) >> 16).astype(np.uint16)
        for name, array in bert_tensors(bert_config).items()
    }
    tensors["embeddings.word_embeddings.weight"] = np.arange(65536, dtype=np.uint16).reshape(4096, 16)
    header, end = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "BF16", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    data = b"".join(array.tobytes() for array in tensors.values())
    (bert_folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    expected = {name: (array.astype(np.uint32) << 16).view(np.float32) for name, array in tensors.items()}
    assert_same_weights(load_model(bert_folder, dtype=dtype), expected)


def test_a_float64_value_beyond_float32_is_refused_not_made_infinite(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    tensors = {name: array.astype(np.float64) for name, array in bert_tensors(bert_config).items()}
    tensors["encoder.layer.1.output.dense.bias"][3] = 1e300
    save_file(tensors, bert_folder / "model.safetensors")
    with pytest.raises(InputError, match=r'encoder\.layer\.1\.output\.dense\.bias.*dtype="float64"'):
        load_model(bert_folder)
    assert load_model(bert_folder, dtype="float64").layers[1].down.bias[3] == 1e300


def test_a_header_that_leaves_the_data_unaligned(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    path = bert_folder / "model.safetensors"
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.dumps(json.loads(raw[8 : 8 + size])).encode()
    header += b" " * ((1 - len(header)) % 4)
    path.write_bytes(struct.pack("<Q", len(header)) + header + raw[8 + size :])
    assert (8 + len(header)) % 4
    model = load_model(bert_folder)
    assert_same_weights(model, bert_tensors(bert_config))
    assert model.embeddings.words.flags.aligned


def write_shards(folder: Path, tensors: dict[str, np.ndarray], count: int = 3) -> dict[str, str]:
    """The same weights in `count` files with an index."""
    (folder / "model.safetensors").unlink(missing_ok=True)
    names = sorted(tensors)
    shard = [f"model-{index + 1:05}-of-{count:05}.safetensors" for index in range(count)]
    placed = {name: shard[index % count] for index, name in enumerate(names)}
    for file in shard:
        save_file({name: tensors[name] for name in names if placed[name] == file}, folder / file)
    index = {"metadata": {"total_size": 0}, "weight_map": placed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return placed


def test_safetensors_in_shards(bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make) -> None:
    tensors = bert_tensors(bert_config)
    write_shards(bert_folder, tensors)
    model = load_model(bert_folder)
    assert_same_weights(model, tensors)
    shards = sorted(bert_folder.glob("model-*.safetensors"))
    lines = "".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in shards)
    assert model.sha256 == hashlib.sha256(lines.encode()).hexdigest()


def test_shards_that_are_not_there_are_all_listed(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    write_shards(bert_folder, bert_tensors(bert_config))
    for number in (1, 3):
        (bert_folder / f"model-0000{number}-of-00003.safetensors").unlink()
    with pytest.raises(InputError) as caught:
        load_model(bert_folder)
    assert "model-00001-of-00003.safetensors, model-00003-of-00003.safetensors" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tensors_of_the_index_that_no_shard_holds_are_all_listed(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    placed = write_shards(bert_folder, bert_tensors(bert_config))
    names = list(placed)
    swapped = placed | {names[0]: placed[names[1]], names[4]: placed[names[2]]}
    (bert_folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": swapped}))
    with pytest.raises(InputError) as caught:
        load_model(bert_folder)
    assert f"{names[0]} (in {placed[names[1]]}), {names[4]} (in {placed[names[2]]})" in str(caught.value)


def test_the_single_file_wins_over_an_index(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Make
) -> None:
    write_shards(bert_folder, bert_tensors(bert_config, seed=1))
    save_file(bert_tensors(bert_config), bert_folder / "model.safetensors")
    assert_same_weights(load_model(bert_folder), bert_tensors(bert_config))


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM", "BertForSequenceClassification"])
def test_what_save_pretrained_writes(tmp_path: Path, bert_config: dict[str, Any], kind: str) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra 'reference'")
    reference = getattr(transformers, kind)(transformers.BertConfig(**bert_config))
    reference.save_pretrained(tmp_path, max_shard_size="3KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    state = {name.removeprefix("bert."): value.numpy() for name, value in reference.state_dict().items()}
    model = load_model(tmp_path)
    assert_same_weights(model, state)
    assert (model.config.activation, model.config.norm_epsilon, model.config.pad_id) == ("gelu", 1e-12, 0)
    assert model.tokenizer is None
    assert model.config.sink_ids == ()


def test_dtypes_and_arguments_that_are_not_supported(bert_folder: Path) -> None:
    with pytest.raises(InputError, match="float16"):
        load_model(bert_folder, dtype="float16")
    with pytest.raises(InputTypeError, match="found int"):
        load_model(3)  # type: ignore[arg-type]  # what is tried


def test_the_bundled_encoder(minilm: Model) -> None:
    config = minilm.config
    assert (config.n_layers, config.n_heads, config.d_model, config.d_head, config.d_ff) == (
        6,
        12,
        384,
        32,
        1536,
    )
    assert (config.vocab_size, config.max_positions, config.activation) == (30522, 512, "gelu")
    assert config.sink_ids == (101, 102)
    assert minilm.name == "minilm-l6"
    assert minilm.sha256 == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert minilm.dtype == np.float32
    assert minilm.tokenizer.encode("Hello world").tokens == ["[CLS]", "hello", "world", "[SEP]"]


def test_other_libraries_are_imported_only_when_something_is_loaded() -> None:
    code = (
        "import sys, oracle.loading; print({'safetensors', 'tokenizers', 'platformdirs'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


MEMORY = """
import sys
import safetensors, tokenizers
from oracle.loading import load_model
from validation.bench.child import peak_memory
before = peak_memory()
model = load_model("minilm-l6", dtype=sys.argv[1])
print(peak_memory() - before)
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loading_needs_no_more_than_the_weights_and_a_third(minilm: Model, dtype: str) -> None:
    pytest.importorskip("resource", reason="peak memory is asked of POSIX")
    run = subprocess.run([sys.executable, "-c", MEMORY, dtype], capture_output=True, text=True, check=True)
    weights = 22_565_376 * np.dtype(dtype).itemsize  # parameters of the encoder without its pooler
    tokenizer = 25e6  # its vocabulary as the library holds it
    assert int(run.stdout) <= 1.3 * weights + tokenizer
