"""The terminal report: what stands on the screen, within its width, and nothing that steers it."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from validation.report.document import Check, Column, Document, Note, Table
from validation.report.terminal import for_stream, render, summary

LONG = "a heading of several words"


def table(rows, columns=None, notes=(), title="Shares"):
    columns = columns or (Column("name", "name"), Column("share", "share", ".1%"))
    return Table("shares", title, columns, tuple(rows), notes)


def lines(*parts, width=80, provenance=None):
    return render(Document("measure", provenance or {}, parts), width=width).splitlines()


def test_a_table_is_laid_out_in_columns_with_numbers_to_the_right():
    assert lines(table([("attention", 0.46), ("value norm", 1.0)])) == [
        "sinkscope measure",
        "",
        "Shares",
        "name         share",
        "----------  ------",
        "attention    46.0%",
        "value norm  100.0%",
    ]


def test_nan_is_a_dash_with_a_note_and_none_is_empty():
    shown = lines(table([("a", float("nan")), ("b", None), ("c", np.float32("nan"))]))
    assert shown[5:] == ["a         –", "b", "c         –", "– means undefined."]
    assert "undefined" not in " ".join(lines(table([("a", 0.5)])))


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (True, "", "yes"),
        (np.bool_(False), "", "no"),
        (1062, ",d", "1,062"),
        (np.int64(7), "", "7"),
        (3, ".1%", "300.0%"),
        (1.23456789, "", "1.235"),
        (np.longdouble("0.25"), ".3f", "0.250"),
        (float("inf"), ".3f", "inf"),
        ("none", ".3f", "none"),
    ],
)
def test_cells_are_formatted_for_the_eye(value, form, shown):
    assert lines(table([(value,)], (Column("x", "x", form),)))[-1].strip() == shown


def test_special_tokens_survive_and_control_characters_do_not():
    shown = "\n".join(
        lines(table([("[SEP] [bold]:smile:", 1.0), ("\x1b[31mred\n\u200d", 0.5)]), Note("n", "[CLS]\x07"))
    )
    assert "[SEP] [bold]:smile:" in shown
    assert "[CLS]\\x07" in shown
    assert "\\x1b[31mred\\n\\u200d" in shown
    assert "\x1b" not in shown


def test_wide_characters_keep_the_columns_straight():
    shown = lines(table([("日本語", 0.5), ("abc", 0.25)]))
    assert {cell_len(line) for line in shown[4:]} == {len("日本語" * 2) + 2 + 5}


def test_texts_fold_but_numbers_never_do():
    columns = (Column("text", "text"), Column("error", LONG, ".6e"))
    shown = lines(table([("term " * 40, 1.5e-7)], columns), width=50)
    assert max(map(len, shown)) <= 50
    assert sum("1.500000e-07" in line for line in shown) == 1
    assert sum(line.count("term") for line in shown) == 40


def test_a_table_that_is_too_wide_is_split_and_repeats_its_first_column():
    columns = (Column("layer", "layer"), *(Column(f"c{i}", f"column{i}", ".4e") for i in range(12)))
    shown = lines(table([(3, *range(12))], columns))
    assert max(map(len, shown)) <= 80
    assert sum(line.lstrip().startswith("layer") for line in shown) == 2
    for number in range(12):
        assert sum(f"{float(number):.4e}" in line for line in shown) == 1


def test_what_cannot_be_folded_stands_over_the_edge_whole():
    columns = (Column("a", "a" * 60), Column("b", "b" * 60))
    assert f"{'a' * 60}  {'b' * 60}" in lines(table([(1, 2)], columns))


def test_a_table_without_rows_says_so():
    assert lines(table([]))[-1] == "(no rows)"


def test_notes_and_checks_stand_in_their_order():
    shown = lines(
        Note("first", "One."),
        Note("second", "Two.\nThree."),
        Check("rows", "at most 1e-12", "3e-15", True),
        Check("mutant", "a kill", "a survivor", False),
    )
    assert shown[2:] == [
        "One.",
        "Two.",
        "Three.",
        "",
        "ok      rows: expected at most 1e-12; found 3e-15",
        "FAILED  mutant: expected a kill; found a survivor",
        "",
        "1 of 2 checks held; 1 FAILED: mutant.",
    ]


def test_a_section_is_a_heading():
    shown = lines(Note("a", "One."), Note("section", "The study"), Note("b", "Two."))
    assert shown[2:] == ["One.", "", "The study", "=========", "", "Two."]


def test_the_summary_counts_checks():
    held = Check("a", "x", "x", True)
    assert summary(Document("validate", {}, (held, held))) == "2 of 2 checks held."
    assert summary(Document("measure", {}, (Note("n", "n"),))) == ""
    missing = Note("not_run", "NOT RUN: no torch.")
    assert summary(Document("validate", {}, (held, missing))) == (
        "1 of 1 checks held; NOT RUN, as said above: 1."
    )
    assert summary(Document("validate", {}, (missing,))) == "NOT RUN, as said above: 1."


def test_the_header_states_provenance_and_shortens_long_lists():
    shown = lines(
        provenance={
            "model_sha256": None,
            "T": [*range(8, 30), 9],
            "positions": list(range(8, 30)),
            "convention": "keep",
            "layers": [0, 3],
            "versions": {"python": "3.11", "a_library": "1"},
            "nothing": [],
        }
    )
    assert shown == [
        "sinkscope measure",
        "model sha256  none",
        "T             8 to 29 (23 texts, 22 lengths)",
        "positions     8 to 29 (22 values)",
        "convention    keep (the sink is kept as a part of the row; shares are of the",
        "              whole row)",
        "layers        0, 3",
        "versions      python 3.11, a_library 1",
        "nothing       none",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


FAILING = Document("validate", {}, (Check("a", "x", "y", False),))


def test_colours_only_at_a_terminal_and_never_against_the_wish_of_the_user(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    assert "\x1b[1;31mFAILED" in for_stream(FAILING, Terminal())
    assert "\x1b" not in for_stream(FAILING, io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in for_stream(FAILING, Terminal())
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in for_stream(FAILING, Terminal())


def test_the_width_is_the_terminals_or_eighty(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    document = Document("measure", {}, (Note("n", "word " * 100),))
    assert max(map(len, for_stream(document, Terminal()).splitlines())) > 100
    assert max(map(len, for_stream(document, io.StringIO()).splitlines())) <= 80
    assert os.environ["COLUMNS"] == "120"


cells = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(width=32), st.text(max_size=60)
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(1, 8).flatmap(lambda n: st.lists(st.tuples(*[cells] * n), min_size=1, max_size=4)),
    headings=st.lists(st.text("abc ", min_size=1, max_size=16), min_size=8, max_size=8),
    width=st.integers(60, 120),
)
def test_every_line_fits_whatever_the_table_holds(rows, headings, width):
    columns = tuple(Column(str(i), headings[i]) for i in range(len(rows[0])))
    document = Document("measure", {}, (table(rows, columns),))
    assert max(map(cell_len, render(document, width=width).splitlines())) <= width
