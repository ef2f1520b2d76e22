"""Rules on the norms of special tokens, and on what the output projection adds."""

from __future__ import annotations

from collections.abc import Mapping

from validation.claims import Claim
from validation.ledger.finding import Finding, verdict
from validation.ledger.judges._readings import READINGS, pair_words, readings
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = ["large_weights_small_norms", "norm_below_one", "norm_ratio", "transformed_alike"]


def norm_ratio(claim: Claim, results: Results) -> Finding:
    """The median value-norm ratio of a special token."""
    row, published = _norms(claim, results["validate"]), claim.figures[0].value
    median = results["validate"].number(row, "median")
    said = f"median {median:.3f} over {row['n']:,} texts and heads (published {published:.2f})"
    return Finding(said, verdict(abs(median - published) <= claim.number("within"), median < 1))


def norm_below_one(claim: Claim, results: Results) -> Finding:
    """How often the value-norm ratio of a special token is below one."""
    row, published = _norms(claim, results["validate"]), claim.figures[0].value
    part = results["validate"].number(row, "share_below_one")
    said = f"{row['below_one']:,} of {row['n']:,}, {percent(part)} (published {percent(published)})"
    return Finding(said, verdict(abs(part - published) <= claim.number("within"), part > 0.5))


def transformed_alike(claim: Claim, results: Results) -> Finding:
    """The output projection hardly changes the median share."""
    table = {
        name: readings(results["validate"], f"median sink share, {name}")
        for name in ("attention", "value norm", "transformed")
    }
    pairs = {key: (table["value norm"][key], table["transformed"][key]) for key in READINGS}
    alike = all(abs(one - other) <= claim.number("within") for one, other in pairs.values())
    lower = all(max(pair) < table["attention"][key] for key, pair in pairs.items())
    return Finding(f"value norm against transformed: {pair_words(pairs)}", verdict(alike, lower))


def large_weights_small_norms(claim: Claim, results: Results) -> Finding:
    """Special tokens get more than an even share, with shorter values than content."""
    run = results["validate"]
    median = run.number(run.row("headline", weighting="attention"), "median")
    even = 2 / min(run.provenance["T"])  # [CLS] and [SEP] of the shortest text
    ratios = {
        token: run.number(run.row("value_norm_ratio", layer="all", token=token), "median")
        for token in ("[CLS]", "[SEP]")
    }
    norms = ", ".join(f"{token} {ratio:.3f}" for token, ratio in ratios.items())
    said = f"median sink share {percent(median)} (equal weights {percent(even)}); median norm ratios {norms}"
    return Finding(said, verdict(False, median > even and all(ratio < 1 for ratio in ratios.values())))


def _norms(claim: Claim, run: Result) -> Mapping[str, float]:
    return run.row("value_norm_ratio", layer="all", token=claim.number("token"))
