"""The file in which a run of the pruning study keeps what it has found.

Each line says for itself what it belongs to: the rule's version, the model, the three texts and the seed.
Several runs, also at the same time, can share a file: each takes its own lines and no others.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model
from validation.cache import results_folder
from validation.report.document import Note
from validation.studies.kept_lines import KeptLines
from validation.studies.pruning.choosing import Heads
from validation.studies.pruning.rule import RULE_VERSION
from validation.weights import weights_hash

__all__ = ["Ledger", "default_path", "identity"]

_START = b'{"study": "prune"'


def identity(model: Model, token_ids: list[NDArray[np.int64]], seed: int) -> dict[str, Any]:
    """What every line of a run says of it. The model's hash is over its weights, configuration and dtype.

    Without a file the weights are hashed here, with their shapes; lines of an older version, whose hash had
    none, are of another run.
    """
    weights = model.sha256 if model.sha256 is not None else weights_hash(model)
    about_model = hashlib.sha256(f"{weights}{model.config} {model.dtype}".encode())
    texts = hashlib.sha256(json.dumps([ids.tolist() for ids in token_ids]).encode())
    return {
        "study": "prune",
        "rule": RULE_VERSION,
        "model": about_model.hexdigest(),
        "texts": texts.hexdigest(),
        "seed": seed,
    }


def default_path(model: Model, about: Mapping[str, Any]) -> Path:
    """The file of a run in the user's cache."""
    name = re.sub(r"[^\w.-]+", "-", PurePath(model.name).name) or "model"
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    return results_folder("pruning") / f"{name}-{digest}.jsonl"


class Ledger:
    """Mean negative log likelihoods (nats a token) by text and heads cut, kept in the file `path`.

    `about` comes from `identity`. What is refused, and what becomes of lines that cannot be read, is as in
    `KeptLines`.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any], n_heads: int) -> None:
        """Read what the file holds of this run; the file is made if it is not there."""
        self._lines, self._about = KeptLines(path, _START, "--out"), dict(about)
        self.path = self._lines.path
        self.found: dict[tuple[int, Heads], float] = {}
        for line in self._lines.lines():
            given = _object(line)
            if given is None:
                self._lines.unreadable += 1
            elif all(given.get(name) == value for name, value in self._about.items()):
                entry = _entry(given, n_heads)
                if entry is None:
                    self._lines.unreadable += 1
                else:
                    self.found.setdefault(*entry)

    def add(self, text: int, heads: Heads, nll: float) -> None:
        """Keep one result; it is in the file, on a line of its own, when this returns."""
        value = nll if math.isfinite(nll) else None
        line = json.dumps({**self._about, "text": text, "heads": list(heads), "nll": value})
        self._lines.add(line.encode("ascii"))
        self.found[text, heads] = nll

    def notes(self) -> tuple[Note, ...]:
        """What is said of lines of the file that could not be read."""
        return self._lines.notes()


def _object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None for anything else."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _entry(given: Mapping[str, Any], n_heads: int) -> tuple[tuple[int, Heads], float] | None:
    """What a line of this run says; None where it says it in no way that is written here."""
    text, heads, nll = (given.get(name) for name in ("text", "heads", "nll"))
    if type(text) is not int or not isinstance(heads, list) or not isinstance(nll, float | None):
        return None
    whole = all(type(head) is int and 0 <= head < n_heads for head in heads)
    if not whole or heads != sorted(set(heads)):
        return None
    return (text, tuple(heads)), math.nan if nll is None else nll
