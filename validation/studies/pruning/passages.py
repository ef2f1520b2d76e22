"""The three texts of the pruning study."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

__all__ = ["Passages", "load_passages"]


class Passages(NamedTuple):
    """English prose of 500 words each, so that 512 tokens can be cut from it."""

    statistics: str  # heads are measured on this one
    evaluation: tuple[str, str]  # perplexities are of these


def load_passages() -> Passages:
    """The bundled texts, written for this project before any of them was measured, and not changed since.

    Heads are measured on an account of canal locks; perplexities are taken of one of the ice trade and of a
    story with dialogue. They stand in passages.txt, one a line.
    """
    text = files(__package__).joinpath("passages.txt").read_text(encoding="utf-8")
    first, *others = text.splitlines()
    return Passages(first, (others[0], others[1]))
