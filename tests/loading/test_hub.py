"""Ids on the Hugging Face hub; what brings the files is a stand-in, so that no test needs the network."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.numpy import load_file, save_file

from oracle._checks import InputError, Unavailable
from oracle.loading import load_model
from oracle.loading._hub import HubId, hub_id


class Hub:
    """A repository "org/tiny" whose files stand in `folder`, and the calls that were made."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        self.calls: list[tuple[str, str | None, list[str]]] = []
        self.error: Exception | None = None

    def snapshot_download(self, repo_id: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        self.calls.append((repo_id, revision, allow_patterns))
        if self.error is not None:
            raise self.error
        self.cache.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in allow_patterns):
                shutil.copy(path, self.cache)
        return str(self.cache)

    def brought(self) -> set[str]:
        return {path.name for path in self.cache.iterdir()}


@pytest.fixture
def hub(bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub(bert_folder, tmp_path / "snapshot")
    for name in ("README.md", "pytorch_model.bin", "model.onnx", "tf_model.h5", "vocab.txt", "evil.py"):
        (bert_folder / name).write_bytes(b"not needed")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", found.snapshot_download)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/tiny", HubId("org/tiny", None)),
        ("org/tiny@v1.0", HubId("org/tiny", "v1.0")),
        ("Org-1/ti_ny.v2@refs/pr/3", HubId("Org-1/ti_ny.v2", "refs/pr/3")),
        *((text, None) for text in ("tiny", "./org/tiny", "../tiny", "/org/tiny", "a/b/c", "org/", "org/a@")),
        *((text, None) for text in ("~/tiny", "org/ti ny", "org/tiny\n", "", "org\\tiny", "org/tiny@a b")),
    ],
)
def test_what_an_id_is(text: str, expected: HubId | None) -> None:
    assert hub_id(text) == expected


def test_only_the_needed_files_are_fetched(hub: Hub, bert_folder: Path) -> None:
    model = load_model("org/tiny@v2")
    assert [(repository, revision) for repository, revision, _ in hub.calls] == [("org/tiny", "v2")]
    assert hub.brought() == {"config.json", "model.safetensors", "tokenizer.json"}
    assert model.name == "org/tiny@v2"
    assert model.sha256 == load_model(bert_folder).sha256
    assert model.tokenizer.encode("the cat").tokens == ["[CLS]", "the", "cat", "[SEP]"]


def test_shards_are_those_that_the_index_names(hub: Hub, bert_folder: Path) -> None:
    tensors = load_file(bert_folder / "model.safetensors")
    (bert_folder / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, held in parts.items():
        save_file({name: tensors[name] for name in held}, bert_folder / file)
    (bert_folder / "optimizer.safetensors").write_bytes(b"not needed")
    placed = {name: file for file, held in parts.items() for name in held}
    index = bert_folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": placed}))
    assert load_model("org/tiny").config.n_layers == 2
    assert hub.brought() == {"config.json", "tokenizer.json", index.name, *parts}
    index.write_text(json.dumps({"weight_map": placed | {names[0]: "*.bin", names[1]: "../x.safetensors"}}))
    with pytest.raises(InputError, match=r"index\.json: expected names of \.safetensors files"):
        load_model("org/tiny")
    assert not any(name.endswith(".bin") for name in hub.brought())


@pytest.mark.parametrize("index", ["[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 1}}', "{"])
def test_an_index_that_is_none(hub: Hub, bert_folder: Path, index: str) -> None:
    (bert_folder / "model.safetensors").unlink()
    (bert_folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(InputError, match=r"model\.safetensors\.index\.json: expected"):
        load_model("org/tiny")


def test_pickled_weights_are_refused_with_the_way_to_convert_them(hub: Hub, bert_folder: Path) -> None:
    (bert_folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"org/tiny on the hub: .*pytorch_model\.bin.*save_pretrained"):
        load_model("org/tiny")
    assert not any(name.endswith(".bin") for name in hub.brought())


def test_a_directory_of_that_spelling_wins_if_it_is_there(hub: Hub, bert_folder: Path) -> None:
    Path("org").mkdir()
    shutil.copytree(bert_folder, "org/tiny")
    assert load_model("org/tiny").name == "tiny"
    assert not hub.calls
    shutil.rmtree("org/tiny")
    assert load_model("org/tiny").name == "org/tiny"
    assert len(hub.calls) == 1


def test_paths_are_never_ids(hub: Hub) -> None:
    for given in (Path("org/tiny"), "./org/tiny", "org/tiny.gguf", "org/model.safetensors", "org/a.bin"):
        with pytest.raises(InputError, match="expected a bundled name"):
            load_model(given)
    Path("org").mkdir()
    os.symlink("gone", "org/tiny")
    with pytest.raises(InputError, match="expected a bundled name"):
        load_model("org/tiny")
    assert not hub.calls


@pytest.mark.parametrize(
    "error",
    [
        LocalEntryNotFoundError("we cannot find the files\nin the cache"),
        OSError("Connection refused"),
        RuntimeError("boom"),
    ],
)
def test_without_the_network_one_line_says_so(hub: Hub, error: Exception) -> None:
    hub.error = error
    with pytest.raises(
        Unavailable, match=r"There is no directory org/tiny, and from the.*--model DIR"
    ) as caught:
        load_model("org/tiny")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["RepositoryNotFoundError", "RevisionNotFoundError"])
def test_an_id_that_the_hub_does_not_know_is_a_wrong_input(hub: Hub, kind: str) -> None:
    error = getattr(huggingface_hub.errors, kind)
    hub.error = error.__new__(error)
    hub.error.args = ("404 Client Error.\nRepository Not Found",)
    with pytest.raises(
        InputError, match=r"found org/tiny@v9, and the hub says: .*Check the spelling"
    ) as caught:
        load_model("org/tiny@v9")
    assert "\n" not in str(caught.value)


def test_without_the_package_the_extra_is_named(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(Unavailable, match=r'pip install "sinkscope\[hub\]"'):
        load_model("org/tiny")


def test_progress_is_told(hub: Hub, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    tell: Callable[[str], Any] = said.append
    load_model("org/tiny", progress=tell)
    assert said == ["Looking for org/tiny in the cache of the Hugging Face hub, and on the hub"]
    assert capfd.readouterr().err == ""
