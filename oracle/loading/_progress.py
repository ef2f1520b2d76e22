"""Lines about what takes long, for whoever asked for them, or else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Progress", "told"]

Progress = Callable[[str], None]


def told(progress: Progress | None) -> Progress:
    """`progress`, or where there is none a function that writes its first line to standard error."""
    return progress or _FirstLine()


class _FirstLine:
    def __init__(self) -> None:
        self._said = False

    def __call__(self, line: str) -> None:
        if not self._said:
            with suppress(OSError):  # a full or closed standard error is no reason to stop
                print(line, file=sys.stderr, flush=True)
        self._said = True
