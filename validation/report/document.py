"""What every command hands to every renderer: tables, checks and notes, with where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Check", "Column", "Document", "Note", "Part", "Table"]


@dataclass(frozen=True)
class Column:
    """One column: its key in JSON, its heading on the screen, and the format of its numbers.

    `format` is a format specification such as ".3f" or ".1%"; it is for the eye only, JSON keeps every digit.
    """

    key: str
    heading: str
    format: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under named columns. A cell is a number, a string, a boolean or None; NaN means undefined.

    `intro` stands between the title and the rows, `notes` below them. A table that is not `shown` is for JSON
    alone.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    intro: tuple[str, ...] = ()
    shown: bool = True

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column key."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Check:
    """One thing that must hold: what was expected, what was found, and whether it held."""

    key: str
    expected: str
    found: str
    ok: bool


@dataclass(frozen=True)
class Note:
    """A sentence, such as a verdict or a warning.

    Two keys have a meaning of their own: "section" marks a heading, "not_run" something that could not be
    run, so that nothing is claimed of it. `values` are the numbers behind the sentence: under the key "T",
    the tokens of every text that was measured.
    """

    key: str
    text: str
    values: tuple[int, ...] = ()


Part = Table | Check | Note


@dataclass(frozen=True)
class Document:
    """The result of one command. `provenance` says what was measured and with what.

    It holds versions, the model's name and hash, the sink set, the convention and T wherever they apply.
    """

    command: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not hold."""
        return tuple(part for part in self.parts if isinstance(part, Check) and not part.ok)

    @property
    def not_run(self) -> tuple[Note, ...]:
        """The notes on what could not be run."""
        return tuple(part for part in self.parts if isinstance(part, Note) and part.key == "not_run")
