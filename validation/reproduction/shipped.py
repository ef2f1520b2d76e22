"""What there is to say of the shipped results before anything is run: how long they took, by which code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from validation.report.document import Note
from validation.reproduction.kept import SHIPPED, read_kept
from validation.reproduction.runs import Run, choose_runs
from validation.reproduction.stamp import code_digest
from validation.wording import counted

__all__ = ["other_code", "shipped_by", "usual_seconds"]

_NONE, _SAME, _OTHER = "no", "by this code", "by other code"


def usual_seconds(run: Run, folder: Path = SHIPPED) -> float | None:
    """How long a run takes, by its shipped result, else by the estimate of runs.toml; None without both."""
    found = read_kept(run, folder)
    if found is not None:
        return found.seconds
    return None if run.minutes is None else 60 * run.minutes


def shipped_by(run: Run, code: str, folder: Path = SHIPPED) -> str:
    """Whether a result of `run` is shipped, and which code made it; `code` is the digest of this one."""
    found = read_kept(run, folder)
    if found is None:
        return _NONE
    same = found.stamp.get("code") == code and found.stamp.get("command") == list(run.command)
    return _SAME if same else _OTHER


def other_code(names: Sequence[str], folder: Path = SHIPPED) -> tuple[Note, ...]:
    """A sentence on those results that other code has made, if there are any; every edit of code is another.

    It is no failure: whether their figures still come out, only a run can say.
    """
    code = code_digest()
    runs = choose_runs(names) if names else ()
    states = {run.name: shipped_by(run, code, folder) for run in runs}
    other = [name for name, state in states.items() if state == _OTHER]
    if not other:
        return ()
    there = sum(state != _NONE for state in states.values())
    said = (
        f"Made by other code than this: {len(other)} of {counted(there, 'shipped result')} "
        f"({', '.join(other)}); figures not made again since. sinkscope reproduce does that."
    )
    return (Note("other_code", said),)
