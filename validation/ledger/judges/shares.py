"""Rules on the sink shares of displayed rows, from the norm-weighting study."""

from __future__ import annotations

from validation.claims import Claim
from validation.ledger.finding import NOT_TESTABLE, Finding, verdict
from validation.ledger.judges._readings import READINGS, changes, pair_words, readings
from validation.ledger.result import Results
from validation.wording import percent

__all__ = [
    "displayed_sink",
    "falls_alike",
    "none_left",
    "same_head",
    "some_get_worse",
    "study_verdict",
    "worst_stays",
]


def falls_alike(claim: Claim, results: Results) -> Finding:
    """A figure falls by the published factor, in both readings."""
    pairs = changes(claim, results["validate"])
    low, high = claim.number("low"), claim.number("high")
    factors = [after / before if before else float("nan") for before, after in pairs.values()]
    before, after = (percent(one.value) for one in claim.figures)
    said = f"{pair_words(pairs)} (published {before} to {after})"
    lower = all(after < before for before, after in pairs.values())
    return Finding(said, verdict(all(low <= factor <= high for factor in factors), lower))


def worst_stays(claim: Claim, results: Results) -> Finding:
    """The worst row falls, and stays bad."""
    pairs, bad = changes(claim, results["validate"]), claim.number("bad")
    so = [bad < after < before for before, after in pairs.values()]
    return Finding(pair_words(pairs), verdict(all(so), any(so)))


def none_left(claim: Claim, results: Results) -> Finding:
    """Rows that were there are all gone."""
    pairs = changes(claim, results["validate"])
    said = pair_words(pairs)
    if not any(before for before, _ in pairs.values()):
        return Finding(f"no such row to begin with: {said}", NOT_TESTABLE)
    gone = not any(after for _, after in pairs.values())
    fewer = all(after <= before for before, after in pairs.values())
    return Finding(said, verdict(gone, fewer and any(after < before for before, after in pairs.values())))


def some_get_worse(claim: Claim, results: Results) -> Finding:
    """Some rows get worse under the norm, about as many as published."""
    published = claim.figure("worse_value_norm")
    parts = readings(results["validate"], published.name)
    low, high = (claim.number(name) * published.value for name in ("low", "high"))
    each = ", ".join(f"{percent(part)} with {READINGS[key]}" for key, part in parts.items())
    said = f"rows that get worse: {each} (published {percent(published.value)})"
    alike = all(low <= part <= high for part in parts.values())
    return Finding(said, verdict(alike, any(parts.values())))


def same_head(claim: Claim, results: Results) -> Finding:
    """How often the norm opens the head that attention opens."""
    published = claim.figure("same_head_value_norm")
    parts = readings(results["validate"], published.name)
    said = ", ".join(f"{percent(part)} with {READINGS[key]}" for key, part in parts.items())
    part = parts["one_set"]
    alike = abs(part - published.value) <= claim.number("within")
    return Finding(f"{said} (published {percent(published.value)})", verdict(alike, part > 0.5))


def study_verdict(claim: Claim, results: Results) -> Finding:
    """What the study itself says by its rule."""
    run = results["validate"]
    said, stays = [], []
    for name in ("value norm", "transformed"):
        row = run.row("verdicts", layer="sum", weighting=name)
        stays.append(row["verdict"] == "not collapsed")
        said.append(
            f"{name}: {row['verdict']}, {row['above_half_after']:,} displayed rows above 50% after "
            f"{row['above_half_before']:,}, worst {percent(run.number(row, 'worst'))}"
        )
    return Finding("; ".join(said), verdict(all(stays), any(stays)))


def displayed_sink(claim: Claim, results: Results) -> Finding:
    """How much of a displayed row goes to the sink."""
    median = readings(results["validate"], "median sink share, attention")
    worst = readings(results["validate"], "worst row, attention")
    published = claim.figure("displayed_median").value
    low, high = (claim.number(name) * published for name in ("low", "high"))
    holds = all(low <= median[key] <= high and worst[key] > claim.number("bad") for key in READINGS)
    each = "; ".join(
        f"{words}: median {percent(median[key])}, worst {percent(worst[key])}"
        for key, words in READINGS.items()
    )
    return Finding(each, verdict(holds, any(value > 0.5 for value in worst.values())))
