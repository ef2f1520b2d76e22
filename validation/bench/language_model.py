"""The oracle's forward pass on a bundled language model, against PyTorch eager with attention rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import Unavailable
from oracle.model import Model
from validation.bench.case import Case, Contender
from validation.reference import Reference
from validation.registry import Bound
from validation.tally import row_limit

__all__ = ["LANGUAGE_MODEL", "language_case"]

Array = NDArray[Any]
Rows = dict[str, Array]

LANGUAGE_MODEL = "smollm2-135m"


def language_case(model: Model, length: int, missing: str | None, judged: bool = True) -> Case:
    """All rows of `length` random token ids in float32; compared are those of the last layer.

    There the errors of all layers before it have come together. The oracle keeps what it keeps by default
    (scores, values and norms as well), and for comparison the rows alone.
    """
    ids = np.random.default_rng(length).integers(model.config.vocab_size, size=length)
    bounds = {"row": Bound(row_limit("float32", model))}
    missing, theirs = _reference(model, ids, missing)

    def keeping(*keep: str) -> Callable[[], Rows]:
        kept = keep or oracle.trace.KEEP_DEFAULT
        return lambda: {"row": oracle.forward(model, ids, sink="none", keep=kept).attention[-1]}

    return Case(
        f"language model {length}",
        f"Forward pass of {model.name}, {length:,} tokens, float32, all rows kept",
        lambda: _last_rows(model.astype("float64"), ids),
        (
            Contender("oracle", keeping(), bounds),
            Contender("torch, eager", theirs, bounds, missing),
            Contender("oracle, rows alone", keeping("attention"), bounds),
        ),
        (
            f"oracle: scores, vectors and norms kept as well; torch: every layer's rows; goal: "
            f"{1 / 1.5:.2g} is 1.5 times its time",
        ),
        judged,
        "row",
    )


def _reference(model: Model, ids: Array, missing: str | None) -> tuple[str | None, Callable[[], Rows]]:
    """Why PyTorch cannot run here, or None, and a call that gives its rows of the last layer."""
    if missing is None:
        try:
            call = Reference.load(model.source or "", "float32").caller(ids[None])
            return None, lambda: {"row": call()[-1][0].numpy()}
        except Unavailable as error:
            missing = str(error)
    return missing, dict


def _last_rows(model: Model, ids: Array) -> Rows:
    """The last layer's rows (head, query, key), a layer at a time: in float64 all are gigabytes."""
    found: Rows = {}

    def look(layer: int, trace: oracle.Trace) -> None:
        if layer == model.config.n_layers - 1:
            found["row"] = trace.attention[0].copy()

    oracle.forward(model, ids, sink="none", keep=("attention",), each=look)
    return found
