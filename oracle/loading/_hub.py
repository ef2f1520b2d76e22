"""Models by their id on the Hugging Face hub: only the files that are needed, by the hub's own cache."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from oracle._checks import Unavailable, reject
from oracle.loading._directory import CONVERT
from oracle.loading._files import one_line, read_object
from oracle.loading._progress import Progress

__all__ = ["HubId", "fetch_from_hub", "hub_id"]

_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"
_ID = re.compile(rf"({_PART}/{_PART})(?:@([A-Za-z0-9][A-Za-z0-9_./-]{{0,199}}))?")
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_FIRST = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    _WEIGHTS,
    _INDEX,
]
_SHARD = re.compile(r"[A-Za-z0-9_.-]+\.safetensors")
_NOT_THERE = ("RepositoryNotFoundError", "RevisionNotFoundError", "HFValidationError")
_WAYS_ON = "Without the network: --model DIR, a directory that holds the model."


class HubId(NamedTuple):
    """A repository "org/name" and one of its branches, tags or commits (None: its main branch)."""

    repository: str
    revision: str | None


def hub_id(text: str) -> HubId | None:
    """What "org/name" or "org/name@revision" means; None for any other text."""
    match = _ID.fullmatch(text)
    return HubId(match[1], match[2]) if match else None


def fetch_from_hub(model: HubId, progress: Progress | None) -> Path:
    """The directory of a model of the hub: configuration, tokenizer and safetensors weights, nothing else.

    Files that huggingface_hub has in its cache are not fetched again, and without a network that cache is
    used. Pickled weights are never fetched. Raises Unavailable where the package huggingface_hub is missing
    or the hub cannot be reached, InputError where the hub knows no such model or it has no safetensors.
    """
    said = model.repository + (f"@{model.revision}" if model.revision else "")
    if progress is not None:
        progress(f"Looking for {said} in the cache of the Hugging Face hub, and on the hub")
    folder = _snapshot(model, _FIRST, said)
    if os.path.lexists(folder / _WEIGHTS):
        return folder
    if not os.path.lexists(folder / _INDEX):
        # Which pickles there are is not asked: the answer would need the network, also with a whole cache.
        found = "neither (it may hold pickled weights, such as pytorch_model.bin)"
        reject(f"{said} on the hub", expected=f"{_WEIGHTS} or {_INDEX}", found=found, todo=CONVERT)
    placed = read_object(folder / _INDEX, "Fetch the model again.").get("weight_map")
    named = set(placed.values()) if isinstance(placed, dict) and _all_text(list(placed.values())) else set()
    shards = sorted(
        name for name in named if _SHARD.fullmatch(name)
    )  # the directory's loader says what is wrong
    return _snapshot(model, [*_FIRST, *shards], said)


def _all_text(values: list[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _snapshot(model: HubId, files: list[str], said: str) -> Path:
    """Those of `files` that the repository has, in one directory."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise Unavailable(
            f"There is no directory {said}; as an id on the Hugging Face hub it needs the package "
            f'huggingface_hub: pip install "sinkscope[hub]". ({one_line(error)})'
        ) from error
    try:
        return Path(snapshot_download(model.repository, revision=model.revision, allow_patterns=files))
    except Exception as error:  # the library raises errors of many kinds, its HTTP client's among them
        if type(error).__name__ in _NOT_THERE:
            reject(
                "model",
                expected="a directory, or an id on the Hugging Face hub (org/name, org/name@revision)",
                found=f"{said}, and the hub says: {one_line(error)}",
                todo="Check the spelling; a private model needs a login of huggingface_hub.",
            )
        raise Unavailable(
            f"There is no directory {said}, and from the Hugging Face hub it could not be had: "
            f"{one_line(error).rstrip('.')}. {_WAYS_ON}"
        ) from error
