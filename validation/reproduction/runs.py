"""The named runs, as runs.toml lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from oracle._checks import reject

__all__ = ["Run", "choose_runs", "read_runs"]

_FILE = Path(__file__).with_name("runs.toml")


@dataclass(frozen=True)
class Run:
    """One run: what stands after `sinkscope`, what it is for, and what may differ from a shipped result."""

    name: str
    command: tuple[str, ...]
    about: str
    minutes: float
    needs: tuple[str, ...] = ()
    varies: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    reads_results: bool = False


@cache
def read_runs(path: Path = _FILE) -> tuple[Run, ...]:
    """The runs in their order; a file that is wrong raises InputError with the run and the entry."""
    with path.open("rb") as file:
        listed = tomllib.load(file)["run"]
    runs = tuple(_run(entry, path.name) for entry in listed)
    names = [run.name for run in runs]
    if twice := {name for name in names if names.count(name) > 1}:
        _refuse(path.name, f"{', '.join(sorted(twice))} twice")
    return runs


def choose_runs(names: Sequence[str]) -> tuple[Run, ...]:
    """The runs of these names, in the order of the list; all without a name. InputError for another name."""
    runs = read_runs()
    unknown = [name for name in names if name not in {run.name for run in runs}]
    if unknown:
        reject(
            "NAME",
            expected=f"some of {', '.join(run.name for run in runs)}",
            found=", ".join(map(repr, unknown)),
            todo="See sinkscope reproduce --list.",
        )
    return tuple(run for run in runs if not names or run.name in names)


def _run(entry: dict[str, Any], file: str) -> Run:
    known = {field.name for field in fields(Run)}
    name = entry.get("name", "a run without a name")
    if wrong := sorted(entry.keys() - known):
        _refuse(file, f"{', '.join(wrong)} in {name}")
    if missing := sorted({"name", "command", "about", "minutes"} - entry.keys()):
        _refuse(file, f"no {', '.join(missing)} in {name}")
    lists: dict[str, Any] = {
        key: tuple(entry.get(key, ())) for key in ("command", "needs", "varies", "leave_out")
    }
    reads = entry.get("reads_results", False)
    return Run(
        name=name, about=entry["about"], minutes=float(entry["minutes"]), reads_results=bool(reads), **lists
    )


def _refuse(file: str, found: str) -> None:
    reject(
        file,
        expected="runs, each with a name of its own and the entries that the file explains",
        found=found,
        todo="Mend the file.",
    )
