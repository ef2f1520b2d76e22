"""The predictor as it was frozen: one data file, and the hash that shows that nobody has changed it since."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oracle._checks import reject
from validation.prediction.fitting import predicted_rate
from validation.prediction.statistics import Statistics

__all__ = ["FROZEN_SHA256", "Frozen", "Metric", "Predictor", "load_predictor", "read_predictor"]

FROZEN_SHA256 = "2554a94de3e96f65d614ea40a6cac1ff0e33a8399a223b19baac50acb5741001"


class Metric(NamedTuple):
    """What was fitted to the flip rates of one metric."""

    coefficients: tuple[float, ...]
    tolerance: float
    error: float  # root mean square of the errors left out, which the tolerance comes from
    error_of_mean: float
    useful: bool


class Frozen(NamedTuple):
    """The file's hash, and the date on which it was made."""

    sha256: str
    made: str


@dataclass(frozen=True)
class Predictor:
    """Rates, ranges and rules as one file states them; `data` is all of it."""

    frozen: Frozen
    metrics: Mapping[str, Metric]
    ranges: Mapping[str, tuple[float, float]]  # by statistic
    data: Mapping[str, Any]

    @property
    def models(self) -> tuple[str, ...]:
        """SHA-256 of the weights of every model that it was fitted on."""
        return tuple(model["sha256"] for model in self.data["models"])

    def rate(self, metric: str, statistics: Statistics) -> float:
        """The flip rate of `metric` that is predicted; NaN where a statistic is undefined."""
        found = self.metrics[metric]
        return float(predicted_rate(np.array(found.coefficients), statistics.features()))

    def outside(self, statistics: Statistics) -> tuple[str, ...]:
        """The names of the statistics outside the fitted ranges, undefined ones among them."""
        values = statistics._asdict()
        return tuple(name for name, (low, high) in self.ranges.items() if not low <= values[name] <= high)


def load_predictor(path: str | os.PathLike[str] | None = None, sha256: str = FROZEN_SHA256) -> Predictor:
    """The frozen predictor, by default the one that is shipped.

    Raises InputError where the file is missing, or its SHA-256 is not `sha256`: a predictor that was
    changed after it was frozen predicts nothing.
    """
    data = _bytes(path)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        reject(
            "predictor",
            expected=f"the frozen file, SHA-256 {sha256[:16]}",
            found=f"a changed one, {found[:16]}",
            todo="Take the file of the release back. A new fit is another predictor and needs other tests.",
        )
    return read_predictor(data)


def read_predictor(data: bytes) -> Predictor:
    """A predictor from the bytes of its file, whichever they are."""
    fields = json.loads(data)
    metrics = {
        name: Metric(tuple(one["coefficients"]), *(one[key] for key in Metric._fields[1:]))
        for name, one in fields["metrics"].items()
    }
    ranges = {name: (low, high) for name, (low, high) in fields["ranges"].items()}
    return Predictor(Frozen(hashlib.sha256(data).hexdigest(), fields["made"]), metrics, ranges, fields)


def _bytes(path: str | os.PathLike[str] | None) -> bytes:
    source = files("validation").joinpath("predictor.json") if path is None else Path(path)
    try:
        return source.read_bytes()
    except OSError as error:
        reject(
            "predictor",
            expected="the frozen file",
            found=error.strerror or str(error),
            todo="Install the package again, or name the file that was frozen.",
        )
