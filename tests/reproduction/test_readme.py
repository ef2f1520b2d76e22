"""The README: every figure in a table of it comes from a shipped result, and an edit by hand is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from validation.cli import main
from validation.reproduction.page import find_blocks, read_page, wrong_blocks

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_says_what_the_shipped_results_say():
    """After a change on purpose: sinkscope reproduce --render."""
    assert wrong_blocks(read_page(README)) == ()


def test_a_digit_of_the_readme_that_was_edited_by_hand_is_found():
    page = read_page(README)
    for block in find_blocks(page):
        digit = list(re.finditer(r"\d", block.text))[-1]
        at = block.start + digit.start()
        edited = page[:at] + str((int(digit[0]) + 1) % 10) + page[at + 1 :]
        (wrong,) = wrong_blocks(edited)
        assert wrong.block.line == block.line


def outside(page: str) -> str:
    """A page without its blocks."""
    for block in reversed(find_blocks(page)):
        page = page[: block.start] + page[block.start + len(block.text) :]
    return page


def test_every_table_of_the_readme_is_a_block():
    rule = re.compile(r"^(\|[-:| ]+\||-{3,}(  -{3,})+)$", re.M)
    page = read_page(README)
    assert len(rule.findall(page)) >= 8
    assert rule.findall(outside(page)) == []


def test_no_share_with_decimals_stands_in_its_prose():
    share = re.compile(r"\d\.\d+%")
    page = read_page(README)
    assert len(share.findall(page)) > 100
    assert share.findall(outside(page)) == []


@pytest.fixture
def copy(tmp_path):
    """A copy of the README."""
    page = tmp_path / "README.md"
    page.write_bytes(README.read_bytes())
    return page


def test_the_readme_is_checked_and_an_edit_is_found_and_undone(copy, capsys):
    before = copy.read_bytes()
    assert main(["reproduce", "--check", "--readme", str(copy)]) == 0
    copy.write_bytes(before.replace(b"checks held.", b"checks hold."))
    assert main(["reproduce", "--check", "--readme", str(copy)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "checks hold.', the result" in shown
    assert "Write the blocks with sinkscope reproduce --render." in shown
    assert main(["reproduce", "--render", "--readme", str(copy)]) == 0
    assert "README.md: 1 block changed." in capsys.readouterr().out
    assert copy.read_bytes() == before
