"""Files that a command writes: checked before the work, there as a whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from oracle._checks import reject

__all__ = ["check_target", "forget_written", "note_written", "same_target", "write_whole", "written"]

_WRITTEN: dict[str, None] = {}  # in the order of the writing


def check_target(
    path: str, inputs: Iterable[str | os.PathLike[str]] = (), *, option: str, todo: str = "Name another file."
) -> None:
    """Refuse a place that `write_whole` could not write to, before any work is done for it.

    `inputs` are the files that the work reads, and the directories whose files it reads: none of them is
    ever replaced. `option` and `todo` word the InputError.
    """
    try:
        problem = _problem(path) or ("a file that is read" if _is_one_of(_target(path), inputs) else "")
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null byte, a name too long
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        _refuse(path, problem, option, todo)


def note_written(path: str | os.PathLike[str]) -> None:
    """Remember that a command has written `path`, for whoever must say so when it is stopped."""
    _WRITTEN[os.fspath(path)] = None


def forget_written() -> None:
    """Begin a command, which has written nothing."""
    _WRITTEN.clear()


def written() -> tuple[str, ...]:
    """The paths that this command has written, in their order."""
    return tuple(_WRITTEN)


def same_target(first: str, second: str) -> bool:
    """Whether two paths are the same file, be it there or not."""
    try:
        one, other = _target(first), _target(second)
        return one == other or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, RuntimeError, ValueError):  # said better by `check_target`
        return False


def write_whole(path: str, data: bytes, *, option: str, todo: str = "Name another file.") -> None:
    """Write `data` to a file, replacing what is there in one step.

    A reader, or a second process that writes the same file, sees the old bytes or the new ones, never a
    mixture. Pipes and devices are written to directly. Raises InputError where writing is impossible.
    """
    check_target(path, option=option, todo=todo)
    target = _target(path)
    try:
        if _is_special(target):
            target.write_bytes(data)
            note_written(path)
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, _mode(target))
            os.replace(name, target)
            note_written(path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        _refuse(path, error.strerror or str(error), option, todo)


def _problem(path: str) -> str:
    """Why `path` cannot be written to, in words, or nothing."""
    if not path:
        return "an empty name"
    target = _target(path)
    if target.is_dir():
        return "a directory"
    parent = target.parent
    if not parent.is_dir():
        return "no such directory"
    if target.is_file() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
        return "a file that must not be written"
    place = target if _is_special(target) else parent
    return "" if os.access(place, os.W_OK) else "no permission to write there"


def _target(path: str) -> Path:
    """The file that would be written: what is checked must be what is written, "none/../file" included."""
    return Path(path) if _is_special(Path(path)) else Path(path).resolve()


def _is_one_of(target: Path, inputs: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether `target` is one of these files, or a file inside one of these directories, by whatever name."""
    if not target.is_file():
        return False
    files: list[Path] = []
    for given in map(Path, inputs):
        files += given.iterdir() if given.is_dir() else [given]
    return any(file.is_file() and file.samefile(target) for file in files)


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
