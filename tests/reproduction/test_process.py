"""A run and the process that waits for it: what becomes of one when the other is killed or asked to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from validation.reproduction.lock import alone
from validation.reproduction.working import NEW, run_named

ALONE = """
import json, sys
from pathlib import Path
from validation.reproduction import process, runs
from validation.reproduction.working import run_named

root, folder, command = sys.argv[1:]
process.ROOT = Path(root)
found = (runs.Run("one", tuple(json.loads(command)), "a run", 1),)
runs.read_runs = lambda: found
run_named(folder=Path(folder))
"""


@pytest.fixture
def started(program, tmp_path):
    """A process that waits for a run of its own: the two of them, as soon as the run has begun."""
    begun = tmp_path / "begun"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            ALONE,
            str(program.place.parent),
            str(tmp_path),
            json.dumps(["wait", str(begun)]),
        ]
    )
    deadline = time.monotonic() + 60
    while not (begun.exists() and begun.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int(begun.read_text())
    yield parent, child
    parent.kill()
    parent.wait()
    if is_alive(child):
        os.kill(child, signal.SIGKILL)


def is_alive(number):
    """Whether a process goes on; one that has ended and that nobody has asked for does not."""
    try:
        return "Z" not in Path(f"/proc/{number}/stat").read_text().rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False


def dies(number):
    deadline = time.monotonic() + 20
    while is_alive(number):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@needs_proc
def test_what_a_killed_process_has_started_holds_the_folder(program, tmp_path, started):
    parent, child = started
    parent.kill()
    parent.wait()
    assert is_alive(child)

    def waiting():
        if is_alive(child):
            os.kill(child, signal.SIGKILL)
            waited.append(True)

    waited = []
    with alone(tmp_path, waiting):
        assert waited
    assert len(list(tmp_path.glob(".one-*"))) == 1
    program.offer(one=["say", "x"])
    assert [one.state for one in run_named(folder=tmp_path)] == [NEW]
    assert list(tmp_path.glob(".one-*")) == []


@needs_proc
def test_the_run_ends_with_a_process_that_is_asked_to_end(tmp_path, started):
    parent, child = started
    parent.terminate()
    assert parent.wait(timeout=20) == 128 + signal.SIGTERM
    assert dies(child)
    assert list(tmp_path.glob(".one-*")) == []


def test_a_signal_means_afterwards_what_it_meant_before(program, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    program.offer(one=["say", "x"])
    run_named(folder=tmp_path)
    assert signal.getsignal(signal.SIGTERM) == before
