"""A model directory: config.json, safetensors weights in one file or in shards, tokenizer.json."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from numpy.typing import DTypeLike

from oracle._checks import reject
from oracle.families import Checkpoint, build_model
from oracle.loading._files import one_line, read_object, sha256_of_all
from oracle.loading._tensors import StoredTensor, open_tensors
from oracle.loading._tokenizer import load_tokenizer, special_ids
from oracle.model import Model

__all__ = ["CONVERT", "PICKLES", "WEIGHTS", "load_directory"]

_CONFIG = "config.json"
_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
WEIGHTS = (_SINGLE, _INDEX)

# Formats that can run code when they are opened, or that this package does not read.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_OTHER_FORMATS = (*PICKLES, ".h5", ".msgpack", ".onnx")
CONVERT = (
    "Pickles are never opened, because they can run code: convert them with transformers, "
    "AutoModel.from_pretrained(OLD).save_pretrained(NEW), and name the new directory."
)


def load_directory(folder: Path, *, dtype: DTypeLike, name: str, sha256: str | None = None) -> Model:
    """The Model in `folder`; `sha256` of the weights is computed unless it is given.

    model.safetensors is taken where both it and an index of shards are there. Errors as `load_model`.
    """
    try:
        return _load(folder, dtype, name, sha256)
    except OSError as error:
        reject(
            str(folder),
            expected="a model directory that can be read",
            found=one_line(error),
            todo="Check its permissions, and that nothing else is changing it.",
        )


def _load(folder: Path, dtype: DTypeLike, name: str, sha256: str | None) -> Model:
    config_path = folder / _CONFIG
    config = read_object(config_path, "Name a directory with the config.json that was saved with the model.")
    if os.path.lexists(folder / _SINGLE):
        source, files = folder / _SINGLE, [folder / _SINGLE]
        tensors = open_tensors(source)
    elif os.path.lexists(folder / _INDEX):
        source = folder / _INDEX
        files, tensors = _open_shards(source)
    else:
        _no_weights(folder)
    tokenizer = load_tokenizer(folder)
    checkpoint = Checkpoint(
        config,
        tensors,
        tokenizer=tokenizer,
        special_ids=special_ids(folder, tokenizer),
        name=name,
        source=folder,
        config_source=str(config_path),
        weights_source=str(source),
    )
    model = build_model(checkpoint, dtype=dtype)
    return replace(model, sha256=sha256 or sha256_of_all(files))  # once it is known to be a model


def _open_shards(index: Path) -> tuple[list[Path], dict[str, StoredTensor]]:
    """The shards' paths and the tensors that the index names, each from the shard that it names."""
    todo = "Put every shard beside its index, all from the same save."
    placed = read_object(index, todo).get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(f, str) for f in placed.values()):
        reject(
            str(index),
            expected='a "weight_map" from tensor names to file names',
            found="none, or one of another kind",
            todo=todo,
        )
    shards = sorted(set(placed.values()))
    for shard in shards:
        if not shard.isprintable() or Path(shard).name != shard or not shard.endswith(".safetensors"):
            expected = "names of .safetensors files beside it"
            found = ascii(shard[:100])
            reject(
                str(index), expected=expected, found=found, todo=CONVERT if shard.endswith(PICKLES) else todo
            )
    gone = [shard for shard in shards if not (index.parent / shard).is_file()]
    if gone:
        reject(str(index), expected="its shards beside it", found=f"missing: {', '.join(gone)}", todo=todo)
    opened = {shard: open_tensors(index.parent / shard) for shard in shards}
    absent = [f"{name} (in {shard})" for name, shard in placed.items() if name not in opened[shard]]
    if absent:
        found = ascii(f"missing: {', '.join(absent)}")[1:-1]
        reject(str(index), expected="every tensor in the shard it is listed for", found=found, todo=todo)
    return [index.parent / s for s in shards], {name: opened[shard][name] for name, shard in placed.items()}


def _no_weights(folder: Path) -> NoReturn:
    """Say what is there instead of safetensors weights."""
    there = sorted(path.name for path in folder.iterdir())
    others = [name for name in there if name.endswith(_OTHER_FORMATS)]
    renamed = [name for name in there if name.endswith(".safetensors")]
    todo = "Save the model with transformers' save_pretrained."
    if any(name.endswith(PICKLES) for name in others):
        todo = CONVERT
    elif renamed:
        todo = f"Rename the model's weights to {_SINGLE}."
    found = ", ".join(others + renamed) or "no weights"
    reject(str(folder), expected=f"{_SINGLE} or {_INDEX}", found=found, todo=todo)
