"""Progress of long work: one moving line on standard error where that is a terminal, else silence."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from validation.progress import Progress, silent
from validation.report._layout import plain

__all__ = ["announce", "announce_compiling", "live_progress"]


@contextmanager
def live_progress(stream: TextIO | None) -> Iterator[Progress]:
    """A Progress that shows itself on `stream` and wipes itself off at the end; `silent` off a terminal."""
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield silent
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


def announce(line: str) -> None:
    """Say something on standard error, above any moving line."""
    with suppress(OSError):
        print("sinkscope:", plain(line), file=sys.stderr, flush=True)


def announce_compiling() -> None:
    """Say why the next half minute is silent."""
    announce("compiling the fast path (first use) ...")
