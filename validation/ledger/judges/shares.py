"""Rules on the sink shares of displayed rows, from the norm-weighting study, each in two readings."""

from __future__ import annotations

from typing import NamedTuple

from validation.claims import Claim
from validation.ledger.finding import Finding
from validation.ledger.judges._readings import (
    READINGS,
    Reading,
    by_both,
    changes,
    is_vacuous,
    medians,
    pair_words,
    readings,
)
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = [
    "displayed_sink",
    "falls_alike",
    "none_left",
    "same_head",
    "some_get_worse",
    "study_verdict",
    "transformed_alike",
    "worst_stays",
]


class _Moved(NamedTuple):
    """Displayed rows above 50% under attention and under a norm, of how many, and the worst row then."""

    rows: int
    before: int
    after: int
    worst: float


_NORMS = {"value norm": "words_value_norm", "transformed": "words_transformed_norm"}


def falls_alike(claim: Claim, results: Results) -> Finding:
    """A figure falls by the published factor."""
    pairs = changes(claim, results["validate"])
    low, high = claim.number("low"), claim.number("high")
    before, after = (percent(claim.figure(claim.number(end)).value) for end in ("before", "after"))
    each = {
        key: Reading(low * before <= after <= high * before, after < before, is_vacuous(claim, before))
        for key, (before, after) in pairs.items()
    }
    return by_both(f"{pair_words(pairs)} (published {before} to {after})", each)


def worst_stays(claim: Claim, results: Results) -> Finding:
    """The worst row falls, and stays bad."""
    pairs, bad = changes(claim, results["validate"]), claim.number("bad")
    each = {
        key: Reading(bad < after < before, after > bad, is_vacuous(claim, before))
        for key, (before, after) in pairs.items()
    }
    return by_both(pair_words(pairs), each)


def none_left(claim: Claim, results: Results) -> Finding:
    """Rows that were there are all gone."""
    pairs = changes(claim, results["validate"])
    each = {
        key: Reading(after == 0, after < before, is_vacuous(claim, before))
        for key, (before, after) in pairs.items()
    }
    return by_both(pair_words(pairs), each)


def some_get_worse(claim: Claim, results: Results) -> Finding:
    """Some rows get worse under the norm; by how much is not in the result."""
    run, published = results["validate"], claim.figure("worse_value_norm")
    parts, before = readings(run, published.name), medians(run)
    by = percent(claim.figure("worse_by").value, ".0%")
    words = ", ".join(f"{percent(part)} with {READINGS[key]}" for key, part in parts.items())
    grown = "by how much is not in the result" if any(parts.values()) else "so that none grows at all"
    said = f"rows that get worse: {words} (published {percent(published.value)}); {grown} (published {by})"
    each = {key: Reading(False, part > 0, is_vacuous(claim, before[key])) for key, part in parts.items()}
    return by_both(said, each)


def transformed_alike(claim: Claim, results: Results) -> Finding:
    """The output projection hardly changes the median share."""
    before, value, full = (
        medians(results["validate"], name) for name in ("attention", "value norm", "transformed")
    )
    pairs = {key: (value[key], full[key]) for key in READINGS}
    each = {
        key: Reading(
            abs(one - other) <= claim.number("within"),
            max(one, other) < before[key],
            is_vacuous(claim, before[key]),
        )
        for key, (one, other) in pairs.items()
    }
    return by_both(f"value norm against transformed: {pair_words(pairs)}", each)


def same_head(claim: Claim, results: Results) -> Finding:
    """How often the norm opens the head that attention opens."""
    run, published = results["validate"], claim.figure("same_head_value_norm")
    parts, before = readings(run, published.name), medians(run)
    said = ", ".join(f"{percent(part)} with {READINGS[key]}" for key, part in parts.items())
    each = {
        key: Reading(
            abs(part - published.value) <= claim.number("within"),
            part > claim.number("most"),
            is_vacuous(claim, before[key]),
        )
        for key, part in parts.items()
    }
    return by_both(f"{said} (published {percent(published.value)})", each)


def study_verdict(claim: Claim, results: Results) -> Finding:
    """What the study's rule says of each reading, under both norms."""
    run, said, each = results["validate"], [], {}
    for key, words in READINGS.items():
        moves = {name: _moved(run, name, key) for name in _NORMS}
        stays = {name: one.after > 0 for name, one in moves.items()}
        vacuous = all(is_vacuous(claim, one.before / one.rows) for one in moves.values())
        each[key] = Reading(all(stays.values()), stays["value norm"], vacuous)
        said += [
            f"{words}, {name}: displayed rows above 50% {one.before:,} to {one.after:,} of {one.rows:,}, "
            f"worst {percent(one.worst)}"
            for name, one in moves.items()
        ]
    return by_both("; ".join(said), each)


def displayed_sink(claim: Claim, results: Results) -> Finding:
    """How much of a displayed row goes to the sink."""
    run, published = results["validate"], claim.figure("displayed_median").value
    median, worst = medians(run), readings(run, "worst row, attention")
    low, high = (claim.number(name) * published for name in ("low", "high"))
    each = {
        key: Reading(
            low <= median[key] <= high and worst[key] > claim.number("bad"),
            worst[key] > claim.number("half"),
            is_vacuous(claim, median[key]),
        )
        for key in READINGS
    }
    said = "; ".join(
        f"{words}: median {percent(median[key])}, worst {percent(worst[key])}"
        for key, words in READINGS.items()
    )
    return by_both(said, each)


def _moved(run: Result, norm: str, reading: str) -> _Moved:
    """Layer by layer the study's verdict is taken; as one set its rule comes to whether a row is left."""
    if reading == "each_layer":
        row = run.row("verdicts", layer="sum", weighting=norm)
        rows, before, after = (
            int(run.number(row, name)) for name in ("words", "above_half_before", "above_half_after")
        )
        if (row["verdict"] == "not collapsed") != (after > 0):
            run.refuse(f"a verdict on {norm} that fits {after} rows above 50%", repr(row["verdict"]))
        return _Moved(rows, before, after, run.number(row, "worst"))
    layers = f"0-{run.provenance['model_sizes']['layers'] - 1}"
    first, then = (run.row(table, layers=layers) for table in ("words_attention", _NORMS[norm]))
    before, after = (int(run.number(row, "above_half")) for row in (first, then))
    return _Moved(int(run.number(first, "words")), before, after, run.number(then, "worst"))
