"""Runs that are done if they have to be, one after the other, each result kept as soon as it is there."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oracle._checks import reject
from validation.cache import results_folder
from validation.progress import Interrupted, Progress, silent
from validation.report.live import announce
from validation.reproduction.kept import Kept, read_kept, write_kept
from validation.reproduction.lock import alone
from validation.reproduction.process import Ended, run_process, sweep
from validation.reproduction.runs import Run, choose_runs
from validation.reproduction.shipped import usual_seconds
from validation.reproduction.stamp import stamp_of
from validation.wording import counted

__all__ = [
    "FAILED",
    "KEPT",
    "NEW",
    "NOT_RUN",
    "Outcome",
    "default_folder",
    "run_named",
    "state_of",
    "without",
]

NEW, KEPT, NOT_RUN, FAILED = "new", "kept", "not run", "failed"
_MISSING = 3  # the exit code of a command that could not run something


class Outcome(NamedTuple):
    """What became of a run: `report` is its result, as --json writes it, unless there is none.

    A run in which a check failed is FAILED with its report; `stamp` is that of the making.
    """

    run: Run
    state: str  # NEW, KEPT, NOT_RUN or FAILED
    seconds: float
    report: Mapping[str, Any] | None
    said: str = ""  # unless all went well: how it ended
    stamp: Mapping[str, Any] | None = None


def default_folder() -> Path:
    """The place of results in the user's cache; raises Unavailable where there is no cache."""
    return results_folder("reproduction")


def run_named(
    names: Sequence[str] = (),
    progress: Progress = silent,
    fresh: bool = False,
    folder: Path | None = None,
) -> tuple[Outcome, ...]:
    """Do the runs of these names (all without one), in the order of the list, and keep what they found.

    A result that the same code, libraries and command have left in `folder` (by default in the user's cache)
    is taken from there, unless `fresh`. A run that fails is told in its Outcome, and the others go on.
    Raises InputError for an unknown name and for a folder that cannot be written to; Interrupted from the
    keyboard, which keeps what is done.
    """
    runs = choose_runs(names)
    place = default_folder() if folder is None else folder
    _make(place)
    outcomes: list[Outcome] = []
    try:
        for number, run in enumerate(runs):
            outcomes.append(_do(run, place, fresh, progress, number, len(runs)))
    except KeyboardInterrupt:
        done = counted(len(outcomes), "run")
        raise Interrupted(
            f"interrupted; the results of {done} of {len(runs)} are kept: the same command goes on there."
        ) from None
    return tuple(outcomes)


def state_of(run: Run, folder: Path) -> str:
    """Whether a result of `run` is kept there, or one of other code, libraries or command, in words."""
    found = read_kept(run, folder)
    if found is None:
        return "none"
    here = stamp_of(run)
    other = [name for name in here if found.stamp.get(name) != here[name]]
    return f"out of date ({', '.join(other)})" if other else KEPT


def _do(run: Run, folder: Path, fresh: bool, progress: Progress, number: int, total: int) -> Outcome:
    """Take what is kept, or make it, alone in the folder; what another one made meanwhile is kept too."""
    progress(run.name, number, total)
    stamp = stamp_of(run)
    if not fresh and (kept := _kept(run, stamp, folder)):
        return kept
    told: list[bool] = []

    def waiting() -> None:
        if not told:
            told.append(True)
            announce(f"{run.name} waits for another process that is at work in {folder}.")
        progress(f"{run.name} waits for another process", number, total)

    seconds = usual_seconds(run)
    usual = "" if seconds is None else f", usually {counted(max(1, round(seconds / 60)), 'minute')}"
    with alone(folder, waiting) as held:
        if held:
            sweep(run, folder)
        if not fresh and (kept := _kept(run, stamp, folder)):
            return kept
        keep = _keep(run, stamp, folder, fresh)
        ended = run_process(run, folder, keep, lambda _: progress(f"{run.name}{usual}", number, total), held)
        outcome = _judge(run, stamp, ended)
        if outcome.report is not None:
            write_kept(run, folder, Kept(stamp, ended.seconds, outcome.report))
            shutil.rmtree(keep, ignore_errors=True)
    announce(f"{run.name} {outcome.state}, {ended.seconds:.0f} s{': ' * bool(outcome.said)}{outcome.said}")
    return outcome


def _kept(run: Run, stamp: Mapping[str, Any], folder: Path) -> Outcome | None:
    found = read_kept(run, folder)
    if found is None or found.stamp != stamp:
        return None
    said = _failures(found.report)
    return Outcome(run, FAILED if said else KEPT, found.seconds, found.report, said, stamp)


def _judge(run: Run, stamp: Mapping[str, Any], ended: Ended) -> Outcome:
    """What became of a run that has ended."""
    if ended.report is None:
        state = NOT_RUN if ended.code == _MISSING else FAILED
        how = f"code {ended.code}" if ended.code else "no report"
        said = f"{how}, after {ended.last or 'no output'}"
        if state == NOT_RUN and run.needs:
            said += f' It needs: pip install "sinkscope[{",".join(run.needs)}]".'
        return Outcome(run, state, ended.seconds, None, said)
    if stamp_of(run) != stamp:
        said = "the code or a library was changed while it ran"
        return Outcome(run, FAILED, ended.seconds, None, said)
    report = without(ended.report, run.leave_out)
    said = _failures(report)
    return Outcome(run, FAILED if said else NEW, ended.seconds, report, said, stamp)


def _failures(report: Mapping[str, Any]) -> str:
    """The checks of a report that failed, in words; nothing where all held."""
    failed = [part["key"] for part in report["parts"] if part["kind"] == "check" and not part["ok"]]
    return f"{counted(len(failed), 'check')} failed ({', '.join(dict.fromkeys(failed))})" if failed else ""


def _keep(run: Run, stamp: Mapping[str, Any], folder: Path, fresh: bool) -> Path:
    """A folder for what a run keeps for itself while it is not done; those of other stamps are removed."""
    digest = hashlib.sha256(json.dumps(stamp, sort_keys=True).encode()).hexdigest()[:12]
    place = folder / "unfinished" / f"{run.name}-{digest}"
    for other in place.parent.glob(f"{run.name}-{'?' * len(digest)}"):
        if fresh or other != place:
            shutil.rmtree(other, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    return place


def without(report: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The report without the tables of these keys."""
    left_out = set(keys)
    return {**report, "parts": [part for part in report["parts"] if part["key"] not in left_out]}


def _make(folder: Path) -> None:
    """See to it that there is a folder that can be written to, before any work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("ab"):
            pass
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        reject(
            "the folder of results",
            expected="one that can be written to",
            found=f"{str(folder)!r} ({said})",
            todo="Name another one (reproduce --out), or another cache (SINKSCOPE_CACHE).",
        )
