"""The computed part of the ledger: the shipped result of the run `claims`, which nobody edits by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oracle._checks import reject
from validation.ledger.finding import VERDICTS
from validation.ledger.result import Result
from validation.report.as_json import as_data
from validation.report.document import Document
from validation.reproduction import choose_runs
from validation.reproduction.kept import SHIPPED, Kept, read_kept, write_kept
from validation.reproduction.stamp import stamp_of
from validation.reproduction.working import without

__all__ = ["TABLE", "read_rows", "write_ledger"]

TABLE = "ledger"
"""The key of the table that holds every row."""

_NAME = "claims"


def read_rows(folder: Path = SHIPPED) -> Mapping[str, Mapping[str, str]] | None:
    """The rows of the ledger by the id of their claim; None where no file is, or not what was written.

    Raises InputError for a verdict that there is not.
    """
    (run,) = choose_runs([_NAME])
    kept = read_kept(run, folder)
    if kept is None:
        return None
    found = {row["id"]: row for row in Result(_NAME, kept.report).rows(TABLE)}
    for name, row in found.items():
        if row["verdict"] not in VERDICTS:
            reject(
                "the ledger",
                expected=f"verdicts from {', '.join(VERDICTS)}",
                found=f"{row['verdict']!r} of claim {name}",
                todo="Write it again: sinkscope reproduce claims --publish.",
            )
    return found


def write_ledger(document: Document, seconds: float, folder: Path = SHIPPED) -> None:
    """Make `document`, with its table of rows, the shipped result of the run."""
    (run,) = choose_runs([_NAME])
    report = without(as_data(document), run.leave_out)
    write_kept(run, folder, Kept(stamp_of(run), seconds, report), "--publish")
