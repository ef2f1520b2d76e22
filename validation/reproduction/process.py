"""A run in a process of its own: its memory, its threads, its output in a log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from validation.reproduction.runs import Run
from validation.reproduction.stamp import ROOT
from validation.running import own_environment

__all__ = ["Ended", "run_process", "sweep"]

_TICK = 0.5
_GRACE = 5.0  # seconds that a process has to end by itself when it is stopped
_LAST = 3  # lines of a log that a message holds
_RESULT = (0, 1)  # exit codes beside a report: a check that failed is a result too


class Ended(NamedTuple):
    """How a run ended; `report` is what it wrote as JSON, whether or not all checks held."""

    code: int
    seconds: float
    last: str  # what it said last
    report: dict[str, Any] | None


def run_process(
    run: Run, folder: Path, keep: Path, tick: Callable[[float], None], hold: Sequence[int] = ()
) -> Ended:
    """Run `sinkscope` with the command of `run`; its output becomes NAME.log in `folder`.

    `keep` takes the place of {keep}; `tick` is called with the seconds since the start, twice a second. The
    process holds the descriptors `hold` as long as it lives. Stopped from the keyboard or by SIGTERM, the
    process is ended too, and KeyboardInterrupt or SystemExit goes on.
    """
    workshop = Path(tempfile.mkdtemp(prefix=f".{run.name}-", dir=folder))
    try:
        log, written = workshop / "log", workshop / "report.json"
        arguments = [part.replace("{keep}", str(keep)) for part in run.command]
        command = [sys.executable, "-P", "-m", "validation", *arguments, "--json", str(written)]
        start = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                pass_fds=tuple(hold),
            )
            try:
                with _ended_with_us(process):
                    code = _wait(process, start, tick)
            finally:
                _end(process)
        seconds = time.monotonic() - start
        last = _last_lines(log)
        os.replace(log, folder / f"{run.name}.log")
        report = json.loads(written.read_bytes()) if code in _RESULT and written.is_file() else None
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return Ended(code, seconds, last, report)


def sweep(run: Run, folder: Path) -> None:
    """Remove the workshops that killed processes left; for whoever holds the folder alone."""
    for place in folder.glob(f".{run.name}-*/"):
        shutil.rmtree(place, ignore_errors=True)


def _environment() -> dict[str, str]:
    """The user's own, and this very code first on the path, wherever the command is called."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**own_environment(), "PYTHONPATH": os.pathsep.join(path)}


def _wait(process: subprocess.Popen[bytes], start: float, tick: Callable[[float], None]) -> int:
    while True:
        tick(time.monotonic() - start)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_TICK)


@contextmanager
def _ended_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Let SIGTERM end the process with this one; only a main thread may say so."""

    def end(number: int, _: object) -> None:
        process.terminate()
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(process: subprocess.Popen[bytes]) -> None:
    """See to it that nothing goes on. A terminal's Ctrl-C reaches the process too, so it is given time."""
    try:
        for asked in (False, True):
            if asked:
                process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
                return
    finally:  # a second Ctrl-C included
        if process.poll() is None:
            process.kill()
            process.wait()


def _last_lines(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return " / ".join(line.strip() for line in lines[-_LAST:])
