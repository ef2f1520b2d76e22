"""Plain files: whether they are there, what JSON they hold, what they hash to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from oracle._checks import reject

__all__ = ["one_line", "read_object", "require_file", "sha256_of", "sha256_of_all"]


def one_line(error: BaseException | str) -> str:
    """What another library said, on one line and cut where it is long."""
    text = " ".join(str(error).split())
    return (text if len(text) <= 300 else f"{text[:300]}...") or type(error).__name__


def require_file(path: Path, todo: str) -> None:
    """Raise InputError where `path` is not a regular file (a pipe or a device could block for ever)."""
    if not path.is_file():
        found = "something that is not a regular file" if path.exists() else "no such file"
        if path.is_symlink() and not path.exists():
            found = "a link that points nowhere"
        reject(str(path), expected="a file", found=found, todo=todo)


def read_object(path: Path, todo: str) -> dict[str, Any]:
    """The JSON object in `path`; anything else there raises InputError, ending in `todo`."""
    require_file(path, todo)
    try:
        value = json.loads(path.read_bytes())
    except RecursionError:
        reject(str(path), expected="JSON", found="brackets nested thousands deep", todo=todo)
    except ValueError as error:  # not JSON, or not text
        reject(str(path), expected="JSON", found=one_line(error), todo=todo)
    if not isinstance(value, dict):
        reject(str(path), expected="a JSON object", found=f"a JSON {type(value).__name__}", todo=todo)
    return value


def sha256_of(path: Path) -> str:
    """SHA-256 of one file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_all(paths: list[Path]) -> str:
    """SHA-256 of a file, or of the lines "digest  name" (as sha256sum prints them) of several, by name."""
    if len(paths) == 1:
        return sha256_of(paths[0])
    lines = "".join(f"{sha256_of(path)}  {path.name}\n" for path in sorted(paths))
    return hashlib.sha256(lines.encode()).hexdigest()
