"""One process at a time in a folder; the lock ends with the last process that holds it, however that ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["alone"]

_PAUSE = 0.5


@contextmanager
def alone(folder: Path, waiting: Callable[[], None]) -> Iterator[tuple[int, ...]]:
    """Hold the folder; where another process does, wait for it and call `waiting` twice a second meanwhile.

    What is yielded are the descriptors of the lock: a child that inherits them holds it as long as it lives,
    also when this process is killed. Where the system has no such locks there are none, and two processes may
    do the same work; files are whole all the same.
    """
    with (folder / ".lock").open("ab") as file:
        while (held := _take(file)) is None:
            waiting()
            time.sleep(_PAUSE)
        yield held


def _take(file: IO[bytes]) -> tuple[int, ...] | None:
    """The lock's descriptors; None where another process has it. It goes when all copies are closed."""
    try:
        import fcntl
    except ImportError:
        return ()
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:  # a file system without locks
        return ()
    return (file.fileno(),)
