"""The limits that the tests of spoilt files rely on can be exceeded."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from file_limits import memory_limit, time_limit

# A loop in compiled code: signals wait for Python, which never has a turn.
HANGS = """
from itertools import repeat
from file_limits import time_limit
with time_limit(0.5):
    sum(repeat(0))
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")
def test_what_takes_too_long_fails() -> None:
    former = signal.getsignal(signal.SIGALRM)

    def forever() -> None:
        while True:
            with suppress(Exception):  # as code under test may
                time.sleep(1)

    with pytest.raises(pytest.fail.Exception, match=r"not done after 0\.1 s"), time_limit(0.1):
        forever()
    assert signal.getsignal(signal.SIGALRM) is former
    with time_limit(0.1):
        pass
    time.sleep(0.2)  # and nothing comes afterwards


def test_what_never_comes_back_to_python_ends_the_process() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", HANGS], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "Timeout (0:00:01)" in done.stderr
    assert 'File "<string>", line 5' in done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read on Linux only")
def test_memory_that_python_does_not_know_of_is_seen() -> None:
    def touch(size: int) -> None:
        with mmap.mmap(-1, size) as pages:
            pages.write(b"\x01" * size)

    with pytest.raises(AssertionError, match="where 10000000 are allowed"), memory_limit(10_000_000):
        touch(30_000_000)
    with memory_limit(10_000_000):  # the peak of before is none of its own
        touch(1_000_000)
