"""What a judge says of a claim: what was found, the floor beside it, and one of four verdicts."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "EXACT",
    "FAILS",
    "HOLDS",
    "IN_DIRECTION",
    "NOT_JUDGED",
    "NOT_TESTABLE",
    "UNSPLIT",
    "VERDICTS",
    "Finding",
    "verdict",
]

HOLDS, IN_DIRECTION, FAILS = "holds", "holds in direction", "fails"
NOT_TESTABLE = "not testable here"
VERDICTS = (HOLDS, IN_DIRECTION, FAILS, NOT_TESTABLE)

# What stands for a floor where the evidence has none, and why.
EXACT = "exact"
NOT_JUDGED = "no floor: nothing is judged"
UNSPLIT = "no floor: the texts are not split"


class Finding(NamedTuple):
    """The part of a row of the ledger that is computed."""

    found: str
    verdict: str
    floor: str
    lengths: str | None = None  # T of what was judged; None: that of the runs, "": there is none


def verdict(holds: bool, in_direction: bool = False) -> str:
    """The verdict of a rule that always decides."""
    return HOLDS if holds else IN_DIRECTION if in_direction else FAILS
