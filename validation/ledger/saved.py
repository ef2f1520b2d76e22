"""The computed part of the ledger, as a file of its own beside the written part: nobody edits it by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oracle._checks import reject
from validation.ledger.finding import VERDICTS, Finding
from validation.report.files import write_whole

__all__ = ["FILE", "read_findings", "write_findings"]

FILE = Path(__file__).parents[1] / "claims_found.json"


def read_findings(path: Path = FILE) -> Mapping[str, Finding]:
    """Findings by the id of their claim; InputError for a file that is missing or no such file."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        found = {name: Finding(**entry) for name, entry in data.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        reject(
            path.name,
            expected="what sinkscope claims --write wrote",
            found=getattr(error, "strerror", None) or str(error),
            todo="Write it again.",
        )
    wrong = {name: finding.verdict for name, finding in found.items() if finding.verdict not in VERDICTS}
    if wrong:
        name, said = next(iter(wrong.items()))
        reject(
            path.name,
            expected=f"verdicts from {', '.join(VERDICTS)}",
            found=f"{said!r} of claim {name}",
            todo="Write it again.",
        )
    return found


def write_findings(findings: Mapping[str, Finding], path: Path = FILE) -> None:
    """Write findings in the order of their claims, whole or not at all."""
    data = {name: finding._asdict() for name, finding in findings.items()}
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    write_whole(str(path), text.encode(), option="--write")
