"""The forward pass as a sequence of stages: who can compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import Model, forward_batch
from oracle._checks import reject
from oracle.inputs import check_length, read_tokens
from validation.reference import Reference, torch_threads

__all__ = [
    "AXES",
    "DERIVED",
    "IMPLEMENTATIONS",
    "Batch",
    "Run",
    "Text",
    "precision_of",
    "read_texts",
    "runner",
    "single",
    "truer",
]

Array = NDArray[Any]
Text = str | Sequence[int] | Array
Run = Callable[["Batch"], list[dict[str, Array]]]

IMPLEMENTATIONS = ("oracle-float32", "oracle-float64", "oracle-longdouble", "torch-float32", "torch-float64")
"""What `runner` knows: an engine and a precision."""

DERIVED = ("value_norm", "transformed_norm")
"""Norms: in float64 at least, whatever the precision of the vectors. transformed_norm only the oracle has."""

_VECTOR, _ROW, _NORM = ("head", "token", "d_head"), ("head", "query", "key"), ("head", "key")

AXES: Mapping[str, tuple[str, ...]] = {
    "embeddings": ("token", "d_model"),
    "queries": _VECTOR,
    "keys": _VECTOR,
    "values": _VECTOR,
    "value_norm": _NORM,
    "transformed_norm": _NORM,
    "scores": _ROW,
    "attention": _ROW,
    "hidden_states": ("token", "d_model"),
}
"""The axes of each stage in one layer, in the order of computation."""

_PRECISIONS = ("float32", "float64", "longdouble")


class Batch(NamedTuple):
    """Texts of one length, each array (batch, token); `mask` is True at real tokens."""

    token_ids: NDArray[np.int64]
    mask: NDArray[np.bool_]
    token_types: NDArray[np.int64]


def read_texts(
    model: Model, texts: Sequence[Text], truncate: bool = False
) -> tuple[list[NDArray[np.int64]], int]:
    """Token ids of every text with tokens of its own, and how many have none.

    No text with tokens raises InputError, and so does one that is too long, unless `truncate` cuts it.
    """
    read = [read_tokens(model, text, truncate) for text in texts]
    kept = [tokens.ids for tokens in read if not tokens.empty]
    if not kept:
        reject(
            "texts", expected="a text with tokens", found=f"{len(read)} without", todo="Give at least one."
        )
    for ids in kept:
        check_length(model, len(ids))
    return kept, len(read) - len(kept)


def single(token_ids: Sequence[int] | Array) -> Batch:
    """One text without padding, as a batch of one."""
    ids = np.asarray(token_ids, dtype=np.int64).reshape(1, -1)
    return Batch(ids, np.ones(ids.shape, dtype=bool), np.zeros_like(ids))


def precision_of(implementation: str) -> str:
    """The part after the dash: float32, float64 or longdouble; an unknown name raises InputError."""
    if implementation not in IMPLEMENTATIONS:
        known = ", ".join(IMPLEMENTATIONS)
        reject("implementation", expected=known, found=implementation, todo="Name one of them.")
    return implementation.split("-")[1]


def truer(first: str, second: str) -> tuple[str, str]:
    """The two as (expected, found): the more precise is expected, torch where they are equal."""

    def rank(name: str) -> tuple[int, bool]:
        return _PRECISIONS.index(precision_of(name)), name.startswith("torch")

    return (first, second) if rank(first) > rank(second) else (second, first)


def runner(model: Model, implementation: str, directory: Path | None = None) -> Run:
    """A function that runs a Batch and returns one dictionary of stages per text.

    Stages are those of `Reference.run` without the batch axis; the oracle adds transformed_norm. The torch
    engines load `directory`, by default the one that the model came from, so that both sides read the same
    files; a model made in memory without it raises InputError, a missing extra Unavailable.
    """
    dtype = precision_of(implementation)
    if implementation.startswith("oracle"):
        return _oracle(model.astype(dtype))
    source = directory or model.source
    if source is None:
        reject(
            "model",
            expected="a model loaded from a directory, which transformers can load too",
            found=f"{model.name}, made in memory",
            todo="Save it and load it, or give the reference its directory.",
        )
    return _torch(Reference.load(source, dtype))


def _oracle(model: Model) -> Run:
    keep = tuple(name for name in AXES if name != "embeddings")

    def run(batch: Batch) -> list[dict[str, Array]]:
        traces = forward_batch(
            model, batch.token_ids, batch.mask, token_types=batch.token_types, sink="none", keep=keep
        )
        stages = [{name: getattr(trace, name) for name in keep} for trace in traces]
        return [{"embeddings": found["hidden_states"][0], **found} for found in stages]

    return run


def _torch(reference: Reference) -> Run:
    def run(batch: Batch) -> list[dict[str, Array]]:
        mask = positions = None
        if not batch.mask.all():  # positions count from the first real token, as the oracle's do
            mask, positions = batch.mask, np.maximum(np.cumsum(batch.mask, axis=1) - 1, 0)
        with torch_threads(1):  # on busy CPUs torch's waiting threads starve NumPy's: tenfold the time
            found = reference.run(batch.token_ids, mask, batch.token_types, positions)
        return [{name: array[text] for name, array in found.items()} for text in range(len(batch.mask))]

    return run
