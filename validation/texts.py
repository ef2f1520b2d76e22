"""The bundled sentences, and texts read from a file that the user names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from oracle._checks import reject

__all__ = ["SENTENCES", "TextLines", "read_texts"]

# Written for this project before any of them was measured, and not changed since.
SENTENCES: tuple[str, ...] = (
    "The doctor thanked the nurse because she had noticed the mistake.",
    "He reached for the scissors, but they were not in the drawer.",
    "Our trophy would not go into the suitcase until it was emptied.",
    "Why did nobody answer the telephone yesterday evening?",
    "Seven small boats crossed the bay before the storm arrived.",
    "Please don't water the cactus more than twice a month.",
    "A committee that never meets can't disagree.",
    "The train to Lisbon leaves at 6:45, not at 7:15.",
    "Light bends when it passes from air into water.",
    '"Stop the engine!" the captain shouted from the bridge.',
    "If the price falls again, the farmers who planted barley will lose money.",
    "Unfortunately, the well-known pianist misremembered the opening bars.",
    "Run, jump, swim, and then sleep.",
    "My sister's neighbour keeps bees, hens and one very old donkey.",
)

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class TextLines(list[str]):
    """The texts of a file, one per line, each with the number of its line (from 1).

    `blank_lines` says how many lines had nothing on them.
    """

    def __init__(
        self, texts: Iterable[str] = (), blank_lines: int = 0, line_numbers: Iterable[int] = ()
    ) -> None:
        super().__init__(texts)
        self.blank_lines = blank_lines
        self.line_numbers = tuple(line_numbers)


def read_texts(path: str | os.PathLike[str], encoding: str = "utf-8") -> TextLines:
    """The texts of a file, one per line, without the line ends; blank lines are skipped and counted.

    Lines end with LF, CRLF or CR, and with nothing else. A byte order mark is dropped. Raises InputError for
    a file that is missing, unreadable, a directory, binary (a NUL byte), without any text, or written in
    another encoding (the message names the byte and its position).
    """
    data = _read_bytes(path)
    name = os.fspath(path)
    if not data:
        reject(name, expected="one text per line", found="an empty file", todo="Put a text in it.")
    if data.startswith(_UTF16_MARKS) and not encoding.lower().replace("_", "-").startswith("utf-16"):
        reject(name, expected=f"text in {encoding}", found="a UTF-16 mark", todo="Pass --encoding utf-16.")
    text = _decode(data, name, encoding)
    place = text.find("\0")
    if place >= 0:
        reject(
            name,
            expected="a text file",
            found=f"a NUL character at position {place}",
            todo="Binary files cannot be read; for attention arrays use --attention.",
        )
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":  # what stands after the last line end is no line
        lines.pop()
    filled = [number for number, line in enumerate(lines) if line.strip()]
    texts = [lines[number] for number in filled]
    if not texts:
        reject(name, expected="one text per line", found="only blank lines", todo="Put a text in it.")
    return TextLines(texts, len(lines) - len(texts), [number + 1 for number in filled])


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    name = os.fspath(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        found = "no such file"
    except IsADirectoryError:
        found = "a directory"
    except (OSError, ValueError) as error:  # ValueError: a NUL character inside the path
        found = getattr(error, "strerror", None) or str(error)
    reject(name or "file", expected="a readable text file", found=found, todo="Check the path.")


def _decode(data: bytes, name: str, encoding: str) -> str:
    try:
        # utf-8-sig is UTF-8 that drops a byte order mark if there is one
        return data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        other = "cp1252" if encoding.lower() != "cp1252" else "utf-8"
        reject(
            name,
            expected=f"text in {encoding}",
            found=f"byte 0x{data[error.start]:02x} at position {error.start} (line {line})",
            todo=f"Pass --encoding {other}, or whatever the file was written in.",
        )
    except (LookupError, ValueError):  # ValueError: "undefined" and the like, or a name that is no name
        reject(
            "encoding",
            expected="a text encoding, such as utf-8 or cp1252",
            found=repr(encoding),
            todo="Use a name that Python knows.",
        )
