"""Tables for a page: cells as on the screen, figures to the right, pipes out of the way."""

from __future__ import annotations

from validation.report.document import Check, Column, Note, Table
from validation.report.markdown import render

TABLE = Table(
    "shares",
    "Shares",
    (
        Column("name", "na|me"),
        Column("share", "share", ".1%"),
        Column("time", "time"),
        Column("goal", "goal"),
    ),
    (("a | b", 0.25, "1.5 ms", ">= 2"), ("c", float("nan"), "", ""), (None, None, "20 ms", "3")),
    ("A note.",),
    ("An intro.",),
)


def test_a_table_with_what_stands_around_it():
    assert render([TABLE]).splitlines() == [
        "**Shares**",
        "",
        "An intro.",
        "",
        "| na\\|me | share | time | goal |",
        "|---|--:|--:|---|",
        "| a \\| b | 25.0% | 1.5 ms | >= 2 |",
        "| c | – |  |  |",
        "|  |  | 20 ms | 3 |",
        "",
        "A note.",
    ]


def test_other_parts_are_lines():
    long = "A sentence " * 30
    assert render([Note("closing", long.strip()), Check("sums", "1", "1", True)]).splitlines() == [
        long.strip(),
        "",
        "ok      sums: expected 1; found 1",
    ]
