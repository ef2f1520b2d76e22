"""The computed part of the ledger: the shipped result of the run `claims`, which nobody edits by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oracle._checks import reject
from validation.ledger.finding import VERDICTS, Finding
from validation.ledger.result import Result
from validation.report.as_json import as_data
from validation.report.document import Document
from validation.reproduction import choose_runs
from validation.reproduction.kept import SHIPPED, Kept, read_kept, write_kept
from validation.reproduction.stamp import stamp_of

__all__ = ["TABLE", "read_findings", "write_findings"]

TABLE = "ledger"
"""The key of the table that holds every finding."""

_NAME = "claims"


def read_findings(folder: Path = SHIPPED) -> Mapping[str, Finding]:
    """Findings by the id of their claim; none where nothing is shipped or a file is not what was written.

    Raises InputError for a verdict that there is not.
    """
    (run,) = choose_runs([_NAME])
    kept = read_kept(run, folder)
    if kept is None:
        return {}
    rows = Result(_NAME, kept.report).rows(TABLE)
    found = {row["id"]: Finding(**{name: row[name] for name in Finding._fields}) for row in rows}
    for name, finding in found.items():
        if finding.verdict not in VERDICTS:
            reject(
                "the ledger",
                expected=f"verdicts from {', '.join(VERDICTS)}",
                found=f"{finding.verdict!r} of claim {name}",
                todo="Write it again: sinkscope claims --write.",
            )
    return found


def write_findings(document: Document, folder: Path = SHIPPED) -> None:
    """Make `document`, with its table of findings, the shipped result of the run."""
    (run,) = choose_runs([_NAME])
    write_kept(run, folder, Kept(stamp_of(run), 0.0, as_data(document)), "--write")
