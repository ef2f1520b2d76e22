"""Measured checkpoints in a file of JSON lines, each with a hash of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.cache import results_folder
from validation.report.document import Note
from validation.studies.collapse.measured import TAKEN, Measured
from validation.studies.collapse.split import RowEntropies
from validation.studies.kept_lines import KeptLines

__all__ = ["Store", "check_results", "default_place"]

Array = NDArray[Any]

_FORMAT = 1  # raised when what a line holds, or how it is measured, changes
_START = b'{"record": {"format": '


def default_place(key: str) -> Path:
    """The file in the user's cache for measurements under `key`; Unavailable where there is no cache."""
    return results_folder("collapse") / f"{key[:32]}.jsonl"


def check_results(path: str | os.PathLike[str]) -> None:
    """Raise InputError for a file that is there and holds no such measurements."""
    _lines(path).check()


class Store:
    """What was measured under one `key` (texts, choices, architecture), by the hash of the weights.

    The file is as in `KeptLines`, which says what becomes of lines that are cut short or changed; lines of
    another key are passed over.
    """

    def __init__(self, path: str | os.PathLike[str], key: str) -> None:
        """Read what is there; InputError for a file of another kind, or that can be neither read nor made."""
        self._lines, self._key = _lines(path), key
        self._found: dict[str, Measured] = {}
        for line in self._lines.lines():
            record = _checked(line)
            if record is None:
                self._lines.unreadable += 1
            elif record["key"] == key:
                self._found[record["weights"]] = _unpack(record)

    def get(self, weights: str) -> Measured | None:
        """What was measured of these weights, bit for bit; None where nothing was."""
        return self._found.get(weights)

    def put(self, weights: str, measured: Measured) -> None:
        """Keep a measurement, on disk before this returns."""
        record = {"format": _FORMAT, "key": self._key, "weights": weights, **_pack(measured)}
        text = json.dumps(record, sort_keys=True)
        self._lines.add(json.dumps({"sha256": _sha256(text), "record": record}, sort_keys=True).encode())
        self._found[weights] = measured

    def notes(self) -> tuple[Note, ...]:
        """What is said of lines of the file that could not be read."""
        return self._lines.notes()


def _lines(path: str | os.PathLike[str]) -> KeptLines:
    return KeptLines(path, _START, "--results")


def _checked(line: bytes) -> dict[str, Any] | None:
    """The record of a line that is whole and of this format; None for anything else."""
    try:
        outer = json.loads(line)
        record = outer["record"]
        whole = outer["sha256"] == _sha256(json.dumps(record, sort_keys=True))
        return record if whole and record["format"] == _FORMAT else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _pack(measured: Measured) -> dict[str, Any]:
    return {
        "loss": measured.loss.hex(),  # NaN has a form there, and every digit stays
        "layer": _to_text(measured.layer),
        "rows": {name: [_to_text(part) for part in figures] for name, figures in measured.rows.items()},
        "lengths": list(measured.lengths),
        "sinks": list(measured.sinks),
        "left_out": measured.left_out,
        "skipped": measured.skipped,
    }


def _unpack(record: Mapping[str, Any]) -> Measured:
    return Measured(
        loss=float.fromhex(record["loss"]),
        layer=_to_array(record["layer"], np.int32),
        rows={
            name: RowEntropies(*(_to_array(part, np.float64) for part in record["rows"][name]))
            for name in TAKEN
        },
        lengths=tuple(record["lengths"]),
        sinks=tuple((token, place) for token, place in record["sinks"]),
        left_out=record["left_out"],
        skipped=record["skipped"],
    )


def _to_text(array: Array) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b85encode(zlib.compress(little.tobytes(), 1)).decode()


def _to_array(text: str, dtype: Any) -> Array:
    wanted = np.dtype(dtype)
    data = zlib.decompress(base64.b85decode(text))
    return np.frombuffer(data, wanted.newbyteorder("<")).astype(wanted)
