"""A Table for a page: Markdown, with the cells as the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable

from validation.report.document import Part, Table
from validation.report.terminal import cell_text, excerpt, is_number_column

__all__ = ["render"]


def render(parts: Iterable[Part]) -> str:
    """Tables in Markdown, with a title in bold and notes as paragraphs; other parts as lines of their own."""
    blocks: list[str] = []
    for part in parts:
        if not isinstance(part, Table):
            blocks.append(excerpt([part], width=10**6).strip())
            continue
        blocks += [f"**{part.title}**"] * bool(part.title) + list(part.intro)
        blocks += ["\n".join(_lines(part)), *part.notes]
    return "\n\n".join(blocks) + "\n"


def _lines(table: Table) -> Iterable[str]:
    rows = [
        [cell_text(value, column.format) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    yield _line([column.heading for column in table.columns])
    yield (
        "|"
        + "|".join(
            "--:" if is_number_column(table, place) or _are_figures([row[place] for row in rows]) else "---"
            for place in range(len(table.columns))
        )
        + "|"
    )
    yield from map(_line, rows)


def _are_figures(texts: list[str]) -> bool:
    """Whether a column of texts holds figures, perhaps with a unit: they stand to the right too."""
    return any(texts) and all(text[0].isdigit() for text in texts if text)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
