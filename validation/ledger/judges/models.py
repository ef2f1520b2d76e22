"""Claims on another model: what stands in its place here, and whether depth alone decides."""

from __future__ import annotations

from validation.claims import Claim, figure, read_claims
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
    """Whether the deeper of two models loses more of its sink share, on the same texts."""
    layers = claim.number("layers")
    runs = {depth: results[name] for name, depth in layers.items()}
    for depth, run in runs.items():
        if (run.provenance["model_sizes"]["layers"], run.provenance["layers"]) != (depth, "all"):
            run.refuse(f"all {depth} layers of a model of {depth}", f"{_size(run)}")
    if len({(run.provenance["texts_sha256"], run.provenance["convention"]) for run in runs.values()}) > 1:
        runs[max(runs)].refuse("the texts and the convention of the other model", "others")
    kept = {depth: _kept(run) for depth, run in runs.items()}
    each = ", ".join(f"{kept[depth]:.2f} in {_size(runs[depth])}" for depth in sorted(runs))
    published = figure("median_value_norm").value / figure("median_attention").value
    said = (
        f"of the median sink share of all content queries the value norm leaves {each}; published "
        f"{published:.2f} in {claim.figure('depth_to').value:.0f} layers, of displayed rows, which are of "
        "another kind and decide nothing. Whether the effect carries over to that model is not tested"
    )
    return Finding(said, FAILS if kept[max(kept)] > kept[min(kept)] else NOT_TESTABLE)


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
    claims = read_claims()
    judged = sum(bool(one.runs) for one in claims)
    said = f"that code is not at hand; of the {len(claims)} rows here {judged} are read from results of runs"
    return Finding(said, NOT_TESTABLE)


def _kept(run: Result) -> float:
    """What the value norm leaves of the median sink share of all content queries."""
    before, after = (
        run.number(run.row("headline", weighting=name), "median") for name in ("attention", "value norm")
    )
    return after / before


def _size(run: Result) -> str:
    about = run.provenance
    return f"{about['model']} ({about['layers']} {about['model_sizes']['layers']} layers)"
