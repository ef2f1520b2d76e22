"""The figures of displayed rows as this model has them, and the one criterion for all claims on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from validation.claims import Claim
from validation.ledger.finding import NOT_TESTABLE, UNSPLIT, Finding, verdict
from validation.ledger.result import Result
from validation.wording import percent

__all__ = ["READINGS", "Reading", "by_both", "changes", "is_vacuous", "medians", "pair_words", "readings"]

READINGS = {"one_set": "all layers as one set", "each_layer": "each layer by itself"}
Pair = tuple[float, float]  # before and after, or under two norms


class Reading(NamedTuple):
    """What a rule says of one reading; one that is vacuous decides nothing."""

    holds: bool
    in_direction: bool
    vacuous: bool = False


def by_both(said: str, each: Mapping[str, Reading]) -> Finding:
    """The criterion of claims.toml on the two readings, with the vacuous ones named beside `said`."""
    telling = [one for one in each.values() if not one.vacuous]
    vacuous = [READINGS[key] for key, one in each.items() if one.vacuous]
    words = f"{said}; decides nothing, being vacuous: {', '.join(vacuous)}" if vacuous else said
    if not telling:
        return Finding(words, NOT_TESTABLE, UNSPLIT)
    holds = not vacuous and all(one.holds for one in telling)
    some = all(one.holds or one.in_direction for one in telling)
    return Finding(words, verdict(holds, some), UNSPLIT)


def is_vacuous(claim: Claim, before: float) -> bool:
    """Whether so little is there under attention that nothing can be said of it."""
    return before < float(claim.number("vacuous"))


def changes(claim: Claim, run: Result) -> Mapping[str, Pair]:
    """The claim's figures before and after, as this model has them in both readings."""
    before, after = (readings(run, claim.figure(claim.number(end)).name) for end in ("before", "after"))
    return {key: (before[key], after[key]) for key in READINGS}


def medians(run: Result, weighting: str = "attention") -> dict[str, float]:
    """The median sink share of the displayed rows, in both readings."""
    return readings(run, f"median sink share, {weighting}")


def readings(run: Result, figure: str) -> dict[str, float]:
    """A figure of the table beside the published ones, by its name there, in both readings."""
    row = run.row("published", figure=figure)
    return {key: run.number(row, key) for key in READINGS}


def pair_words(pairs: Mapping[str, Pair]) -> str:
    """Pairs of shares in words, reading by reading."""
    return "; ".join(
        f"{READINGS[key]}: {percent(one)} to {percent(other)}" for key, (one, other) in pairs.items()
    )
