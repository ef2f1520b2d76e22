"""How long work tells that it is alive, without knowing about terminals."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Interrupted", "Progress", "silent"]


class Interrupted(Exception):
    """Work was stopped from the keyboard and has kept something; the message says what, and is complete."""


class Progress(Protocol):
    """Called with what is being done and how far it is: progress("oracle, sentence", 3, 14)."""

    def __call__(self, what: str, done: int, total: int) -> None: ...


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""
