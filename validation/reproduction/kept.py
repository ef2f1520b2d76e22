"""Results as files: the report of a run with its stamp and its hash, whole or not there at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from oracle._checks import reject
from validation.report import files
from validation.reproduction.runs import Run, choose_runs

__all__ = ["SHIPPED", "Kept", "load_result", "read_kept", "write_kept"]

SHIPPED = Path(__file__).parents[1] / "results"
"""The results that the package carries: what the README and the ledger of claims are made from."""

_DEPTH = 5  # down to the rows of a table, each on a line of its own, so that a change can be read


class Kept(NamedTuple):
    """A result with what it belongs to and how many seconds it took."""

    stamp: Mapping[str, Any]
    seconds: float
    report: Mapping[str, Any]  # as --json writes it


def load_result(name: str, folder: Path = SHIPPED) -> dict[str, Any]:
    """The report of a named run, as --json wrote it: the one that the package carries, or another folder's.

    Raises InputError for an unknown name, and where no result stands or one that is not what was written.
    """
    (run,) = choose_runs([name])
    found = read_kept(run, folder)
    if found is None:
        state = "a file that is not what was written" if _place(run, folder).exists() else "none"
        reject(
            f"the result of {name}",
            expected=f"{_place(run, folder).name} in the folder {folder.name}",
            found=state,
            todo=f"Make it: sinkscope reproduce {name} --publish.",
        )
    return dict(found.report)


def read_kept(run: Run, folder: Path) -> Kept | None:
    """The result of `run` in a folder; None where there is none, or one that is cut short or was changed."""
    try:
        data = json.loads(_place(run, folder).read_text(encoding="ascii"))
        found = Kept(dict(data["stamp"]), float(data["seconds"]), dict(data["report"]))
        whole = data["run"] == run.name and data["sha256"] == _sha256(found.report)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if whole else None


def write_kept(run: Run, folder: Path, kept: Kept, option: str = "--out") -> None:
    """Put a result there in one step. Raises InputError, with the `option`, where that cannot be done."""
    data = {
        "run": run.name,
        "stamp": kept.stamp,
        "seconds": round(kept.seconds, 1),
        "sha256": _sha256(kept.report),
        "report": kept.report,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        reject(
            option,
            expected="a folder that can be written to",
            found=f"{str(folder)!r} ({said})",
            todo="Name another folder.",
        )
    files.write_whole(str(_place(run, folder)), f"{_spread(data, _DEPTH)}\n".encode("ascii"), option=option)


def _place(run: Run, folder: Path) -> Path:
    return folder / f"{run.name}.json"


def _sha256(report: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(report, sort_keys=True).encode("ascii")).hexdigest()


def _spread(value: Any, depth: int) -> str:
    """Strict JSON with the members of the outer `depth` levels on lines of their own."""
    if depth and value and isinstance(value, (Mapping, list, tuple)):
        if isinstance(value, Mapping):
            members = [f"{json.dumps(key)}:{_spread(item, depth - 1)}" for key, item in value.items()]
            start, end = "{", "}"
        else:
            members = [_spread(item, depth - 1) for item in value]
            start, end = "[", "]"
        return "\n".join([start, ",\n".join(members), end])
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
