"""Limits for files that are read one after another: the time of each, and the memory of the whole process."""

from __future__ import annotations

import faulthandler
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60.0  # a file takes a hundredth of one; the rest is for a busy machine
_STATUS, _REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Fail the test after `seconds`.

    Where compiled code keeps Python from failing it, the process ends after twice as long, with a traceback.
    """

    def fail(*_: Any) -> None:
        pytest.fail(f"not done after {seconds:g} s")  # not an Exception, so that no code under test takes it

    faulthandler.dump_traceback_later(2 * seconds, exit=True)
    alarm = hasattr(signal, "setitimer")
    if alarm:
        former = signal.signal(signal.SIGALRM, fail)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def memory_limit(most: int) -> Iterator[None]:
    """The peak of the process may grow by `most` bytes, whoever takes them: Python, a library, a mapped file.

    Linux only: elsewhere the peak cannot be set back, and that of an earlier test would hide this one.
    """
    if not _STATUS.exists():
        yield
        return
    with suppress(OSError):  # not allowed in some containers, where an earlier peak may hide this one too
        _REFERENCES.write_text("5")
    before = _peak()
    yield
    grown = _peak() - before
    assert grown <= most, f"{grown} bytes, where {most} are allowed"


def _peak() -> int:
    found = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())
    assert found
    return 1024 * int(found[1])
