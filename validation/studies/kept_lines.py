"""A file of JSON lines in which a study keeps what it has found, so that a killed run goes on from there.

Lines are only ever added, each in one write. A line that a killed run cut short, or anything else that the
study cannot read, is left out and counted; what is added next stands on a line of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from oracle._checks import reject
from validation.report.document import Note
from validation.wording import counted

__all__ = ["KeptLines"]


class KeptLines:
    """The file `path`, every line of which begins with `start`; `option` is how the user names it.

    `unreadable` counts the lines that the study has left out because it could not read them. Raises
    InputError, with the option, for a file that begins otherwise (nothing is ever written into it) or that
    cannot be read or added to.
    """

    def __init__(self, path: str | os.PathLike[str], start: bytes, option: str) -> None:
        """Nothing is read or made yet."""
        self.path, self._start, self._option = Path(path), start, option
        self.unreadable = 0

    def check(self) -> None:
        """Refuse what `lines` would refuse of a file that is there; make none, so that it can come early."""
        self._bytes(make=False)

    def lines(self) -> list[bytes]:
        """The lines that are there, without empty ones; the file is made if it is not there."""
        return [line for line in self._bytes(make=True).split(b"\n") if line.strip()]

    def add(self, line: bytes) -> None:
        """Add one line, without its break; it is on the disk when this returns."""
        try:
            with open(self.path, "a+b", buffering=0) as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":  # somebody was killed in the middle of a line
                        line = b"\n" + line
                file.write(line + b"\n")  # one call, so that two processes never mix a line
                os.fsync(file.fileno())
        except OSError as error:
            self._refuse(error.strerror or str(error))

    def notes(self) -> tuple[Note, ...]:
        """What is said of lines that were left out; nothing where there are none."""
        if not self.unreadable:
            return ()
        said = counted(self.unreadable, "line")
        text = (
            f"{said} of {self.path.name} cannot be read (cut short, changed or of another version): left out."
        )
        return (Note("unreadable", text),)

    def _bytes(self, *, make: bool) -> bytes:
        data = b""
        try:
            if make:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            special = self.path.exists() and not self.path.is_file()
            if not special and (make or os.path.lexists(self.path)):
                with open(self.path, "a+b" if make else "rb") as file:
                    file.seek(0)
                    data = file.read()
        except (OSError, ValueError) as error:
            self._refuse(getattr(error, "strerror", None) or str(error))
        if special:
            self._refuse("no plain file")
        if data and not self._is_ours(data):
            self._refuse(f"a file of another kind, it begins {data[: len(self._start)]!r}")
        return data

    def _is_ours(self, data: bytes) -> bool:
        """Whether a file begins as it should; a first line may have been cut short before the next one."""
        first, *others = data.split(b"\n", 2)[:2]
        if first.startswith(self._start):
            return True
        cut = len(first) > 0 and self._start.startswith(first)
        return cut and all(self._start.startswith(line[: len(self._start)]) for line in others)

    def _refuse(self, found: str) -> NoReturn:
        reject(
            self._option,
            expected="a file of earlier results, or a new one, that can be added to",
            found=f"{str(self.path)!r} ({found})",
            todo="Name another file.",
        )
