"""Two results of one run: which figures differ, as they are shown, and which of these may."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from validation.report.document import Check, Document, Note, Part, Table
from validation.report.from_json import read
from validation.report.terminal import cell_text

__all__ = ["Compared", "Difference", "compare"]

_FIGURE = re.compile(r"[<>]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
_HASH = re.compile(r"[0-9a-f]{64}")
_ABOUT = ("versions", "machine")  # of the provenance: may differ anywhere, and is stamped apart


class Difference(NamedTuple):
    """One place where two results differ, and whether it may."""

    where: str
    expected: str
    found: str
    allowed: bool


class Compared(NamedTuple):
    """How many figures and sentences were compared, and the differences."""

    compared: int
    differences: tuple[Difference, ...]

    @property
    def wrong(self) -> tuple[Difference, ...]:
        """The differences that may not be."""
        return tuple(one for one in self.differences if not one.allowed)

    @property
    def allowed(self) -> int:
        """How many differences may be."""
        return len(self.differences) - len(self.wrong)


class _Shown(NamedTuple):
    """What is shown in one place, and what of it holds wherever it was made."""

    text: str
    everywhere: str


def compare(
    expected: Mapping[str, Any],
    found: Mapping[str, Any],
    varies: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
) -> Compared:
    """Two reports, as --json writes them, cell by cell as they are shown, sentence by sentence.

    Digits that nobody sees are not compared, checks only by whether they held. `varies` are patterns of the
    keys that may differ: of tables, TABLE.COLUMN, of notes. Those of `elsewhere` may differ in the digits of
    figures and in hashes alone: words, signs, counts, rows and checks have to be equal.
    """
    texts = [dict(_texts(read(report))) for report in (expected, found)]
    places = list(dict.fromkeys([*texts[0], *texts[1]]))
    differences = []
    for place in places:
        one, other = (text.get(place, _NOTHING) for text in texts)
        if one.text != other.text:
            key, where = place
            digits = one.everywhere == other.everywhere and _may(key, elsewhere)
            differences.append(Difference(where, one.text, other.text, digits or _may(key, varies)))
    return Compared(len(places), tuple(differences))


def _may(key: str, varies: Sequence[str]) -> bool:
    return any(fnmatchcase(key, pattern) or fnmatchcase(key, f"{pattern}.*") for pattern in varies)


def _texts(document: Document) -> Iterator[tuple[tuple[str, str], _Shown]]:
    """Everything that is shown, under its key (for `varies`) and its place in words."""
    for name, value in document.provenance.items():
        if name not in _ABOUT:
            yield (name, name.replace("_", " ")), _exactly(str(value))
    seen: dict[tuple[type, str], int] = {}
    for part in document.parts:
        number = seen[type(part), part.key] = seen.get((type(part), part.key), 0) + 1
        yield from _part(part, part.key if number == 1 else f"{part.key}#{number}")


def _part(part: Part, name: str) -> Iterator[tuple[tuple[str, str], _Shown]]:
    if isinstance(part, Note):
        yield (part.key, f"note {name}"), _sentence(part.text)
    elif isinstance(part, Check):
        yield (part.key, f"check {name}"), _exactly("held" if part.ok else "failed")
    else:
        yield from _table(part, name)


def _table(table: Table, name: str) -> Iterator[tuple[tuple[str, str], _Shown]]:
    for kind, texts in (("title", (table.title,)), ("intro", table.intro), ("note", table.notes)):
        for number, text in enumerate(texts, 1):
            yield (table.key, f"{name}, {kind} {number}"), _sentence(text)
    for number, row in enumerate(table.rows, 1):
        for column, value in zip(table.columns, row, strict=True):
            shown = cell_text(value, column.format)
            place = (f"{table.key}.{column.key}", f"{name}, row {number}, {column.key}")
            yield place, _sentence(shown) if isinstance(value, float) else _exactly(shown)


def _exactly(text: str) -> _Shown:
    return _Shown(text, _HASH.sub("#", text))


def _sentence(text: str) -> _Shown:
    return _Shown(text, _FIGURE.sub("#", _HASH.sub("#", text)))


_NOTHING = _Shown("nothing", "nothing")
