"""Files that are not what they are called: one line that names the file and says what to do."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from oracle._checks import InputError
from oracle.loading import load_model


def refusal(name: str | Path) -> str:
    """The one line with which loading is refused."""
    with pytest.raises(InputError) as caught:
        load_model(name)
    message = str(caught.value)
    assert "\n" not in message
    assert "expected" in message
    assert "found" in message
    return message


class Bomb:
    """Unpickling it would leave a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", content)
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("wrap", [bytes, zipped], ids=["plain", "zip"])
def test_a_pickle_where_safetensors_was_expected(
    bert_folder: Path, tmp_path: Path, protocol: int, wrap: Callable[[bytes], bytes]
) -> None:
    mark = tmp_path / "was-run"
    path = bert_folder / "model.safetensors"
    path.write_bytes(wrap(pickle.dumps(Bomb(mark), protocol=protocol)))
    message = refusal(bert_folder)
    assert str(path) in message
    assert "zip archive" in message if wrap is zipped else "a pickle" in message
    assert "save_pretrained" in message
    assert not mark.exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth", "last.ckpt", "model.pkl"])
def test_pickled_weights_are_refused_by_name(bert_folder: Path, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "was-run"
    (bert_folder / "model.safetensors").unlink()
    (bert_folder / name).write_bytes(pickle.dumps(Bomb(mark)))
    for given in (bert_folder, bert_folder / name):
        message = refusal(given)
        assert name in message
        assert "save_pretrained" in message
    assert not mark.exists()


def test_an_index_of_pickled_shards(bert_folder: Path) -> None:
    (bert_folder / "model.safetensors").unlink()
    placed = {"embeddings.LayerNorm.weight": "pytorch_model-00001-of-00002.bin"}
    (bert_folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    message = refusal(bert_folder)
    assert "pytorch_model-00001-of-00002.bin" in message
    assert "save_pretrained" in message


@pytest.mark.parametrize("keep", [0, 3, 8, 60, 1000, -1])
def test_a_truncated_file(bert_folder: Path, keep: int) -> None:
    path = bert_folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    message = refusal(bert_folder)
    assert str(path) in message
    assert "empty" in message if keep == 0 else "download" in message


def rewrite_header(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The file with a changed header over the same data."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])


NAME = "encoder.layer.0.intermediate.dense.weight"


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header[NAME].update(shape=[1 << 40, 1 << 40]),
        lambda header: header[NAME].update(shape=[7, 16]),
        lambda header: header[NAME].update(shape=[-7, -15]),
        lambda header: header[NAME].update(shape=[105.0]),
        lambda header: header[NAME].update(shape="long"),
        lambda header: header[NAME].update(data_offsets=[0, 1 << 62]),
        lambda header: header[NAME].update(data_offsets=[-420, 0]),
        lambda header: header[NAME].update(data_offsets=[420, 0]),
        lambda header: header[NAME].update(data_offsets=[0]),
        lambda header: header[NAME].update(dtype="F99"),
        lambda header: header[NAME].update(dtype="F64"),
        lambda header: header[NAME].pop("dtype"),
        lambda header: header.update({NAME: None}),
        lambda header: header.update(__metadata__=[1]),
    ],
)
def test_a_header_that_lies_about_sizes(bert_folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = bert_folder / "model.safetensors"
    rewrite_header(path, change)
    assert str(path) in refusal(bert_folder)


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 1, 1 << 40, 100_000_001, 99_999_999])
def test_a_huge_header_length(bert_folder: Path, size: int) -> None:
    path = bert_folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", size) + path.read_bytes()[8:])
    assert str(path) in refusal(bert_folder)


def test_other_things_in_the_place_of_the_weights(bert_folder: Path) -> None:
    path = bert_folder / "model.safetensors"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "git lfs pull" in refusal(bert_folder)
    path.unlink()
    path.mkdir()
    assert "not a regular file" in refusal(bert_folder)
    path.rmdir()
    assert "no weights" in refusal(bert_folder)
    (bert_folder / "weights.safetensors").write_bytes(b"")
    assert "Rename" in refusal(bert_folder)
    if hasattr(os, "mkfifo"):  # a pipe would block for ever
        os.mkfifo(path)
        assert "not a regular file" in refusal(bert_folder)


def test_tensors_of_a_type_that_holds_no_weights(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Callable[..., dict[str, np.ndarray]]
) -> None:
    tensors = bert_tensors(bert_config)
    tensors[NAME] = tensors[NAME].astype(np.int8)
    save_file(tensors, bert_folder / "model.safetensors")
    message = refusal(bert_folder)
    assert f"model.safetensors: {NAME}" in message
    assert "found I8" in message


def test_a_tensor_name_that_would_break_the_line(
    bert_folder: Path, bert_config: dict[str, Any], bert_tensors: Callable[..., dict[str, np.ndarray]]
) -> None:
    save_file(
        bert_tensors(bert_config) | {"a\nb\x1b[2J": np.ones(1, np.float32)}, bert_folder / "model.safetensors"
    )
    message = refusal(bert_folder)
    assert "printable" in message
    assert "\x1b" not in message


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"hidden_size": ' + b"9" * 5000 + b"}"],
)
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "special_tokens_map.json"])
def test_json_that_is_none(bert_folder: Path, file: str, content: bytes) -> None:
    (bert_folder / file).write_bytes(content)
    assert str(bert_folder / file) in refusal(bert_folder)


def test_a_directory_without_config(bert_folder: Path, tmp_path: Path) -> None:
    (bert_folder / "config.json").unlink()
    assert str(bert_folder / "config.json") in refusal(bert_folder)
    (bert_folder / "config.json").mkdir()
    assert "not a regular file" in refusal(bert_folder)


@pytest.mark.parametrize(
    "index",
    [
        b"{",
        b"[1]",
        b"{}",
        b'{"weight_map": []}',
        b'{"weight_map": {}}',
        b'{"weight_map": {"a": 1}}',
        b'{"weight_map": {"a": "../tiny/model.safetensors"}}',
        b'{"weight_map": {"a": "/etc/model.safetensors"}}',
        b'{"weight_map": {"a": "config.json"}}',
        b'{"weight_map": {"a": "no\\nsuch.safetensors"}}',
    ],
)
def test_an_index_that_is_none(bert_folder: Path, index: bytes) -> None:
    (bert_folder / "model.safetensors").unlink()
    (bert_folder / "model.safetensors.index.json").write_bytes(index)
    assert "model.safetensors.index.json" in refusal(bert_folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b'{"model": {"type": "Nothing"}}', b"\xff"])
def test_a_broken_tokenizer(bert_folder: Path, content: bytes) -> None:
    (bert_folder / "tokenizer.json").write_bytes(content)
    assert str(bert_folder / "tokenizer.json") in refusal(bert_folder)


def test_a_directory_that_cannot_be_read(bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    message = refusal(bert_folder)
    assert "Permission denied" in message
    assert str(bert_folder) in message


def test_names_that_are_neither_model_nor_path(bert_folder: Path) -> None:
    for name in (
        "",
        "no-such-model",
        "x" * 5000,
        "nul\0byte",
        "~nobody-here/model",
        "absent.whl",
    ):
        assert "minilm-l6" in refusal(name)
    message = refusal(bert_folder / "config.json")
    assert "directory that holds" in message


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_link_that_points_nowhere_is_called_so(bert_folder: Path, file: str) -> None:
    (bert_folder / file).unlink()
    (bert_folder / file).symlink_to("gone")
    message = refusal(bert_folder)
    assert str(bert_folder / file) in message
    assert "a link that points nowhere" in message
