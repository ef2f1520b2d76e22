"""A page whose blocks are made from results: found by their marks, written, and held to the results."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from oracle._checks import reject
from validation.report import files
from validation.report.from_json import read
from validation.reproduction.kept import load_result
from validation.reproduction.recipe import Recipe, read_recipe, show

__all__ = ["Block", "Wrong", "find_blocks", "read_page", "render_page", "write_page", "wrong_blocks"]

_BEGIN, _END = "<!-- reproduce:begin", "<!-- reproduce:end -->"
_BLOCK = re.compile(rf"^{_BEGIN}\b(?P<recipe>.*?)-->[ ]*\r?\n(?P<text>.*?)^{_END}", re.M | re.S)
Load = Callable[[str], Mapping[str, Any]]


class Block(NamedTuple):
    """What stands between two marks: the line of the first, the recipe in it, and where the text begins."""

    line: int
    recipe: Recipe
    start: int
    text: str

    @property
    def where(self) -> str:
        """The block in words."""
        return f"the block in line {self.line} ({self.recipe.run})"


class Wrong(NamedTuple):
    """A block that is not what its result says: the first line that differs, as it is and as it should be."""

    block: Block
    line: int
    found: str
    expected: str


def find_blocks(page: str) -> tuple[Block, ...]:
    """The blocks of a page in their order; InputError for a mark without its other, or that says nothing."""
    blocks = []
    for match in _BLOCK.finditer(page):
        line = page.count("\n", 0, match.start()) + 1
        recipe = read_recipe(match["recipe"], f"the mark in line {line}")
        blocks.append(Block(line, recipe, match.start("text"), match["text"]))
    begun = [page.count("\n", 0, match.start()) + 1 for match in re.finditer(_BEGIN, page)]
    ended = page.count(_END)
    if begun != [block.line for block in blocks] or ended != len(blocks):
        reject(
            "the page",
            expected=f"{_BEGIN} ... --> at the start of a line, and after each one {_END}",
            found=f"{len(begun)} and {ended} of them, {len(blocks)} in their order",
            todo="Put every mark on a line of its own, and both of a block.",
        )
    return tuple(blocks)


def render_page(page: str, load: Load = load_result, leave: Collection[str] = ()) -> str:
    """`page` with every block as the results say; nothing else in it changes, its line ends neither.

    The blocks of the runs in `leave` stay as they are.
    """
    ending = "\r\n" if "\r\n" in page else "\n"
    for block in reversed([block for block in find_blocks(page) if block.recipe.run not in leave]):
        text = _render(block, load).replace("\n", ending)
        page = page[: block.start] + text + page[block.start + len(block.text) :]
    return page


def wrong_blocks(page: str, load: Load = load_result) -> tuple[Wrong, ...]:
    """The blocks that say something else than the results, as after an edit by hand."""
    wrong = []
    for block in find_blocks(page):
        found, expected = (text.splitlines() for text in (block.text, _render(block, load)))
        if found != expected:
            at = next(
                (n for n, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]),
                min(len(found), len(expected)),
            )
            lines = ((lines[at : at + 1] or ["nothing"])[0] for lines in (found, expected))
            wrong.append(Wrong(block, page.count("\n", 0, block.start) + 1 + at, *lines))
    return tuple(wrong)


def read_page(path: Path) -> str:
    """The text of a page with its line ends; InputError where it cannot be read."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError) as error:
        _refuse(path, getattr(error, "strerror", None) or str(error))


def write_page(path: Path, page: str) -> None:
    """Replace a page in one step."""
    files.write_whole(str(path), page.encode(), option="--readme")


def _render(block: Block, load: Load) -> str:
    name = block.recipe.run
    shown = show(block.recipe, read(load(name), f"the result of {name}"), block.where)
    return f"\n{shown}\n"


def _refuse(path: Path, found: str) -> NoReturn:
    reject(
        "--readme",
        expected="a page of text in UTF-8",
        found=f"{str(path)!r} ({found})",
        todo="Name the README of a checkout.",
    )
