"""Claims on another model: what stands in its place here, and whether depth alone decides."""

from __future__ import annotations

from collections.abc import Mapping

from validation.claims import Claim, figure, read_claims
from validation.ledger.finding import FAILS, NOT_JUDGED, NOT_TESTABLE, UNSPLIT, Finding, verdict
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
    return Finding(said, verdict(inside, median >= claim.number("flat")), UNSPLIT)


def depth_alone(claim: Claim, results: Results) -> Finding:
    """Whether the deeper of two models loses more of its sink share, on the same texts at equal T."""
    layers = claim.number("layers")
    runs = {depth: results[name] for name, depth in layers.items()}
    for depth, run in runs.items():
        if (run.provenance["model_sizes"]["layers"], run.provenance["layers"]) != (depth, "all"):
            run.refuse(f"all {depth} layers of a model of {depth}", f"{_size(run)}")
    alike = ("texts_sha256", "convention", "queries")
    if len({tuple(run.provenance[key] for key in alike) for run in runs.values()}) > 1:
        runs[max(runs)].refuse("the texts, the convention and the queries of the other model", "others")
    kept = {depth: _kept(run) for depth, run in runs.items()}
    shallow, deep = min(runs), max(runs)
    equal = [T for T in kept[shallow] if T in kept[deep]]
    if not equal:
        runs[deep].refuse("a T of the other model", ", ".join(map(str, kept[deep])))
    each = "; ".join(
        f"{', '.join(f'{kept[depth][T]:.2f}' for T in equal)} in {_size(runs[depth])}, sink set "
        f"{runs[depth].provenance['sink']}"
        for depth in (shallow, deep)
    )
    lengths = f"T {', '.join(map(str, equal))}"
    published = figure("median_value_norm").value / figure("median_attention").value
    said = (
        f"of the median sink share of all content queries the value norm leaves, at {lengths}: {each}; the "
        "two differ in more than depth, and why one loses less is not asked; published "
        f"{published:.2f} in {claim.figure('depth_to').value:.0f} layers, of displayed rows, which are of "
        "another kind and decide nothing. Whether the effect carries over to that model is not tested"
    )
    less = all(kept[deep][T] > kept[shallow][T] for T in equal)
    return Finding(said, FAILS if less else NOT_TESTABLE, UNSPLIT, f"{lengths} in both")


def another_model(claim: Claim, results: Results) -> Finding:
    """What stands in the place of a set-up."""
    run = results["validate"]
    sizes, words = run.provenance["model_sizes"], run.row("verdicts", layer="0", weighting="value norm")
    said = (
        f"here {sizes['layers']} layers, {sizes['d_model']} wide, {sizes['layers'] * sizes['heads']} heads, "
        f"{len(run.provenance['T'])} sentences of our own, {words['words']:,} words with a row"
    )
    return Finding(said, NOT_TESTABLE, NOT_JUDGED)


def another_link(claim: Claim, results: Results) -> Finding:
    """The links that this model displays of the same words, for the eye."""
    rows = results["validate"].rows("links_named")
    links = ", ".join(
        f"{row['word']} -> {row['link']} {row['shown']:.3f} (layer {row['layer']}, "
        f"{percent(row['sink_share'])} sink)"
        for row in rows[:3]
    )
    return Finding(f"another model displays {links}", NOT_TESTABLE, NOT_JUDGED)


def code(claim: Claim, results: Results) -> Finding:
    """Nothing of somebody else's code can be seen here."""
    claims = read_claims()
    judged = sum(bool(one.runs) for one in claims)
    said = f"that code is not at hand; of the {len(claims)} rows here {judged} are read from results of runs"
    return Finding(said, NOT_TESTABLE, NOT_JUDGED)


def _kept(run: Result) -> Mapping[int, float]:
    """What the value norm leaves of the median sink share of all content queries, by T."""
    return {
        int(run.number(row, "T")): run.number(row, "median_value_norm") / run.number(row, "median_attention")
        for row in run.rows("lengths")
    }


def _size(run: Result) -> str:
    about = run.provenance
    return f"{about['model']} ({about['layers']} {about['model_sizes']['layers']} layers)"
