"""The named runs, as runs.toml lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from oracle._checks import reject

__all__ = ["Run", "choose_runs", "read_runs"]

_FILE = Path(__file__).with_name("runs.toml")
_LISTS = ("command", "needs", "varies", "elsewhere", "leave_out")


@dataclass(frozen=True)
class Run:
    """One run: what stands after `sinkscope`, what it is for, and what may differ from a shipped result."""

    name: str
    command: tuple[str, ...]
    about: str
    minutes: float | None = None  # an estimate, where no result is shipped that says it
    needs: tuple[str, ...] = ()
    varies: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    reads_results: bool = False


@cache
def read_runs(path: Path = _FILE) -> tuple[Run, ...]:
    """The runs in their order; a file that is wrong raises InputError with the run and the entry."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        _refuse(path.name, getattr(error, "strerror", None) or str(error))
    listed = data.get("run")
    if data.keys() != {"run"} or not isinstance(listed, list):
        _refuse(path.name, f"{', '.join(data) or 'nothing'} at the top")
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


def _run(entry: Any, file: str) -> Run:
    if not isinstance(entry, dict):
        _refuse(file, repr(entry))
    known = {field.name for field in fields(Run)}
    name = entry.get("name", "a run without a name")
    if wrong := sorted(entry.keys() - known):
        _refuse(file, f"{', '.join(wrong)} in {name}")
    if missing := sorted({"name", "command", "about"} - entry.keys()):
        _refuse(file, f"no {', '.join(missing)} in {name}")
    for key, value in entry.items():
        if not _is_right(key, value):
            _refuse(file, f"{key} = {value!r} in {name}")
    told: dict[str, Any] = {key: tuple(value) if key in _LISTS else value for key, value in entry.items()}
    return Run(**told)


def _is_right(key: str, value: Any) -> bool:
    """Whether an entry is of its kind; true and false are no numbers."""
    if key in _LISTS:
        return isinstance(value, list) and all(isinstance(word, str) for word in value)
    if key == "reads_results":
        return isinstance(value, bool)
    if key == "minutes":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return isinstance(value, str) and value != ""


def _refuse(file: str, found: str) -> NoReturn:
    reject(
        file,
        expected="runs, each with a name of its own and the entries that the file explains",
        found=found,
        todo="Mend the file.",
    )
