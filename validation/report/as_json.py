"""A Document for other programs: strict JSON, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from oracle._checks import reject
from validation.report.document import Check, Document, Part, Table

__all__ = ["as_data", "check_target", "dumps", "write"]

FORMAT = 1  # raised when a reader of these files has to change


def as_data(document: Document) -> dict[str, Any]:
    """`document` as dictionaries, lists, strings, numbers, booleans and None only.

    Numbers keep every digit of float64 (longdouble is rounded to it). NaN becomes None; infinities, which
    JSON lacks, become the strings "Infinity" and "-Infinity".
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
    """Refuse a place that `write` could not write to, before any work is done for it.

    `inputs` are the files that the work reads, and the directories whose files it reads: none of them is
    ever replaced.
    """
    try:
        problem = _problem(path) or ("a file that is read" if _is_one_of(path, inputs) else "")
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null byte, a name too long
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        _refuse(path, problem)


def write(document: Document, path: str) -> None:
    """Write `document` to a file, replacing what is there in one step.

    A reader, or a second process that writes the same file, sees the old text or the new one, never a
    mixture. Pipes and devices are written to directly. Raises InputError where writing is impossible.
    """
    check_target(path)
    text = dumps(document)
    target = Path(path).resolve()
    try:
        if _is_special(target):
            target.write_text(text, encoding="ascii")
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, _mode(target))
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        _refuse(path, error.strerror or str(error))


def _problem(path: str) -> str:
    """Why `path` cannot be written to, in words, or nothing."""
    if not path:
        return "an empty name"
    target = Path(path)
    if target.is_dir():
        return "a directory"
    parent = target.resolve().parent
    if not parent.is_dir():
        return "no such directory"
    if target.is_file() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
        return "a file that must not be written"
    place = target if _is_special(target) else parent
    return "" if os.access(place, os.W_OK) else "no permission to write there"


def _is_one_of(path: str, inputs: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether `path` is one of these files, or a file inside one of these directories, by whatever name."""
    if not Path(path).is_file():
        return False
    files: list[Path] = []
    for given in map(Path, inputs):
        files += given.iterdir() if given.is_dir() else [given]
    return any(file.is_file() and file.samefile(path) for file in files)


def _is_special(path: Path) -> bool:
    """A pipe, a device or a socket: nothing that a rename should ever replace."""
    return path.exists() and not path.is_file()


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those that a new file would get."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _refuse(path: str, found: str) -> None:
    reject(
        "--json",
        expected="a file in a directory that can be written to",
        found=f"{path!r} ({found})",
        todo="Name another file, or - for standard output.",
    )


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Table):
        return {
            "kind": "table",
            "key": part.key,
            "title": part.title,
            "columns": [{"key": column.key, "heading": column.heading} for column in part.columns],
            "rows": _plain(part.records()),
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
