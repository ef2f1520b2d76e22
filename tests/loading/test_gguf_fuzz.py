"""GGUF files mutated or cut short: a refusal in one line or the right weights, soon, in little memory."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf_files as small
import numpy as np
import pytest
from file_limits import memory_limit, time_limit

from oracle._checks import InputError
from oracle.loading import _cache, _gguf, load_model
from oracle.loading._gguf_header import read_gguf
from oracle.loading._tensors import open_tensors

ROUNDS = 200
MEMORY = 6_000_000  # bytes; the file has 0.6 MB, and some pieces of the gguf package's tables are loaded once
PEAK = 24_000_000  # bytes of the process over all files of a test


@pytest.fixture(autouse=True)
def little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """What tracemalloc does not see, that of the tokenizers' library and of mapped files, has a limit too."""
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "first"))
    load_model(small.write_gguf(tmp_path / "first.gguf", small.weights()))  # what is imported is no file's
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    with capfd.disabled(), memory_limit(PEAK):  # not captured: the traceback of a hang must be seen
        yield


def values(folder: Path) -> np.ndarray:
    """All weights in one array, in the order of their names."""
    tensors = open_tensors(folder / "model.safetensors")
    return np.concatenate([np.asarray(tensors[name]).ravel() for name in sorted(tensors)])


@pytest.mark.parametrize("where", ["header", "tensor entries", "cut"])
def test_mutated_files(tmp_path: Path, where: str) -> None:
    kinds = {"blk.0.attn_q.weight": "Q4_1", "token_embd.weight": "Q8_0"}
    path = small.write_gguf(tmp_path / "a.gguf", small.weights(), kinds=kinds)
    raw, right = path.read_bytes(), values(_gguf.dequantise(path, None, lambda line: None)[0])
    header = len(raw) - sum(tensor.raw.size for tensor in read_gguf(path).tensors.values()) - 64
    first = {"header": 0, "tensor entries": header - 1100, "cut": 0}[where]
    rng, loaded = random.Random(f"gguf {where}"), 0
    for turn in range(ROUNDS):
        changed = bytearray(raw)
        if where == "cut":
            changed = changed[: rng.randrange(len(raw)) if turn % 2 else rng.randrange(header)]
        else:
            for _ in range(rng.randint(1, 3)):
                place = rng.randrange(first, header)
                changed[place] = rng.choice(
                    (changed[place] ^ 1 << rng.randrange(8), 0, 255, rng.randrange(256))
                )
        path.unlink()  # a new file, because the old one may be mapped
        path.write_bytes(changed)
        tracemalloc.start()
        message, folder = "", None
        try:
            with time_limit():
                folder = _gguf.dequantise(path, None, lambda line: None)[0]
        except InputError as error:
            message = str(error)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY
        assert "\n" not in message
        assert folder or str(path) in message
        if folder is not None:
            loaded += 1
            np.testing.assert_array_equal(values(folder), right)
            _cache.remove(folder)
    assert (loaded == 0) if where == "cut" else (0 < loaded < ROUNDS)
    assert not list(_cache.models_folder().glob(".making-*"))


def test_a_file_of_many_lies_takes_no_memory(tmp_path: Path) -> None:
    """Every count, length and size of the header replaced by a huge one, one after the other."""
    path = small.write_gguf(tmp_path / "a.gguf", small.weights())
    raw = path.read_bytes()
    header = len(raw) - sum(tensor.raw.size for tensor in read_gguf(path).tensors.values()) - 64
    for place in [*range(8, 2000, 17), *range(header - 1100, header, 19)]:
        path.write_bytes(raw[:place] + (1 << 62).to_bytes(8, "little") + raw[place + 8 :])
        tracemalloc.start()
        with suppress(InputError), time_limit():
            read_gguf(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000


ODD: list[Any] = [None, True, -1, 0, 1, 3, 1 << 40, 0.5, 1e999, "", "x", [], {}, [1], {"rope_type": "yarn"}]


def test_odd_values_in_the_configuration_of_the_copy(tmp_path: Path) -> None:
    path = small.write_gguf(tmp_path / "a.gguf", small.weights())
    folder = _gguf.dequantise(path, None, lambda line: None)[0]
    config = json.loads((folder / "config.json").read_text())
    right = load_model(folder).layers[1].query.weight.copy()
    more = ["rope_scaling", "rope_theta", "sliding_window", "partial_rotary_factor", "quantization_config"]
    messages = []
    for field in [*config, *more]:
        for value in ODD:
            (folder / "config.json").write_text(json.dumps(config | {field: value}))
            try:
                with time_limit():
                    model = load_model(folder)
            except InputError as error:
                messages.append(str(error))
            else:
                np.testing.assert_array_equal(model.layers[1].query.weight, right)
    assert len(messages) > 100
    assert not any("\n" in message for message in messages)
