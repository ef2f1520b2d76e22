"""Identities, mutations, arithmetic and agreements of implementations: what can be settled exactly."""

from __future__ import annotations

import math

from validation.claims import Claim
from validation.ledger.finding import Finding, verdict
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = [
    "arithmetic",
    "clark_recipe",
    "display_identity",
    "invariances",
    "laws_hold",
    "port",
    "rows_agree",
    "unit_norms",
    "value_norms_agree",
    "zero_norm",
]

_STAYS = ("constant", "sink score", "offset", "permutation")


def display_identity(claim: Claim, results: Results) -> Finding:
    """A displayed link is its part of the whole row over what the sink leaves."""
    run = results["validate"]
    links = [*run.rows("links_named"), *run.rows("links_most_sink")]
    off = [
        abs(run.number(row, "shown") * (1 - run.number(row, "sink_share")) - run.number(row, "of_row"))
        for row in links
    ]
    most = max(links, key=lambda row: row["shown"] / row["of_row"])
    said = (
        f"{len(links)} links, off by {max(off):.0e} at most; {most['word']} -> {most['link']} is shown as "
        f"{most['shown']:.3f} and is {most['of_row']:.4f} of its row"
    )
    return Finding(said, verdict(max(off) <= claim.number("within")))


def port(claim: Claim, results: Results) -> Finding:
    """Our float32 rows against those of PyTorch."""
    run = results["diff-float32"]
    found, published = _largest(run), claim.figure("port").value
    said = f"attention to {found:.3g} (published {published:g})"
    return Finding(said, verdict(found <= claim.number("times") * published, run.held("diff.bounds")))


def rows_agree(claim: Claim, results: Results) -> Finding:
    """Attention weights of two implementations."""
    found, published = _largest(results["diff-float32"]), claim.figure("two_attention").value
    return Finding(f"attention to {found:.3g} (published {published:g})", verdict(found <= published))


def value_norms_agree(claim: Claim, results: Results) -> Finding:
    """Value norms of two implementations, bounded by their vectors."""
    run, published = results["diff-float32"], claim.figure("two_value_norm").value
    row, sizes = run.row("diff", stage="values"), run.provenance["model_sizes"]
    width = sizes["d_model"] // sizes["heads"]
    bound = run.number(row, "bound") * math.sqrt(width)
    said = (
        f"value vectors of {width} entries {'' if row['within'] else 'NOT '}within {row['bound']:g} of their "
        f"norm an entry, so norms to {bound:.3g} (published {published:g})"
    )
    return Finding(
        said, verdict(bool(row["within"]) and row["bound_of"] == "row norm" and bound <= published)
    )


def unit_norms(claim: Claim, results: Results) -> Finding:
    """All value norms one."""
    run = results["validate"]
    row, true = (run.row("controls", weighting=name) for name in ("all norms 1", "value norm"))
    said = f"{row['moved']:,} of {row['rows']:,} rows differ in any bit; with true norms {true['moved']:,} do"
    return Finding(said, verdict(row["moved"] == 0 and true["moved"] > 0 and run.held("control_unit_norms")))


def zero_norm(claim: Claim, results: Results) -> Finding:
    """The norm of [CLS] zero."""
    run = results["validate"]
    zero, true = (run.row("controls", weighting=name) for name in ("norm of [CLS] 0", "value norm"))
    said = (
        f"the median goes from {percent(true['median'])} to {percent(zero['median'])} over {zero['rows']:,} "
        "rows, to rounding that of the other sinks alone"
    )
    held = run.held("control_first_sink_zero")
    return Finding(said, verdict(held and zero["median"] != true["median"]))


def arithmetic(claim: Claim, results: Results) -> Finding:
    """What the factor really does."""
    run = results["validate"]
    share, ratio, result = (claim.figure(f"claimed_{name}").value for name in ("share", "ratio", "result"))
    found = run.number(run.row("arithmetic", what="by the odds law, measured by the oracle"), "sink_share")
    needed = run.number(run.row("arithmetic", what="the ratio that would give 73%"), "ratio")
    said = (
        f"{percent(share, '.0%')} at {ratio:g} becomes {percent(found)}; {percent(result, '.0%')} would take "
        f"a factor of {needed:.3f}"
    )
    return Finding(said, verdict(abs(found - result) <= claim.number("within")))


def laws_hold(claim: Claim, results: Results) -> Finding:
    """The true code passes these checks, and each wrong variant named for them fails its own."""
    run = results["validate"]
    checks = claim.number("checks")
    killed, alive, worst = _mutants(run, checks)
    said = (
        f"{len(checks)} checks, the true code off by {worst:.0e} at most; {killed} of {killed + alive} wrong "
        "variants noticed"
    )
    return Finding(said, verdict(alive == 0 and killed >= len(checks)))


def clark_recipe(claim: Claim, results: Results) -> Finding:
    """The preset is the recipe, and a map of all heads comes out."""
    killed, alive, worst = _mutants(results["validate"], claim.number("checks"))
    run = results["audit-minilm-clusters"]
    sizes = run.provenance["model_sizes"]
    heads = sizes["layers"] * sizes["heads"]
    points = run.rows("points_clark2019", side="keep")
    there = sum(row["axis_1"] is not None and row["axis_2"] is not None for row in points)
    said = (
        f"the preset is off by {worst:.0e} from loops, {killed} of {killed + alive} wrong variants noticed; "
        f"{there} of {heads} heads on the map"
    )
    return Finding(said, verdict(alive == 0 and killed > 0 and there == heads))


def invariances(claim: Claim, results: Results) -> Finding:
    """What only the content distance is blind to, on real scores."""
    run = results["invariances"]
    cells = [row for row in run.rows("invariance_cells") if row["change"] in _STAYS]
    found: dict[tuple[str, str], list[str]] = {}
    for row in cells:
        found.setdefault((row["metric"], row["convention"]), []).append(row["found"])
    content = found.pop(("Aitchison", "drop"), [])
    blind = bool(content) and all(said == "holds" for said in content)
    others = sum("fails" in said for said in found.values())
    said = (
        f"the content distance stays in {content.count('holds')} of {len(content)} cells; {others} of "
        f"{len(found)} other distances change under at least one of the {len(_STAYS)}"
    )
    return Finding(said, verdict(blind and others == len(found) > 0, blind))


def _largest(run: Result) -> float:
    return run.number(run.row("diff", stage="attention"), "max_absolute")


def _mutants(run: Result, checks: list[str]) -> tuple[int, int, float]:
    """Mutants of these checks killed and not, and the largest error of the true code in them."""
    every = [row for family in ("measure", "distance") for row in run.rows(f"mutants_{family}")]
    own = [row for row in every if row["check"] in checks]
    killed = sum(row["verdict"] == "killed" for row in own)
    missing = len(set(checks) - {row["check"] for row in own})
    worst = max((run.number(row, "true_error") for row in own), default=math.nan)
    return killed, len(own) - killed + missing, worst
