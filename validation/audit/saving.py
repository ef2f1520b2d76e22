"""The mean distances of an audit as an .npz file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np

from validation.audit.distances import Distances
from validation.report import files

__all__ = ["check_save", "save_distances"]

_OPTION = "--save"


def check_save(path: str, inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Refuse a place that the distances could not be written to; `inputs` are never replaced."""
    files.check_target(path, inputs, option=_OPTION)


def save_distances(distances: Distances, path: str, about: Mapping[str, Any]) -> None:
    """Write every distance matrix to `path`, as a whole or not at all.

    For each metric and convention `METRIC_CONVENTION`, (head, head) float64 means over the pooled rows, and
    `METRIC_CONVENTION_rows`, the rows behind each of them. Beside them `layer`, `head` and `label` (head,),
    `sink_share` and `content_entropy` (head,), `distances` (the names, one a matrix) and `metadata`, `about`
    as JSON in a string. Nothing in the file is pickled.
    """
    keys = list(distances.found.sums)
    arrays: dict[str, Any] = {}
    for metric, convention in keys:
        arrays[f"{metric}_{convention}"] = distances.mean(metric, convention)
        arrays[f"{metric}_{convention}_rows"] = distances.found.counts[metric, convention].sum(axis=0)
    arrays |= {
        "layer": distances.layers,
        "head": np.array([head for _, head in distances.heads], dtype=np.int64),
        "label": np.array([f"L{layer} H{head}" for layer, head in distances.heads]),
        "sink_share": distances.sink_share,
        "content_entropy": distances.content_entropy,
        "distances": np.array([f"{metric}_{convention}" for metric, convention in keys]),
        "metadata": np.array(json.dumps(dict(about), allow_nan=False)),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    files.write_whole(path, buffer.getvalue(), option=_OPTION)
