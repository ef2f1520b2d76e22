"""Rules on the norms of special tokens."""

from __future__ import annotations

from collections.abc import Mapping

from validation.claims import Claim
from validation.ledger.finding import UNSPLIT, Finding, verdict
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = ["large_weights_small_norms", "norm_below_one", "norm_ratio"]


def norm_ratio(claim: Claim, results: Results) -> Finding:
    """The median value-norm ratio of a special token."""
    token = claim.number("token")
    row, published = _norms(results["validate"], token), claim.figure(f"ratio_{token}").value
    median = results["validate"].number(row, "median")
    said = f"median {median:.3f} over {row['n']:,} texts and heads (published {published:.2f})"
    return Finding(said, verdict(abs(median - published) <= claim.number("within"), median < 1), UNSPLIT)


def norm_below_one(claim: Claim, results: Results) -> Finding:
    """How often the value-norm ratio of a special token is below one."""
    token = claim.number("token")
    row, published = _norms(results["validate"], token), claim.figure(f"below_{token}").value
    part = results["validate"].number(row, "share_below_one")
    said = f"{row['below_one']:,} of {row['n']:,}, {percent(part)} (published {percent(published)})"
    return Finding(said, verdict(abs(part - published) <= claim.number("within"), part > 0.5), UNSPLIT)


def large_weights_small_norms(claim: Claim, results: Results) -> Finding:
    """Special tokens get more than an even share, with shorter values than content."""
    run = results["validate"]
    median = run.number(run.row("headline", weighting="attention"), "median")
    even = 2 / min(run.provenance["T"])  # [CLS] and [SEP] of the shortest text
    ratios = {token: run.number(_norms(run, token), "median") for token in ("[CLS]", "[SEP]")}
    norms = ", ".join(f"{token} {ratio:.3f}" for token, ratio in ratios.items())
    said = f"median sink share {percent(median)}; median norm ratios {norms}"
    some = median > even and all(ratio < 1 for ratio in ratios.values())
    return Finding(said, verdict(False, some), f"equal weights {percent(even)}, norm ratio 1")


def _norms(run: Result, token: str) -> Mapping[str, float]:
    return run.row("value_norm_ratio", layer="all", token=token)
