"""Models told apart by their weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from oracle.model import Model

__all__ = ["weights_hash"]


def weights_hash(model: Model) -> str:
    """SHA-256 of all weights as they are computed with: equal however the files around them are written.

    Dtypes and shapes count, so that the same bytes cut otherwise are other weights.
    """
    digest = hashlib.sha256()
    for array in _arrays((model.embeddings, model.layers, model.head)):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _arrays(node: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Every array of nested dataclasses and tuples, in their order."""
    if isinstance(node, np.ndarray):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _arrays(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _arrays(getattr(node, field.name))
