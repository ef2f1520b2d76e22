"""Text in columns: widths, wrapping and splitting, counted in terminal cells."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

__all__ = ["blocks", "lay_out", "plain", "wrap"]

_GAP = 2
_NARROWEST = 24  # a text column may be squeezed to its longest word, or to this

Cells = Sequence[str]


def plain(text: str) -> str:
    """`text` with control, format and unassigned characters spelled out: it must not steer a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken at spaces; only a word longer than a line is cut."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, width) if cell_len(word) > width else [word]
        lines += full
    return [*lines, line]


def blocks(headings: Cells, rows: Sequence[Cells], numeric: Sequence[bool], width: int) -> list[list[int]]:
    """Which columns stand side by side: all, if they fit, else groups that each begin with the first one."""
    least = [
        _least(heading, column, number)
        for heading, column, number in zip(headings, _columns(headings, rows), numeric, strict=True)
    ]
    groups = [[0]]
    for place in range(1, len(headings)):
        taken = sum(least[member] + _GAP for member in groups[-1])
        if taken + least[place] > width and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(place)
    return groups


def lay_out(
    headings: Cells, rows: Sequence[Cells], numeric: Sequence[bool], width: int
) -> tuple[list[str], list[str]]:
    """The lines of the heading with its rule, and those of the body; numbers stand to the right, whole."""
    widths = _widths(headings, _columns(headings, rows), numeric, width)
    head = _row(headings, widths, numeric, bottom=True)
    head.append((" " * _GAP).join("-" * wide for wide in widths))
    return head, [line for row in rows for line in _row(row, widths, numeric, bottom=False)]


def _columns(headings: Cells, rows: Sequence[Cells]) -> list[list[str]]:
    return [[row[place] for row in rows] for place in range(len(headings))]


def _longest_word(texts: Cells) -> int:
    return max((cell_len(word) for text in texts for word in text.split(" ")), default=0)


def _least(heading: str, column: Cells, number: bool) -> int:
    """The narrowest that a column may become: numbers keep their width, texts their longest word."""
    full = max((cell_len(cell) for cell in column), default=0)
    needed = full if number else min(_longest_word(column), _NARROWEST)
    return max(needed, _longest_word([heading]), 1)


def _widths(headings: Cells, columns: Sequence[Cells], numeric: Sequence[bool], width: int) -> list[int]:
    """Give every column what it needs, take from the widest texts what is too much, then unfold headings."""
    least = [_least(*column) for column in zip(headings, columns, numeric, strict=True)]
    widths = [
        max(low, max((cell_len(cell) for cell in column), default=0))
        for low, column in zip(least, columns, strict=True)
    ]
    room = width - _GAP * (len(widths) - 1)
    while sum(widths) > room:
        spare = [wide if wide > low else 0 for wide, low in zip(widths, least, strict=True)]
        if not any(spare):
            break
        widths[spare.index(max(spare))] -= 1
    for place, heading in enumerate(headings):
        more = cell_len(heading) - widths[place]
        if 0 < more <= room - sum(widths):
            widths[place] += more
    return widths


def _row(cells: Cells, widths: Sequence[int], numeric: Sequence[bool], *, bottom: bool) -> list[str]:
    """One row as lines; short cells stand at the top, or at the bottom in a heading."""
    folded = [wrap(cell, wide) for cell, wide in zip(cells, widths, strict=True)]
    height = max(len(lines) for lines in folded)
    lines = []
    for level in range(height):
        parts = []
        for texts, wide, number in zip(folded, widths, numeric, strict=True):
            index = level - (height - len(texts)) if bottom else level
            text = texts[index] if 0 <= index < len(texts) else ""
            space = " " * (wide - cell_len(text))
            parts.append(space + text if number else text + space)
        lines.append((" " * _GAP).join(parts).rstrip())
    return lines
