"""Files that a command writes: checked before the work, there as a whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from oracle._checks import reject

__all__ = ["check_target", "write_whole"]


def check_target(
    path: str, inputs: Iterable[str | os.PathLike[str]] = (), *, option: str, todo: str = "Name another file."
) -> None:
    """Refuse a place that `write_whole` could not write to, before any work is done for it.

    `inputs` are the files that the work reads, and the directories whose files it reads: none of them is
    ever replaced. `option` and `todo` word the InputError.
    """
    try:
        problem = _problem(path) or ("a file that is read" if _is_one_of(path, inputs) else "")
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null byte, a name too long
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        _refuse(path, problem, option, todo)


def write_whole(path: str, data: bytes, *, option: str, todo: str = "Name another file.") -> None:
    """Write `data` to a file, replacing what is there in one step.

    A reader, or a second process that writes the same file, sees the old bytes or the new ones, never a
    mixture. Pipes and devices are written to directly. Raises InputError where writing is impossible.
    """
    check_target(path, option=option, todo=todo)
    target = Path(path).resolve()
    try:
        if _is_special(target):
            target.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, _mode(target))
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        _refuse(path, error.strerror or str(error), option, todo)


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


def _refuse(path: str, found: str, option: str, todo: str) -> NoReturn:
    reject(
        option,
        expected="a file in a directory that can be written to",
        found=f"{path!r} ({found})",
        todo=todo,
    )
