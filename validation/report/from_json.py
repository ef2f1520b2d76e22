"""A Document read back from what `as_json` made of it, so that a kept result looks like a fresh one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oracle._checks import reject
from validation.report.as_json import FORMAT
from validation.report.document import Check, Column, Document, Note, Part, Table

__all__ = ["read"]

_INFINITE = {"Infinity": float("inf"), "-Infinity": float("-inf")}


def read(data: Mapping[str, Any], what: str = "the report") -> Document:
    """The Document that `as_json.as_data` turned into `data`; its renderers show the same text.

    Only the numbers behind a Note do not come back, and an array stays a list. Raises InputError for anything
    that is no such data; `what` names it there.
    """
    try:
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}")
        return Document(
            str(data["command"]), dict(data["provenance"]), tuple(_part(part) for part in data["parts"])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        reject(
            what,
            expected=f"a report as --json writes it, format {FORMAT}",
            found=said,
            todo="Make it again, with this version.",
        )


def _part(data: Mapping[str, Any]) -> Part:
    kind = data["kind"]
    if kind == "table":
        return _table(data)
    if kind == "check":
        return Check(data["key"], data["expected"], data["found"], bool(data["ok"]))
    if kind == "note":
        return Note(data["key"], data["text"])
    raise ValueError(f"a part of the kind {kind!r}")


def _table(data: Mapping[str, Any]) -> Table:
    columns = tuple(Column(column["key"], column["heading"], column["format"]) for column in data["columns"])
    rows = [[row[column.key] for column in columns] for row in data["rows"]]
    places = {column.key: place for place, column in enumerate(columns)}
    for row, key in data["undefined"]:
        rows[row][places[key]] = float("nan")
    for place in places.values():
        if not _is_text([row[place] for row in rows]):
            for row in rows:
                row[place] = _INFINITE[row[place]] if isinstance(row[place], str) else row[place]
    return Table(
        data["key"],
        data["title"],
        columns,
        tuple(map(tuple, rows)),
        tuple(data["notes"]),
        tuple(data["intro"]),
        bool(data["shown"]),
    )


def _is_text(values: Sequence[Any]) -> bool:
    """Whether a column holds a text other than an infinity spelled out: then that is one too."""
    return any(isinstance(value, str) and value not in _INFINITE for value in values)
