"""Small made-up results of commands for the judges of the ledger, and the claims that they are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from validation.claims import read_claims
from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION, NOT_TESTABLE, Finding
from validation.ledger.judging import judge_claim
from validation.ledger.result import Results

CLAIMS = {claim.id: claim for claim in read_claims()}
Case = tuple[str, str, Mapping[str, Any]]  # claim, verdict, results by run


def made_up(
    tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    checks: Mapping[str, bool] | None = None,
    notes: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
    under: Mapping[str, Sequence[str]] | None = None,
    **provenance: Any,
) -> dict[str, Any]:
    """What a command would write with --json; columns are those of the first row of each table.

    `under` are the notes of a table, by its key.
    """
    parts: list[dict[str, Any]] = [
        {
            "kind": "table",
            "key": key,
            "title": (titles or {}).get(key, "made up"),
            "columns": [{"key": column, "heading": column} for column in (rows[0] if rows else ())],
            "rows": list(rows),
            "notes": list((under or {}).get(key, ())),
        }
        for key, rows in (tables or {}).items()
    ]
    parts += [{"kind": "check", "key": key, "ok": ok} for key, ok in (checks or {}).items()]
    parts += [{"kind": "note", "key": key, "text": text} for key, text in (notes or {}).items()]
    return {"command": "made up", "provenance": provenance, "parts": parts}


def judged(claim: str, results: Mapping[str, Any]) -> Finding:
    """The finding of a claim of the ledger on made-up results."""
    return judge_claim(CLAIMS[claim], Results(tuple(results), results.__getitem__))


def both_ways(cases: Sequence[Case], judges: Sequence[str], never: Sequence[str] = ()) -> bool:
    """Whether every judge has a case that bears the claim out and one that does not.

    Those of `never` can do neither: whatever the results, the claim is not testable.
    """
    said = {judge: {verdict for name, verdict, _ in cases if CLAIMS[name].judge == judge} for judge in judges}
    return all(
        words == {NOT_TESTABLE}
        if judge in never
        else words & {HOLDS, IN_DIRECTION} and words & {FAILS, NOT_TESTABLE}
        for judge, words in said.items()
    )
