"""The figures of displayed rows as this model has them, in the two readings of the study."""

from __future__ import annotations

from collections.abc import Mapping

from validation.claims import Claim
from validation.ledger.result import Result
from validation.wording import percent

__all__ = ["READINGS", "changes", "pair_words", "readings"]

READINGS = {"one_set": "all layers as one set", "each_layer": "each layer by itself"}
Pair = tuple[float, float]  # before and after, or under two norms


def changes(claim: Claim, run: Result) -> Mapping[str, Pair]:
    """The claim's two figures, before and after, as this model has them in both readings."""
    before, after = (readings(run, one.name) for one in claim.figures)
    return {key: (before[key], after[key]) for key in READINGS}


def readings(run: Result, figure: str) -> dict[str, float]:
    """A figure of the table beside the published ones, by its name there, in both readings."""
    row = run.row("published", figure=figure)
    return {key: run.number(row, key) for key in READINGS}


def pair_words(pairs: Mapping[str, Pair]) -> str:
    """Pairs of shares in words, reading by reading."""
    return "; ".join(
        f"{READINGS[key]}: {percent(one)} to {percent(other)}" for key, (one, other) in pairs.items()
    )
