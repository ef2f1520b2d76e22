"""Claims on another model: what stands in its place here, and what depth alone can explain."""

from __future__ import annotations

from validation.claims import Claim, figure
from validation.ledger.finding import FAILS, NOT_TESTABLE, Finding, verdict
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = ["another_link", "another_model", "code", "depth_alone", "rollout"]


def rollout(claim: Claim, results: Results) -> Finding:
    """How flat the rows of attention rollout are."""
    run = results["validate"]
    row = run.row("rollout", layers=f"0-{run.provenance['model_sizes']['layers'] - 1}")
    least, median, most = (run.number(row, name) for name in ("least", "median", "most"))
    within = claim.number("within")
    inside = (
        least >= claim.figure("rollout_least").value - within
        and most <= claim.figure("rollout_most").value + within
    )
    said = f"{least:.3f} to {most:.3f}, median {median:.3f}, over {row['rows']:,} rows"
    return Finding(said, verdict(inside, median >= claim.number("flat")))


def depth_alone(claim: Claim, results: Results) -> Finding:
    """Whether a network of the published depth shows the effect more strongly than that model."""
    before, after = figure("median_attention").value, figure("median_value_norm").value
    kept = {name: _kept(results[name]) for name in claim.runs}
    own, *others = claim.runs
    layers = claim.number("layers")
    beside = ", ".join(f"{kept[name]:.2f} in {_size(results[name])}" for name in others)
    said = (
        f"of the median sink share the value norm leaves {kept[own]:.2f} in the first {layers} layers of "
        f"{results[own].provenance['model']}, {after / before:.2f} in the published {layers} layers; {beside}"
    )
    return Finding(said, FAILS if kept[own] < after / before else NOT_TESTABLE)


def another_model(claim: Claim, results: Results) -> Finding:
    """What stands in the place of a set-up."""
    run = results["validate"]
    sizes, words = run.provenance["model_sizes"], run.row("verdicts", layer="0", weighting="value norm")
    said = (
        f"here {sizes['layers']} layers, {sizes['d_model']} wide, {sizes['layers'] * sizes['heads']} heads, "
        f"{len(run.provenance['T'])} sentences of our own, {words['words']:,} words with a row"
    )
    return Finding(said, NOT_TESTABLE)


def another_link(claim: Claim, results: Results) -> Finding:
    """The links that this model displays of the same words, for the eye."""
    rows = results["validate"].rows("links_named")
    links = ", ".join(
        f"{row['word']} -> {row['link']} {row['shown']:.3f} ({percent(row['sink_share'])} sink)"
        for row in rows[:3]
    )
    return Finding(f"another model displays in its last layer: {links}", NOT_TESTABLE)


def code(claim: Claim, results: Results) -> Finding:
    """Nothing of somebody else's code can be seen here."""
    return Finding("that code is not at hand; every row of this ledger names its own command", NOT_TESTABLE)


def _kept(run: Result) -> float:
    """What the value norm leaves of the median sink share of all content queries."""
    before, after = (
        run.number(run.row("headline", weighting=name), "median") for name in ("attention", "value norm")
    )
    return after / before


def _size(run: Result) -> str:
    return f"all {run.provenance['model_sizes']['layers']} of {run.provenance['model']}"
