"""What a block of a page shows: parts of a run's report, picked by key."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

from oracle._checks import reject
from validation.report import markdown
from validation.report.document import Document, Note, Part, Table
from validation.report.terminal import excerpt, is_shown, summary

__all__ = ["Pick", "Recipe", "read_recipe", "show"]

CHECKS = "checks"  # in the place of a key: the line that says how many checks held
_FORMS = ("text", "markdown")
_AROUND = ("title", "intro", "notes")
_GAP = "..."


class Pick(NamedTuple):
    """One part: its key, which of those with that key (from 1; 0 is all), and what of a table is shown."""

    key: str
    number: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    without: tuple[str, ...] = ()


class Recipe(NamedTuple):
    """The run that a block is made from, its form, and its parts in their order."""

    run: str
    form: str
    picks: tuple[Pick, ...]


def read_recipe(text: str, where: str = "the mark") -> Recipe:
    """A recipe as it stands in a mark: `RUN [as=markdown] KEY[#N] [columns=a,b] [rows=1-8] [without=intro]`.

    The options after a key are that table's. Raises InputError, with the place `where` it stands.
    """
    try:
        run, *words = shlex.split(text)
    except ValueError as error:
        _refuse(where, f"{text.strip()!r} ({error})")
    form, picks = "text", list[Pick]()
    for word in words:
        option, is_option, value = word.partition("=")
        if not is_option:
            key, _, number = word.partition("#")
            picks.append(Pick(key, _numbers(number, where)[0] if number else 0))
        elif option == "as" and value in _FORMS and not picks:
            form = value
        elif option in ("columns", "rows", "without") and picks:
            values = tuple(value.split(","))
            if option == "rows":
                picks[-1] = picks[-1]._replace(rows=_numbers(value, where))
            elif option == "columns":
                picks[-1] = picks[-1]._replace(columns=values)
            elif set(values) <= set(_AROUND):
                picks[-1] = picks[-1]._replace(without=values)
            else:
                _refuse(where, repr(word))
        else:
            _refuse(where, repr(word))
    if not picks:
        _refuse(where, f"no key in {text.strip()!r}")
    return Recipe(run, form, tuple(picks))


def show(recipe: Recipe, document: Document, where: str = "the mark") -> str:
    """The block as it stands in a page: text between fences, 80 columns wide, or Markdown.

    "..." stands for what the terminal shows and the block does not, between its parts and inside them.
    Raises InputError for a key, a column or a row that the document does not have.
    """
    picked = list(_picked(recipe, document, where))
    if recipe.form == "markdown":
        return markdown.render([part for _, part in picked])
    closing = f"\n{summary(document)}\n" if any(pick.key == CHECKS for pick in recipe.picks) else ""
    return f"```\n{excerpt(_with_gaps(picked, document))}{closing}```\n"


def _picked(recipe: Recipe, document: Document, where: str) -> Iterator[tuple[int, Part]]:
    """Each part with its place in the document."""
    for pick in recipe.picks:
        if pick.key == CHECKS:
            continue
        found = [(place, part) for place, part in enumerate(document.parts) if part.key == pick.key]
        if pick.number:
            found = found[pick.number - 1 : pick.number]
        if not found:
            keys = ", ".join(dict.fromkeys(part.key for part in document.parts))
            name = f"{pick.key}#{pick.number}" if pick.number else pick.key
            reject(where, expected=f"a key of {recipe.run} ({keys})", found=name, todo="Name another.")
        for place, part in found:
            yield place, _cut(part, pick, recipe.form, where) if isinstance(part, Table) else part


def _cut(table: Table, pick: Pick, form: str, where: str) -> Table:
    """The table with its chosen columns and rows; gaps are marked where the form is text."""
    places = {column.key: place for place, column in enumerate(table.columns)}
    if unknown := [key for key in pick.columns if key not in places]:
        expected = f"columns of {table.key} ({', '.join(places)})"
        reject(where, expected=expected, found=", ".join(unknown), todo="Name others.")
    if pick.rows and max(pick.rows) > len(table.rows):
        expected = f"rows of {table.key}, which has {len(table.rows)}"
        reject(where, expected=expected, found=str(max(pick.rows)), todo="Name others.")
    chosen = [places[key] for key in pick.columns] or list(places.values())
    gap = (_GAP, *[None] * (len(chosen) - 1))
    rows, at = list[tuple[object, ...]](), 0
    for number in pick.rows or range(1, len(table.rows) + 1):
        if number != at + 1 and form == "text":
            rows.append(gap)
        rows.append(tuple(table.rows[number - 1][place] for place in chosen))
        at = number
    if at != len(table.rows) and form == "text":
        rows.append(gap)
    intro = () if "intro" in pick.without else table.intro
    notes = () if "notes" in pick.without else table.notes
    if form == "text":
        if table.intro and not intro:
            intro = (_GAP,)
        if table.notes and not notes and not _ends_in_gap(rows):
            notes = (_GAP,)
    return replace(
        table,
        title="" if "title" in pick.without else table.title,
        columns=tuple(table.columns[place] for place in chosen),
        rows=tuple(rows),
        intro=intro,
        notes=notes,
    )


def _with_gaps(picked: Sequence[tuple[int, Part]], document: Document) -> Iterable[Part]:
    """The parts with a mark wherever others stand between two of them; none at the very end."""
    parts: list[Part] = []
    for number, (place, part) in enumerate(picked):
        between = document.parts[picked[number - 1][0] + 1 : place] if number else ()
        if number and any(is_shown(other) for other in between):
            before = parts[-1]
            if not isinstance(before, Table):
                parts.append(Note("gap", _GAP))
            elif before.notes[-1:] != (_GAP,) and not (_ends_in_gap(before.rows) and not before.notes):
                parts[-1] = replace(before, notes=(*before.notes, _GAP))
        parts.append(part)
    last = parts[-1]
    if isinstance(last, Table) and last.notes == (_GAP,):
        parts[-1] = replace(last, notes=())
    return parts


def _ends_in_gap(rows: Sequence[Sequence[object]]) -> bool:
    return bool(rows) and rows[-1][0] == _GAP


def _numbers(text: str, where: str) -> tuple[int, ...]:
    """Rows from 1 on, rising: "3" or "1-8,12"."""
    found: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        found = []
    if not found or found != sorted(set(found)) or found[0] < 1:
        _refuse(where, repr(text))
    return tuple(found)


def _refuse(where: str, found: str) -> NoReturn:
    reject(
        where,
        expected="RUN [as=markdown] and then keys, each with [columns=a,b] [rows=1-8] [without=intro,notes]",
        found=found,
        todo="CONTRIBUTING.md explains the marks.",
    )
