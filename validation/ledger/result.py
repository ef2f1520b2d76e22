"""Results of commands as judges read them: tables by key, rows by what stands in their cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from oracle._checks import reject
from validation.headline import length_words

__all__ = ["Result", "Results"]

Row = Mapping[str, Any]


class Result:
    """The JSON of one run. What is not there raises InputError: a judge never guesses."""

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        """`name` is that of the run, `data` what its command wrote with --json."""
        self.name = name
        self.provenance: Mapping[str, Any] = data["provenance"]
        self._parts = data["parts"]

    @property
    def lengths(self) -> str:
        """T of its texts in words; empty where it has none."""
        found = self.provenance.get("T")
        return length_words(sorted(set(found))) if found else ""

    def rows(self, table: str, **cells: Any) -> list[Row]:
        """The rows of the table of that key in which every one of `cells` stands."""
        found = [part for part in self._parts if part["kind"] == "table" and part["key"] == table]
        if len(found) != 1:
            self.refuse(f"one table {table!r}", f"{len(found)}")
        rows = found[0]["rows"]
        for column in cells:
            if column not in [one["key"] for one in found[0]["columns"]]:
                self.refuse(f"a column {column!r} of table {table!r}", "none")
        return [row for row in rows if all(row[column] == value for column, value in cells.items())]

    def row(self, table: str, **cells: Any) -> Row:
        """The one such row."""
        found = self.rows(table, **cells)
        if len(found) != 1:
            said = ", ".join(f"{column} {value!r}" for column, value in cells.items())
            self.refuse(f"one row of table {table!r} with {said}", f"{len(found)}")
        return found[0]

    def all_rows(self, table: str) -> list[Row]:
        """The rows of every table of that key, and of those whose key ends with it after a colon."""
        found = [
            part["rows"]
            for part in self._parts
            if part["kind"] == "table" and part["key"].rpartition(": ")[2] == table
        ]
        if not found:
            self.refuse(f"a table {table!r}", "none")
        return [row for rows in found for row in rows]

    def number(self, row: Row, column: str) -> float:
        """A cell as a number; text, undefined and missing cells are refused."""
        value = row.get(column)
        if value in ("Infinity", "-Infinity"):  # which JSON lacks
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"a number under {column!r}", repr(value))
        return float(value)

    def notes(self, table: str) -> list[str]:
        """What stands under the one table of that key."""
        self.rows(table)
        return [
            note
            for part in self._parts
            if (part["kind"], part["key"]) == ("table", table)
            for note in part["notes"]
        ]

    def text(self, note: str) -> str:
        """The sentence of the note of that key."""
        found = [part for part in self._parts if part["kind"] == "note" and part["key"] == note]
        if len(found) != 1:
            self.refuse(f"one note {note!r}", f"{len(found)}")
        return str(found[0]["text"])

    def held(self, check: str) -> bool:
        """Whether the check of that key held."""
        found = [part for part in self._parts if part["kind"] == "check" and part["key"] == check]
        if len(found) != 1:
            self.refuse(f"one check {check!r}", f"{len(found)}")
        return bool(found[0]["ok"])

    def titled(self, start: str) -> str:
        """The key of the one table whose title begins so."""
        found = [
            part["key"]
            for part in self._parts
            if part["kind"] == "table" and part.get("title", "").startswith(start)
        ]
        if len(found) != 1:
            self.refuse(f"one table titled {start!r}", f"{len(found)}")
        return str(found[0])

    def refuse(self, expected: str, found: str) -> NoReturn:
        """Raise InputError: the result is not what the rule takes it to be."""
        reject(f"result of {self.name}", expected=expected, found=found, todo="Run it again.")


class Results(Mapping[str, Result]):
    """Results by the name of their run, each loaded once, when it is first asked for."""

    def __init__(self, names: tuple[str, ...], load: Callable[[str], Mapping[str, Any]]) -> None:
        """`load` gives the JSON of a run by its name."""
        self._names, self._load = names, load
        self._loaded: dict[str, Result] = {}

    def __getitem__(self, name: str) -> Result:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = Result(name, self._load(name))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
