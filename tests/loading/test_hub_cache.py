"""Ids on the Hugging Face hub, without the network: huggingface_hub itself looks into its cache on disk."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from oracle.loading import load_model
from oracle.loading._files import sha256_of

COMMITS = {"main": "a" * 40, "v1.0": "b" * 40}
# In a process of its own: the package reads its settings once, when it is imported.
CHILD = """
import json, socket, sys
from oracle import load_model

def asked(*_, **__):
    sys.exit("the network was asked")

socket.getaddrinfo = socket.socket.connect = asked
found = {}
for text in sys.argv[1:]:
    try:
        model = load_model(text)
    except Exception as error:
        found[text] = [type(error).__name__, str(error)]
    else:
        found[text] = [model.name, model.sha256, model.tokenizer.encode("the cat").tokens]
print(json.dumps(found))
"""


def into_cache(hub: Path, repository: str, revision: str, files: Path) -> None:
    """Files as the package keeps them: contents by their hash, links to them by commit, commits by branch."""
    place = hub / f"models--{repository.replace('/', '--')}"
    commit = COMMITS[revision]
    snapshot = place / "snapshots" / commit
    for folder in (place / "blobs", place / "refs", snapshot):
        folder.mkdir(parents=True, exist_ok=True)
    (place / "refs" / revision).write_text(commit)
    for file in files.iterdir():
        blob = hashlib.sha256(file.read_bytes()).hexdigest()
        (place / "blobs" / blob).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(Path("..", "..", "blobs", blob))


def offline(hub: Path, *texts: str) -> dict[str, Any]:
    """What a process without the network finds for each id."""
    environment = os.environ | {"HF_HUB_CACHE": str(hub), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", CHILD, *texts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_cache_is_enough_without_the_network(
    bert_folder: Path,
    tmp_path: Path,
    bert_config: dict[str, Any],
    bert_tensors: Callable[..., dict[str, np.ndarray]],
) -> None:
    hub, weights = tmp_path / "hub", bert_folder / "model.safetensors"
    into_cache(hub, "org/tiny", "v1.0", bert_folder)
    older = sha256_of(weights)
    weights.unlink()
    save_file(bert_tensors(bert_config, seed=1), weights)
    into_cache(hub, "org/tiny", "main", bert_folder)
    newer = sha256_of(weights)
    assert newer != older
    commit = f"org/tiny@{COMMITS['v1.0']}"
    found = offline(hub, "org/tiny", "org/tiny@v1.0", commit, "org/tiny@v2", "org/none")
    tokens = ["[CLS]", "the", "cat", "[SEP]"]
    assert found["org/tiny"] == ["org/tiny", newer, tokens]
    assert found["org/tiny@v1.0"] == ["org/tiny@v1.0", older, tokens]
    assert found[commit] == [commit, older, tokens]
    for gone in ("org/tiny@v2", "org/none"):
        kind, said = found[gone]
        assert kind == "Unavailable"
        assert said.startswith(f"There is no directory {gone}, and from the Hugging Face hub")
        assert "\n" not in said
        assert said.endswith("--model DIR, a directory that holds the model.")


def test_shards_in_a_cache_are_found_without_the_network(bert_folder: Path, tmp_path: Path) -> None:
    tensors = load_file(bert_folder / "model.safetensors")
    (bert_folder / "model.safetensors").unlink()
    placed = {name: f"model-{index % 2}.safetensors" for index, name in enumerate(sorted(tensors))}
    for shard in set(placed.values()):
        save_file({name: tensors[name] for name in tensors if placed[name] == shard}, bert_folder / shard)
    (bert_folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    into_cache(tmp_path / "hub", "org/shards", "main", bert_folder)
    name, sha256, _ = offline(tmp_path / "hub", "org/shards")["org/shards"]
    assert (name, sha256) == ("org/shards", load_model(bert_folder).sha256)
