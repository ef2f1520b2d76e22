"""What a mark asks for, and what is shown for it."""

from __future__ import annotations

import pytest

from oracle import InputError
from validation.report.from_json import read
from validation.reproduction.recipe import Pick, read_recipe, show


def shown(text, report):
    lines = show(read_recipe(text), read(report)).splitlines()
    assert lines[0] == lines[-1] == "```"
    return lines[1:-1]


def test_a_recipe_is_read():
    found = read_recipe(" audit-minilm as=markdown 'a key' columns=a,b rows=1-3,5 closing#2 without=intro ")
    assert found.run == "audit-minilm"
    assert found.form == "markdown"
    assert found.picks == (
        Pick("a key", 0, ("a", "b"), (1, 2, 3, 5)),
        Pick("closing", 2, without=("intro",)),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run", "no key in 'run'"),
        ("run columns=a", "'columns=a'"),
        ("run key as=markdown", "'as=markdown'"),
        ("run as=html key", "'as=html'"),
        ("run key rows=3-1", "'3-1'"),
        ("run key rows=0", "'0'"),
        ("run key rows=a", "'a'"),
        ("run key#b", "'b'"),
        ("run key without=rows", "'without=rows'"),
        ("run key colour=red", "'colour=red'"),
        ("run 'key", "No closing quotation"),
    ],
)
def test_a_recipe_that_is_none_is_refused(text, found):
    with pytest.raises(
        InputError, match=r"^line 7: expected RUN \[as=markdown\] and then keys.*; found"
    ) as error:
        read_recipe(text, "line 7")
    assert found in str(error.value)


def test_a_whole_table_looks_as_on_the_screen(report):
    assert shown("r flips", report) == [
        "What flips",
        "an intro",
        "metric   flips      n",
        "-------  -----  -----",
        "cosine   27.0%  1,200",
        "JSD          –      7",
        "L1        1.2%",
        "entropy  50.0%      3",
        "a note",
        "– means undefined.",
    ]


def test_what_is_left_out_of_a_table_is_marked(report):
    assert shown("r flips columns=metric,flips rows=1,3 without=intro", report) == [
        "What flips",
        "...",
        "metric  flips",
        "------  -----",
        "cosine  27.0%",
        "...",
        "L1       1.2%",
        "...",
        "a note",
    ]


def test_nothing_is_marked_at_the_end_but_rows(report):
    assert shown("r flips columns=metric without=title,intro,notes", report)[-1] == "entropy"
    assert shown("r flips columns=metric rows=1 without=intro,notes", report)[-2:] == ["cosine", "..."]


def test_between_parts_a_mark_stands_where_others_are_left_out(report):
    last = shown("r flips columns=metric without=notes closing#2", report)[-4:]
    assert last == ["entropy", "...", "", "Second sentence."]
    assert shown("r closing", report) == ["First sentence.", "Second sentence."]
    assert shown("r section closing#2", report) == ["Verdicts", "========", "", "...", "Second sentence."]
    assert shown("r closing sums", report)[-1] == "ok      sums: expected 1; found 1.0000001"
    hidden_between = shown("r flips columns=metric closing#1", report)
    assert "..." not in hidden_between


def test_a_hidden_table_can_be_shown_and_the_count_of_checks_too(report):
    assert shown("r hidden closing checks", report)[-3:] == ["Second sentence.", "", "1 of 1 checks held."]
    assert shown("r hidden", report) == ["Hidden", "metric", "------", "a"]


def test_markdown(report):
    text = show(
        read_recipe("r as=markdown flips columns=metric,flips rows=1 without=title,intro"), read(report)
    )
    assert text == "| metric | flips |\n|---|--:|\n| cosine | 27.0% |\n\na note\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r nothing", r"expected a key of r \(section, flips, hidden, closing, sums\); found nothing"),
        ("r closing#3", "found closing#3"),
        ("r flips columns=a,flips", r"expected columns of flips \(metric, flips, n\); found a"),
        ("r flips rows=3-5", "expected rows of flips, which has 4; found 5"),
    ],
)
def test_what_the_result_does_not_have_is_refused(report, text, words):
    with pytest.raises(InputError, match=words):
        show(read_recipe(text), read(report))
