"""One process at a time in a folder; the lock ends with its process, however that ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["alone"]

_PAUSE = 0.5


@contextmanager
def alone(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the folder; where another process does, wait for it and call `waiting` twice a second meanwhile.

    Where the system has no such locks two processes may do the same work; files are whole all the same.
    """
    with (folder / ".lock").open("ab") as file:
        while not _take(file):
            waiting()
            time.sleep(_PAUSE)
        yield


def _take(file: IO[bytes]) -> bool:
    """Whether the lock could be had; it goes when the file is closed."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
