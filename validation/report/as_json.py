"""A Document for other programs: strict JSON, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from validation.report import files
from validation.report.document import Check, Document, Part, Table

__all__ = ["as_data", "check_target", "dumps", "write"]

FORMAT = 1  # raised when a reader of these files has to change
_TODO = "Name another file, or - for standard output."


def as_data(document: Document) -> dict[str, Any]:
    """`document` as dictionaries, lists, strings, numbers, booleans and None only.

    Numbers keep every digit of float64 (longdouble is rounded to it). NaN becomes None, and a table says in
    "undefined" at which row and column; infinities, which JSON lacks, become the strings "Infinity" and
    "-Infinity". `from_json.read` reads it back.
    """
    held = sum(isinstance(part, Check) and part.ok for part in document.parts)
    return {
        "format": FORMAT,
        "command": document.command,
        "provenance": _plain(document.provenance),
        "checks": {"held": held, "failed": len(document.failed), "not_run": len(document.not_run)},
        "parts": [_part(part) for part in document.parts],
    }


def dumps(document: Document) -> str:
    """`document` as strict JSON in ASCII, with a line break at its end."""
    return json.dumps(as_data(document), indent=2, allow_nan=False) + "\n"


def check_target(path: str, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Refuse a place that `write` could not write to; see `files.check_target`."""
    files.check_target(path, inputs, option="--json", todo=_TODO)


def write(document: Document, path: str) -> None:
    """Write `document` to a file, whole or not at all; see `files.write_whole`."""
    files.write_whole(path, dumps(document).encode("ascii"), option="--json", todo=_TODO)


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Table):
        return {
            "kind": "table",
            "key": part.key,
            "title": part.title,
            "shown": part.shown,
            "columns": [
                {"key": column.key, "heading": column.heading, "format": column.format}
                for column in part.columns
            ],
            "rows": _plain(part.records()),
            "undefined": _undefined(part),
            "intro": list(part.intro),
            "notes": list(part.notes),
        }
    if isinstance(part, Check):
        return {
            "kind": "check",
            "key": part.key,
            "expected": part.expected,
            "found": part.found,
            "ok": bool(part.ok),
        }
    return {"kind": "note", "key": part.key, "text": part.text}


def _undefined(table: Table) -> list[list[Any]]:
    """Row and column of every NaN, which JSON cannot tell from an empty cell."""
    return [
        [number, column.key]
        for number, row in enumerate(table.rows)
        for column, value in zip(table.columns, row, strict=True)
        if isinstance(value, Real) and math.isnan(value)
    ]


def _plain(value: Any) -> Any:
    """`value` in the types of JSON; anything that has no such form raises TypeError."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            return None
        return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")
