"""The file in which a run keeps what it has found, so that a killed run goes on from there.

One JSON object a line; lines are only ever added. Each says for itself what it belongs to: the rule's
version, the model, the three texts and the seed. Several runs, also at the same time, can share a file: each
takes its own lines and no others, and a line that is not whole is passed over.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle import Model
from oracle._checks import reject
from oracle.loading._cache import models_folder
from validation.studies.pruning.choosing import Heads
from validation.studies.pruning.rule import RULE_VERSION

__all__ = ["Ledger", "default_path", "identity"]

_START = b'{"study": "prune"'


def identity(model: Model, token_ids: list[NDArray[np.int64]], seed: int) -> dict[str, Any]:
    """What every line of a run says of it. The model's hash is over its weights, configuration and dtype."""
    weights = hashlib.sha256()
    if model.sha256 is not None:
        weights.update(model.sha256.encode())
    else:
        for array in _arrays((model.embeddings, model.layers, model.head)):
            weights.update(np.ascontiguousarray(array).tobytes())
    weights.update(f"{model.config} {model.dtype}".encode())
    texts = hashlib.sha256(json.dumps([ids.tolist() for ids in token_ids]).encode())
    return {
        "study": "prune",
        "rule": RULE_VERSION,
        "model": weights.hexdigest(),
        "texts": texts.hexdigest(),
        "seed": seed,
    }


def default_path(model: Model, about: Mapping[str, Any]) -> Path:
    """The file of a run in the user's cache."""
    name = re.sub(r"[^\w.-]+", "-", PurePath(model.name).name) or "model"
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    return models_folder().parent / "pruning" / f"{name}-{digest}.jsonl"


class Ledger:
    """Mean negative log likelihoods (nats a token) by text and heads cut, kept in the file `path`.

    `about` comes from `identity`. Raises InputError for a file that is no such ledger (nothing is ever
    written into it) or cannot be added to.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any], n_heads: int) -> None:
        """Read what the file holds of this run; the file is made if it is not there."""
        self.path, self._about = Path(path), dict(about)
        self.found: dict[tuple[int, Heads], float] = {}
        for line in self._read().split(b"\n"):
            entry = _entry(line, self._about, n_heads)
            if entry is not None:
                self.found.setdefault(*entry)

    def add(self, text: int, heads: Heads, nll: float) -> None:
        """Keep one result; it is in the file, on a line of its own, when this returns."""
        self.found[text, heads] = nll
        value = nll if math.isfinite(nll) else None
        line = json.dumps({**self._about, "text": text, "heads": list(heads), "nll": value})
        try:
            with open(self.path, "a+b", buffering=0) as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":  # somebody was killed in the middle of a line
                        line = "\n" + line
                file.write(line.encode("ascii") + b"\n")  # one call, so that two processes never mix a line
        except OSError as error:
            self._refuse(error.strerror or str(error))

    def _read(self) -> bytes:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            special = self.path.exists() and not self.path.is_file()
            if not special:
                with open(self.path, "a+b") as file:
                    file.seek(0)
                    data = file.read()
        except (OSError, ValueError) as error:
            self._refuse(getattr(error, "strerror", None) or str(error))
        if special:
            self._refuse("no plain file")
        if data and not _is_ledger(data):
            self._refuse(f"a file of another kind, it begins {data[: len(_START)]!r}")
        return data

    def _refuse(self, found: str) -> NoReturn:
        reject(
            "--out",
            expected="a file of earlier results, or a new one, that can be added to",
            found=f"{str(self.path)!r} ({found})",
            todo="Name another file.",
        )


def _is_ledger(data: bytes) -> bool:
    """Whether a file begins as a ledger does; a first line may have been cut short before the next one."""
    first, *others = data.split(b"\n", 2)[:2]
    if first.startswith(_START):
        return True
    cut = len(first) > 0 and _START.startswith(first)
    return cut and all(_START.startswith(line[: len(_START)]) for line in others)


def _entry(line: bytes, about: Mapping[str, Any], n_heads: int) -> tuple[tuple[int, Heads], float] | None:
    """What a whole line of this run says; None for any other line."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or any(given.get(name) != value for name, value in about.items()):
        return None
    text, heads, nll = (given.get(name) for name in ("text", "heads", "nll"))
    if type(text) is not int or not isinstance(heads, list) or not isinstance(nll, float | None):
        return None
    whole = all(type(head) is int and 0 <= head < n_heads for head in heads)
    if not whole or heads != sorted(set(heads)):
        return None
    return (text, tuple(heads)), math.nan if nll is None else nll


def _arrays(node: Any) -> list[NDArray[Any]]:
    """Every array of nested dataclasses and tuples, in order."""
    if isinstance(node, np.ndarray):
        return [node]
    if is_dataclass(node):
        node = [getattr(node, field.name) for field in fields(node)]
    return [array for part in node for array in _arrays(part)] if isinstance(node, (list, tuple)) else []
