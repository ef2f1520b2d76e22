"""Mutated and truncated files: a clear refusal or a right load, soon, and in little memory."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from file_limits import memory_limit, time_limit
from oracle_models import weights_of
from safetensors.numpy import save_file

from oracle._checks import InputError
from oracle.loading import load_model
from oracle.model import Model

ROUNDS = 200
MEMORY = 8_000_000  # bytes of Python's for a file; the files are under 30 kB
PEAK = 16_000_000  # bytes of the process over all files of a test
ODD: list[Any] = [None, True, -1, 0, 1, 3, 1 << 70, 0.5, 1e999, "", "x", [], {}, [1], {"content": "[CLS]"}]


@pytest.fixture(autouse=True)
def little_memory(bert_folder: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """What tracemalloc does not see, that of the tokenizers' library and of mapped files, has a limit too."""
    load_model(bert_folder)  # what is imported at first use is no file's
    with capfd.disabled(), memory_limit(PEAK):  # not captured: the traceback of a hang must be seen
        yield


def load(folder: Path) -> Model | None:
    """The model, or None where it was refused as it should be."""
    tracemalloc.start()
    model, message = None, ""
    try:
        with time_limit():
            model = load_model(folder)
    except InputError as error:
        message = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEMORY
    assert "\n" not in message
    return model


def flat(model: Model) -> np.ndarray:
    """All weights in one array."""
    return np.concatenate([part.ravel() for part in weights_of(model)])


def mutate_bytes(raw: bytes, within: int, rng: random.Random) -> bytes:
    """One to four bytes changed, removed or added in the first `within`, or the end cut off."""
    changed = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(min(within, len(changed)))
        match rng.randrange(4):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place] = rng.choice(b'0123456789"[]{},: \x00\xff')
            case 2:
                del changed[place]
            case 3:
                changed.insert(place, rng.choice(b"0123456789"))
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.2 else changed)


def test_mutated_headers(bert_folder: Path) -> None:
    path = bert_folder / "model.safetensors"
    raw, right = path.read_bytes(), flat(load_model(bert_folder)).copy()
    header = 8 + struct.unpack("<Q", raw[:8])[0]
    rng, loaded = random.Random(11), 0
    for _ in range(ROUNDS):
        path.unlink()  # a new file, because the old one may be mapped
        path.write_bytes(mutate_bytes(raw, header, rng))
        if (model := load(bert_folder)) is not None:
            loaded += 1
            np.testing.assert_array_equal(flat(model), right)
    assert loaded < ROUNDS // 4


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_mutated_text_files(bert_folder: Path, file: str) -> None:
    path = bert_folder / file
    if file == "tokenizer_config.json":
        path.write_text('{"cls_token": {"content": "[CLS]"}, "sep_token": "[SEP]", "model_max_length": 11}')
    raw, right = path.read_bytes(), flat(load_model(bert_folder)).copy()
    rng, refused = random.Random(12), 0
    for _ in range(ROUNDS):
        path.write_bytes(mutate_bytes(raw, len(raw), rng))
        model = load(bert_folder)
        refused += model is None
        if model is not None:
            np.testing.assert_array_equal(flat(model), right)
    assert refused > ROUNDS // 4


def test_odd_values_in_the_configuration(bert_folder: Path, bert_config: dict[str, Any]) -> None:
    right = flat(load_model(bert_folder)).copy()
    extra = [
        "hidden_act",
        "layer_norm_eps",
        "position_embedding_type",
        "is_decoder",
        "pad_token_id",
        "cls_token_id",
    ]
    rng = random.Random(13)
    for field in [*bert_config, *extra]:
        for value in ODD:
            config = bert_config | {field: value}
            if rng.random() < 0.3:
                config.pop(rng.choice(list(config)))
            (bert_folder / "config.json").write_text(json.dumps(config))
            if (model := load(bert_folder)) is not None:
                np.testing.assert_array_equal(flat(model), right)


def test_mutated_indexes(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Callable[..., dict[str, np.ndarray]]
) -> None:
    right = flat(load_model(bert_folder)).copy()
    tensors = bert_tensors(bert_config)
    (bert_folder / "model.safetensors").unlink()
    placed: dict[str, Any] = {}
    for number, part in enumerate((list(tensors)[::2], list(tensors)[1::2])):
        file = f"model-{number}.safetensors"
        save_file({name: tensors[name] for name in part}, bert_folder / file)
        placed |= dict.fromkeys(part, file)
    path = bert_folder / "model.safetensors.index.json"
    raw = json.dumps({"metadata": {"total_size": 1}, "weight_map": placed}).encode()
    rng, loaded = random.Random(14), 0
    for turn in range(ROUNDS):
        changed = dict(placed)
        changed[rng.choice(list(placed))] = rng.choice([*ODD, "model-0.safetensors", "model-9.safetensors"])
        text = json.dumps({"weight_map": changed}).encode() if turn % 2 else mutate_bytes(raw, len(raw), rng)
        path.write_bytes(text)
        if (model := load(bert_folder)) is not None:
            loaded += 1
            np.testing.assert_array_equal(flat(model), right)
    assert loaded < ROUNDS // 4
