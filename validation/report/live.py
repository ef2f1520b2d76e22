"""Progress of long work: one moving line on standard error at a terminal, elsewhere a line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from validation.progress import Progress, silent
from validation.report._layout import plain

__all__ = ["announce", "announce_compiling", "live_progress"]

_EVERY = 30.0  # seconds between two lines in a log


@contextmanager
def live_progress(stream: TextIO | None) -> Iterator[Progress]:
    """A Progress that shows itself on `stream` and wipes itself off at the end.

    Off a terminal, as in a log, it is a plain line twice a minute, so that short work says nothing.
    """
    if stream is None:
        yield silent
        return
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield _plain_lines(stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield tell


def _plain_lines(stream: TextIO) -> Progress:
    start = last = time.monotonic()

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            counted = f", {done} of {total}" if total else ""
            with suppress(OSError, ValueError):  # a stream that was closed
                print(f"sinkscope: {plain(what)}{counted} ({now - start:.0f} s)", file=stream, flush=True)

    return tell


def announce(line: str) -> None:
    """Say something on standard error, above any moving line."""
    with suppress(OSError):
        print("sinkscope:", plain(line), file=sys.stderr, flush=True)


def announce_compiling() -> None:
    """Say why the next half minute is silent."""
    announce("compiling the fast path (first use) ...")
