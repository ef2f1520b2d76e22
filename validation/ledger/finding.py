"""What a judge says of a claim: what was found, the floor beside it, and one of four verdicts."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FAILS", "HOLDS", "IN_DIRECTION", "NOT_TESTABLE", "NO_FLOOR", "VERDICTS", "Finding", "verdict"]

HOLDS, IN_DIRECTION, FAILS = "holds", "holds in direction", "fails"
NOT_TESTABLE = "not testable here"
VERDICTS = (HOLDS, IN_DIRECTION, FAILS, NOT_TESTABLE)
NO_FLOOR = "none"


class Finding(NamedTuple):
    """The part of a row of the ledger that is computed."""

    found: str
    verdict: str
    floor: str = NO_FLOOR
    lengths: str = ""  # T of the runs that were judged, where they have one


def verdict(holds: bool, in_direction: bool = False) -> str:
    """The verdict of a rule that always decides."""
    return HOLDS if holds else IN_DIRECTION if in_direction else FAILS
