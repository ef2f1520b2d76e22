"""Pages with blocks: written from results, and an edit by hand is found."""

from __future__ import annotations

import re

import pytest

from oracle import InputError
from validation.reproduction.page import find_blocks, read_page, render_page, write_page, wrong_blocks

BEGIN, END = (
    "<!-- reproduce:begin audit flips columns=metric,flips without=intro,notes -->",
    "<!-- reproduce:end -->",
)
LAST = "<!-- reproduce:begin audit\n  closing#1 -->"
PAGE = f"# Title\n\ncafé\n{BEGIN}\nold | text\n{END}\n\nMore.  \n\n{LAST}\n{END}"


@pytest.fixture
def load(report):
    return {"audit": report}.__getitem__


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_what_stands_between_the_marks_changes(load, ending):
    page = PAGE.replace("\n", ending)
    once = render_page(page, load)
    assert render_page(once, load) == once
    assert once.count("\n") == once.count(ending)
    last = f"```{ending}First sentence.{ending}```{ending}{ending}{END}"
    assert once.endswith(f"{ending}{ending}{last}")
    before, between, after = re.split(f"{BEGIN}|{END}", once)[:3]
    assert f"{before}{BEGIN}" == page[: page.index(BEGIN) + len(BEGIN)]
    assert page[page.index(END) :].startswith(END + after[: after.index("closing#1 -->")])
    assert [line for line in between.split(ending) if line][1:4] == ["What flips", "...", "metric   flips"]


def test_a_written_page_is_right_and_an_edited_figure_is_found(load):
    page = render_page(PAGE, load)
    assert wrong_blocks(page, load) == ()
    (wrong,) = wrong_blocks(page.replace("27.0%", "27.1%"), load)
    assert (wrong.found, wrong.expected) == ("cosine   27.1%", "cosine   27.0%")
    assert page.splitlines()[wrong.line - 1] == "cosine   27.0%"
    assert wrong.block.where == "the block in line 4 (audit)"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda page: page.replace("entropy  50.0%\n", ""),
        lambda page: page.replace("entropy  50.0%\n", "entropy  50.0%\nother    51.0%\n"),
        lambda page: page.replace("First", "Second"),
        lambda page: page.replace("```\nWhat", "What"),
    ],
)
def test_every_other_edit_is_found_too(load, spoil):
    page = render_page(PAGE, load)
    assert spoil(page) != page
    assert len(wrong_blocks(spoil(page), load)) == 1


@pytest.mark.parametrize(
    "page",
    [
        BEGIN,
        END,
        f"{END}\n{BEGIN}",
        f"{BEGIN}\n{BEGIN}\n{END}",
        f"{BEGIN}\n{END}\n{END}",
        f"text {BEGIN}\n{END}",
        f"{BEGIN}\n text {END}",
        f"{BEGIN} text\n{END}",
    ],
)
def test_marks_without_each_other_are_refused(page):
    with pytest.raises(InputError, match="the page: expected <!-- reproduce:begin"):
        find_blocks(page)


def test_what_a_mark_asks_for_in_vain_is_said_with_its_line(load):
    with pytest.raises(InputError, match="the mark in line 3: expected RUN"):
        find_blocks(f"a\n\n<!-- reproduce:begin -->\n{END}")
    with pytest.raises(InputError, match=r"the block in line 2 \(audit\): expected a key of audit"):
        render_page(f"a\n<!-- reproduce:begin audit nothing -->\n{END}", load)
    with pytest.raises(InputError, match="NAME: expected some of validate"):
        render_page(f"<!-- reproduce:begin nowhere key -->\n{END}")


def test_a_page_is_replaced_in_one_step_and_what_is_no_page_is_refused(tmp_path):
    place = tmp_path / "README.md"
    place.write_bytes("é\r\n".encode())
    place.chmod(0o640)
    write_page(place, read_page(place) + "b")
    assert place.read_bytes() == "é\r\nb".encode()
    assert place.stat().st_mode & 0o777 == 0o640
    place.write_bytes(b"\xff")
    for wrong in (place, tmp_path, tmp_path / "none.md"):
        with pytest.raises(InputError, match="--readme: expected a page of text in UTF-8"):
            read_page(wrong)
