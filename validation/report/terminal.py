"""A Document for the eye: plain text in columns, coloured only where somebody looks at a terminal."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TextIO

from rich.cells import cell_len

from validation.report._layout import blocks, lay_out, plain, wrap
from validation.report.document import Check, Document, Part, Table
from validation.wording import counted, percent

__all__ = ["cell_text", "excerpt", "for_stream", "is_number_column", "is_shown", "render", "summary"]

_WIDTH = 80
_UNDEFINED = "–"
_TIED = "\N{NO-BREAK SPACE}"  # joins a name to its value until lines are broken
_MANY = 12  # values that a line of the header still lists one by one
# what a value of the header means, for the eye; JSON keeps the value alone
_GLOSSES = {("convention", "keep"): "the sink is kept as a part of the row; shares are of the whole row"}
_STYLES = {"title": "1", "ok": "32", "FAILED": "1;31"}


def for_stream(document: Document, stream: TextIO) -> str:
    """`document` as it suits `stream`: at a terminal's width and in colour there, else 80 columns and plain.

    NO_COLOR (any value but the empty one) and TERM=dumb switch colours off.
    """
    terminal = stream.isatty()
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if terminal else _WIDTH
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return render(document, width=max(width, 40), colour=colour)


def render(document: Document, *, width: int = _WIDTH, colour: bool = False) -> str:
    """The text of `document`: provenance, its parts in their order, and how many checks held.

    A Note with the key "section" is a heading.
    """
    groups = [_header(document, width, colour)]
    groups += _groups([part for part in document.parts if is_shown(part)], width, colour)
    closing = summary(document)
    if closing:
        sound = not document.failed and not document.not_run
        groups.append(_paint(wrap(closing, width), "ok" if sound else "FAILED", colour))
    return _joined(groups)


def excerpt(parts: Iterable[Part], *, width: int = _WIDTH) -> str:
    """The text of some parts as they look inside a document, plain; a Table is rendered, shown or not."""
    return _joined(_groups(parts, width, False))


def is_shown(part: Part) -> bool:
    """Whether `part` is for the eye too."""
    return not isinstance(part, Table) or part.shown


def _groups(parts: Iterable[Part], width: int, colour: bool) -> list[list[str]]:
    """The lines of parts, those together that stand close to each other."""
    groups: list[list[str]] = []
    kind = ""
    for part in parts:
        if isinstance(part, Table):
            lines = _table(part, width, colour)
        elif isinstance(part, Check):
            lines = _check(part, width, colour)
        elif part.key == "section":
            lines = _section(part.text, width, colour)
        else:
            lines = _paragraphs(part.text, width)
        before, kind = kind, "section" if part.key == "section" else type(part).__name__
        if kind == before and kind in ("Check", "Note"):  # these stand close together
            groups[-1] += lines
        else:
            groups.append(lines)
    return groups


def _joined(groups: Iterable[Iterable[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in groups) + "\n"


def summary(document: Document) -> str:
    """How many checks held, which failed, and whether something was not run, in one sentence.

    Empty for a document without checks of which everything was run.
    """
    count = sum(isinstance(part, Check) for part in document.parts)
    failed, missing = document.failed, len(document.not_run)
    said = [f"{count - len(failed)} of {count} checks held"] if count else []
    if failed:
        said.append(f"{len(failed)} FAILED: {', '.join(plain(check.key) for check in failed)}")
    if missing:
        said.append(f"NOT RUN, as said above: {missing}")
    return "; ".join(said) + "." if said else ""


def _header(document: Document, width: int, colour: bool) -> list[str]:
    lines = _paint(wrap(f"sinkscope {document.command}", width), "title", colour)
    items = [(plain(key.replace("_", " ")), _entry(key, value)) for key, value in document.provenance.items()]
    left = min(max((len(key) for key, _ in items), default=0), width // 3)
    for key, value in items:
        first, *rest = (line.replace(_TIED, " ") for line in wrap(value, width - left - 2))
        lines.append(f"{key.ljust(left)}  {first}".rstrip())
        lines += [" " * (left + 2) + line for line in rest]
    return lines


def _entry(key: str, value: Any) -> str:
    """A value of the provenance as words, with what its key adds."""
    if key == "T" and isinstance(value, (list, tuple)) and len(value) > _MANY:
        texts, lengths = counted(len(value), "text"), counted(len(set(value)), "length")
        return f"{min(value)} to {max(value)} ({texts}, {lengths})"
    gloss = _GLOSSES.get((key, value)) if isinstance(value, str) else None
    return f"{_spell(value)} ({gloss})" if gloss else _spell(value)


def _spell(value: Any) -> str:
    """A value of the provenance as words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(str(key))}{_TIED}{_spell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        if len(value) > _MANY and all(isinstance(item, Integral) for item in value):
            return f"{min(value)} to {max(value)} ({len(value)} values)"
        return ", ".join(_spell(item) for item in value) or "none"
    return "none" if value is None else cell_text(value, "")


def _section(text: str, width: int, colour: bool) -> list[str]:
    lines = wrap(plain(text), width)
    return _paint([*lines, "=" * max(cell_len(line) for line in lines)], "title", colour)


def _table(table: Table, width: int, colour: bool) -> list[str]:
    rows = [
        [cell_text(value, column.format) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    numeric = [is_number_column(table, place) for place in range(len(table.columns))]
    headings = [plain(column.heading) for column in table.columns]
    lines = _paint(wrap(plain(table.title), width), "title", colour) if table.title else []
    for note in table.intro:
        lines += _paragraphs(note, width)
    for number, group in enumerate(blocks(headings, rows, numeric, width)):
        head, body = lay_out(
            [headings[place] for place in group],
            [[row[place] for place in group] for row in rows],
            [numeric[place] for place in group],
            width,
        )
        lines += [""] * (number > 0) + head + body
    if not rows:
        lines.append("(no rows)")
    undefined = any(_is_nan(value) for row in table.rows for value in row)
    for note in (*table.notes, *[f"{_UNDEFINED} means undefined."] * undefined):
        lines += _paragraphs(note, width)
    return lines


def _check(check: Check, width: int, colour: bool) -> list[str]:
    word = "ok" if check.ok else "FAILED"
    text = plain(f"{check.key}: expected {check.expected}; found {check.found}")
    first, *rest = wrap(text, width - 8)
    return [
        _paint([word], word, colour)[0] + " " * (8 - len(word)) + first,
        *(" " * 8 + line for line in rest),
    ]


def _paragraphs(text: str, width: int) -> list[str]:
    """Wrapped lines; those that continue one stand further in."""
    lines = []
    for paragraph in text.splitlines():
        first, *rest = wrap(plain(paragraph), width - 2)
        lines += [first, *(f"  {line}" for line in rest)]
    return lines


def _paint(lines: list[str], style: str, colour: bool) -> list[str]:
    return [f"\x1b[{_STYLES[style]}m{line}\x1b[0m" for line in lines] if colour else lines


def _is_nan(value: Any) -> bool:
    return isinstance(value, Real) and math.isnan(value)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def is_number_column(table: Table, place: int) -> bool:
    """Whether the column at `place` holds numbers only (and something)."""
    values = [row[place] for row in table.rows if row[place] is not None]
    return bool(values) and all(isinstance(value, Real) and not _is_truth(value) for value in values)


def cell_text(value: Any, form: str) -> str:
    """A cell as it is shown: numbers by the column's `form`, NaN as a dash, None as nothing."""
    if value is None:
        return ""
    if _is_truth(value):
        return "yes" if value else "no"
    if not isinstance(value, Real):
        return plain(str(value))
    if _is_nan(value):
        return _UNDEFINED
    if isinstance(value, Integral):
        return format(int(value), form)
    return percent(float(value), form) if form.endswith("%") else format(float(value), form or ".4g")
