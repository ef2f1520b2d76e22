"""The command: what it says of runs, what it publishes, and what it holds a page to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from oracle import InputError
from validation.cli import main
from validation.command_parts import exit_code
from validation.progress import silent
from validation.report.document import Check, Document
from validation.report.terminal import render as text_of
from validation.reproduction import command, stamp
from validation.reproduction.kept import load_result
from validation.reproduction.runs import Run

ROOT = Path(__file__).parents[2]
PAGE = "# Page\n<!-- reproduce:begin one said -->\n<!-- reproduce:end -->\n"


@pytest.fixture
def work(tmp_path):
    """Runs the command's work with a shipped folder and a page of its own."""
    page = tmp_path / "README.md"
    page.write_text(PAGE)

    def call(*names, publish=False, fresh=False, remake=None):
        return command.reproduce(
            names,
            fresh=fresh,
            out=str(tmp_path / "out"),
            publish=page if publish else None,
            progress=silent,
            shipped=tmp_path / "shipped",
            remake=remake,
        )

    call.page, call.shipped = page, tmp_path / "shipped"
    return call


def said(document):
    return " ".join(text_of(document, width=200).split())


def test_without_a_shipped_result_nothing_is_claimed(program, work):
    program.offer(one=["say", "first"])
    document = work()
    assert "one: nothing is shipped to compare with." in said(document)
    assert exit_code(document) == 0
    assert not work.shipped.exists()
    assert work.page.read_text() == PAGE


def test_what_is_published_is_shipped_and_the_page_says_it(program, work):
    program.offer(one=["say", "first"], two=["say", "second"])
    document = work("one", publish=True)
    assert "1 result became what is shipped. README.md: 1 block changed." in said(document)
    assert exit_code(document) == 0
    assert load_result("one", work.shipped)["parts"][0]["text"] == "first"
    assert "```\nfirst\n```" in work.page.read_text()
    document = work("one")
    assert "ok one: expected the figures of the shipped result; found 4 equal" in said(document)
    assert exit_code(document) == 0


def test_a_figure_that_differs_fails_and_is_named(program, work):
    program.offer(one=["say", "first"])
    work(publish=True)
    program.offer(one=["say", "other"])
    document = work()
    assert "one: note said: first -> other" in said(document)
    assert "FAILED one: expected the figures of the shipped result; found 1 of 4 differ" in said(document)
    assert exit_code(document) == 1
    assert "first" in work.page.read_text()
    assert exit_code(work(publish=True)) == 0
    assert "other" in work.page.read_text()


def test_runs_that_fail_are_named_and_the_rest_is_published(program, work):
    program.offer(one=["fail", "70"], two=["say", "x"], three=["fail", "3"])
    document = work("one", "two", publish=True)
    assert "FAILED one: expected an end with code 0; found code 70, after a line of fail" in said(document)
    assert "FAILED readme: expected a shipped result for every block of README.md; found none of one" in said(
        document
    )
    assert exit_code(document) == 1
    assert load_result("two", work.shipped)
    assert work.page.read_text() == PAGE
    assert exit_code(work("two", "three")) == 3


def test_blocks_without_a_result_stay_as_they_are_and_the_others_are_written(program, work):
    program.offer(one=["say", "first"], two=["say", "second"])
    old = "<!-- reproduce:begin two said -->\nold\n<!-- reproduce:end -->\n"
    work.page.write_text(PAGE + old)
    assert exit_code(work("one", publish=True)) == 1
    assert "first" in work.page.read_text()
    assert work.page.read_text().endswith(old)


def test_a_key_that_a_result_lacks_is_named_and_what_was_found_is_shipped(program, work):
    program.offer(one=["say", "first"])
    work.page.write_text(PAGE.replace("one said", "one unsaid"))
    document = work(publish=True)
    assert "the block in line 2 (one): expected a key of one (said, large); found unsaid" in said(document)
    assert exit_code(document) == 1
    assert load_result("one", work.shipped)


def test_a_failed_check_is_a_result_and_is_not_shipped(program, work):
    program.offer(one=["say", "x"])
    work(publish=True)
    program.offer(one=["doubt", "x"])
    for publish in (False, True):
        document = work(publish=publish)
        assert exit_code(document) == 1
        assert "FAILED one: expected a result in which every check held; found 1 check failed" in said(
            document
        )
        assert "one: check sums: nothing -> failed" in said(document)
        assert len(load_result("one", work.shipped)["parts"]) == 2


def test_what_is_shipped_has_the_stamp_of_its_making(program, work, tmp_path, monkeypatch):
    program.offer(one=["say", "first"])
    done = command.run_named

    def then_edited(*given):
        outcomes = done(*given)
        monkeypatch.setattr(stamp, "code_digest", lambda: "of an edit after the run")
        return outcomes

    monkeypatch.setattr(command, "run_named", then_edited)
    work(publish=True)
    made, shipped = (
        json.loads((tmp_path / folder / "one.json").read_text())["stamp"] for folder in ("out", "shipped")
    )
    assert shipped == made


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<!-- reproduce:begin one -->\n", "the page: expected <!-- reproduce:begin"),
        (PAGE.replace("one", "two"), "NAME: expected some of one; found 'two'"),
        ("# Title\n", "--readme: expected a page with blocks; found none"),
    ],
)
def test_a_wrong_mark_is_said_before_any_run(program, work, page, words):
    program.offer(one=["say", "first"])
    work.page.write_text(page)
    with pytest.raises(InputError, match=words):
        work(publish=True)
    assert program.calls == []


def test_the_list_says_what_is_there(program, work, tmp_path):
    program.offer(one=["say", "first"], two=["say", "second"])
    work("one")
    table = command.list_runs(str(tmp_path / "out")).parts[0]
    assert [(row["run"], row["kept"]) for row in table.records()] == [("one", "kept"), ("two", "none")]
    assert [row["shipped"] for row in table.records()] == ["no", "no"]
    assert table.notes[0] == (
        "all together about 2 minutes, as the making of the shipped results took; estimated: one, two"
    )


def test_the_list_says_how_long_the_shipped_result_took_and_by_which_code(
    program, work, tmp_path, monkeypatch
):
    program.offer(one=["say", "first"], two=["say", "second"])
    work("one", publish=True)
    place = work.shipped / "one.json"
    place.write_text(re.sub(r'"seconds":[0-9.]+', '"seconds":600', place.read_text()))

    def row():
        table = command.list_runs(str(tmp_path / "out"), work.shipped).parts[0]
        assert table.notes[0].startswith("all together about 11 minutes, ")
        assert table.notes[0].endswith("; estimated: two")
        return table.records()[0]

    assert (row()["minutes"], row()["shipped"]) == (10, "by this code")
    monkeypatch.setattr(command, "code_digest", lambda: "other")
    assert row()["shipped"] == "by other code"


ELSEWHERE = "one: its figures depend on processor and libraries"


def test_on_another_processor_figures_may_differ_and_it_is_said(program, work, monkeypatch):
    def offer(text):
        program.offer_runs(Run("one", ("say", text), "a run", 1, elsewhere=("*",)))

    offer("share 1.5")
    work(publish=True)
    offer("share 1.6")
    document = work()
    assert exit_code(document) == 1
    assert ELSEWHERE not in said(document)
    monkeypatch.setattr(stamp, "processor", lambda: "another one")
    document = work()
    assert exit_code(document) == 0
    assert ELSEWHERE in said(document)
    assert "1 of 4 differ in digits alone, which they may" in said(document)
    offer("part 1.6")
    assert exit_code(work()) == 1


def test_what_is_made_from_results_is_made_last_of_what_was_published(program, work):
    ledger = Run("ledger", ("say", "old"), "made from results", 1, reads_results=True)
    program.offer_runs(Run("one", ("say", "first"), "a run", 1), ledger)
    seen = []

    def remake(folder):
        seen.append(load_result("one", folder)["parts"][0]["text"])
        return Document("claims", {}, (Check("claims_agree", "x", "y", len(seen) == 1),))

    assert exit_code(work(publish=True, remake=remake)) == 0
    assert seen == ["first"]
    assert program.calls == ["say first"]
    document = work("ledger", publish=True, remake=remake)
    assert exit_code(document) == 1
    assert len(seen) == 2
    work(remake=remake)
    assert len(seen) == 2


def test_publishing_is_refused_where_packages_are_installed(tmp_path, monkeypatch, capsys):
    with pytest.raises(InputError, match=r"--publish: expected a checkout, .*; found installed packages"):
        command.refuse_outside(tmp_path)
    command.refuse_outside(ROOT)
    called = []
    monkeypatch.setattr(command, "refuse_outside", lambda: called.append(True) or reject_all())
    assert main(["reproduce", "--publish"]) == 2
    assert called


def reject_all():
    raise InputError("no.")


def test_a_page_is_checked_and_results_of_other_code_are_named(work, monkeypatch):
    work.page.write_text(PAGE.replace("one said", "validate checks forward"))
    command.render(work.page)
    monkeypatch.setattr("validation.reproduction.shipped.code_digest", lambda: "other")
    document = command.check(work.page)
    (note,) = (part for part in document.parts if part.key == "other_code")
    assert note.text.startswith("Made by other code than this: ")
    assert "(validate)" in note.text
    assert not document.failed
