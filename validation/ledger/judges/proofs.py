"""Identities, mutations, arithmetic and agreements of implementations: what can be settled exactly."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from oracle.distances import clark2019_distances
from validation.claims import Claim
from validation.headline import length_words
from validation.ledger.finding import EXACT, Finding, verdict
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

_CONTENT = ("Aitchison", "drop")
_ROUNDING = "no floor: what differs is rounding"


class _Mutants(NamedTuple):
    """Mutants of some checks killed and not; of the true code in them the largest error and bound, and T."""

    killed: int
    alive: int
    worst: float
    bound: float
    lengths: str

    @property
    def floor(self) -> str:
        """How far rounding may go."""
        return _to_rounding(self.bound)


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
    within = claim.number("within")
    return Finding(said, verdict(max(off) <= within), _to_rounding(within))


def port(claim: Claim, results: Results) -> Finding:
    """Our float32 rows against those of PyTorch."""
    run = results["diff-float32"]
    found, published = _largest(run), claim.figure("port").value
    said = f"another port, ours: attention to {found:.3g} (published {published:g})"
    return Finding(said, verdict(found <= published, found < claim.number("times") * published), _ROUNDING)


def rows_agree(claim: Claim, results: Results) -> Finding:
    """Attention weights of two implementations."""
    found, published = _largest(results["diff-float32"]), claim.figure("two_attention").value
    said = f"another pair, ours and PyTorch: attention to {found:.3g} (published {published:g})"
    return Finding(said, verdict(found <= published), _ROUNDING)


def value_norms_agree(claim: Claim, results: Results) -> Finding:
    """Norms of the value vectors of two implementations, relative to each."""
    run, published = results["diff-float32"], claim.figure("two_value_norm").value
    found = run.number(run.row("diff", stage="value_norm"), "max_relative")
    said = f"another pair, ours and PyTorch: value norms to {found:.3g} relative (published {published:g})"
    return Finding(said, verdict(found <= published), _ROUNDING)


def unit_norms(claim: Claim, results: Results) -> Finding:
    """All value norms one."""
    run = results["validate"]
    row, true = (run.row("controls", weighting=name) for name in ("all norms 1", "value norm"))
    said = f"{row['moved']:,} of {row['rows']:,} rows differ in any bit; with true norms {true['moved']:,} do"
    holds = row["moved"] == 0 and true["moved"] > 0 and run.held("control_unit_norms")
    return Finding(said, verdict(holds), EXACT)


def zero_norm(claim: Claim, results: Results) -> Finding:
    """The norm of [CLS] zero."""
    run = results["validate"]
    zero, true = (run.row("controls", weighting=name) for name in ("norm of [CLS] 0", "value norm"))
    held = run.held("control_first_sink_zero")
    alone = "are" if held else "are not"
    said = (
        f"the median goes from {percent(true['median'])} to {percent(zero['median'])} over {zero['rows']:,} "
        f"rows; the shares {alone} to rounding those of the other sinks alone"
    )
    return Finding(said, verdict(held and zero["median"] != true["median"]), EXACT)


def arithmetic(claim: Claim, results: Results) -> Finding:
    """What the factor really does."""
    run = results["validate"]
    share, ratio, result = (claim.figure(f"claimed_{name}").value for name in ("share", "ratio", "result"))
    found = run.number(run.row("arithmetic", what="by the odds law, measured by the oracle"), "sink_share")
    needed = run.number(
        run.row("arithmetic", what=f"the ratio that would give {percent(result, '.0%')}"), "ratio"
    )
    said = (
        f"{percent(share, '.0%')} at {ratio:g} becomes {percent(found)}; {percent(result, '.0%')} would take "
        f"a factor of {needed:.3f}"
    )
    return Finding(said, verdict(abs(found - result) <= claim.number("within")), EXACT, "")


def laws_hold(claim: Claim, results: Results) -> Finding:
    """The true code passes these checks, and each wrong variant named for them fails its own."""
    run = results["validate"]
    checks = claim.number("checks")
    own = _mutants(run, checks)
    said = (
        f"{len(checks)} checks, the true code off by {own.worst:.0e} at most; {own.killed} of "
        f"{own.killed + own.alive} wrong variants noticed"
    )
    holds = own.alive == 0 and own.killed >= len(checks)
    return Finding(said, verdict(holds), own.floor, own.lengths)


def clark_recipe(claim: Claim, results: Results) -> Finding:
    """The preset does what the recipe says, but for the kind of scaling, and maps every head."""
    own = _mutants(results["validate"], claim.number("checks"))
    kept, uniform, wanted = (claim.figure(f"clark_{name}").value for name in ("kept", "uniform", "axes"))
    rows = np.array(claim.number("rows"))  # (head, query, key)
    smooth = kept * rows + uniform / rows.shape[-1]
    off = abs(clark2019_distances(rows)[0, 1] - _jensen_shannon(*smooth).sum())
    run = results["audit-minilm-clusters"]
    sizes = run.provenance["model_sizes"]
    heads = sizes["layers"] * sizes["heads"]
    points = run.rows("points_clark2019", side="keep")
    axes = [name for name in points[0] if name.startswith("axis_")] if points else []
    there = sum(all(row[name] is not None for name in axes) for row in points)
    said = (
        f"smoothed by {kept:g} and {uniform:g} and summed over rows, the preset is off by {off:.0e}, and by "
        f"{own.worst:.0e} from loops; {own.killed} of {own.killed + own.alive} wrong variants noticed; "
        f"{there} of {heads} heads on a map of {len(axes)} axes; by classical scaling, not by the recipe's "
        "iterated one"
    )
    same = off <= claim.number("within") and own.alive == 0 and own.killed > 0
    lengths = f"rows given {length_words([rows.shape[-1]])}, loops {own.lengths}, map {run.lengths}"
    return Finding(said, verdict(False, same and there == heads and len(axes) == wanted), own.floor, lengths)


def invariances(claim: Claim, results: Results) -> Finding:
    """What only the content distance is blind to, on the scores of a model."""
    run = results["invariances"]
    changes, sinks = claim.number("changes"), claim.number("sinks")
    wanted = sorted((change, sink) for change in changes for sink in sinks)
    found: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for row in run.rows("invariance_cells"):
        if row["change"] in changes:
            cells = found.setdefault((row["metric"], row["convention"]), {})
            if (row["change"], row["sinks"]) in cells:
                run.refuse("each cell once", f"{row['metric']}, {row['convention']}, {row['change']} twice")
            cells[row["change"], row["sinks"]] = row["found"]
    if len(found) != claim.number("distances") or _CONTENT not in found:
        run.refuse(f"{claim.number('distances')} distances, {_CONTENT} one of them", f"{len(found)}")
    for name, cells in found.items():
        if sorted(cells) != wanted:
            run.refuse(f"the {len(wanted)} cells of {name}", f"{len(cells)}")
    content = list(found.pop(_CONTENT).values())
    others = sum("fails" in cells.values() for cells in found.values())
    said = (
        f"on {run.provenance['model']}: the content distance stays in {content.count('holds')} of "
        f"{len(content)} cells; {others} of {len(found)} other distances change under at least one of the "
        f"{len(changes)}"
    )
    blind = all(word == "holds" for word in content)
    bound = max(
        run.number(row, "bound")
        for row in run.rows("invariance_cells", metric=_CONTENT[0], convention=_CONTENT[1])
        if row["change"] in changes
    )
    lengths = dict.fromkeys(re.findall(r"\bT [\d-]+", " ".join(run.notes("invariance_cells"))))
    if not lengths:
        run.refuse("T of the rows that were changed", "none")
    floor = _to_rounding(bound)
    return Finding(said, verdict(False, blind and others == len(found)), floor, ", ".join(lengths))


def _jensen_shannon(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The divergence of each row of x from its row of y in nats, by its definition; all entries positive."""
    middle = (x + y) / 2
    return ((x * np.log(x / middle) + y * np.log(y / middle)) / 2).sum(axis=-1)


def _largest(run: Result) -> float:
    return run.number(run.row("diff", stage="attention"), "max_absolute")


def _mutants(run: Result, checks: list[str]) -> _Mutants:
    """What became of the mutants of these checks; a check without one counts as one that was not killed."""
    every = [row for family in ("measure", "distance") for row in run.rows(f"mutants_{family}")]
    own = [row for row in every if row["check"] in checks]
    killed = sum(row["verdict"] == "killed" for row in own)
    missing = len(set(checks) - {row["check"] for row in own})
    worst, bound = (
        max((run.number(row, key) for row in own), default=math.nan) for key in ("true_error", "bound")
    )
    for row in own:
        if not isinstance(row.get("T"), str):
            run.refuse(f"T of the check {row['check']!r}", "none")
    each = dict.fromkeys(row["T"] for row in own if row["T"])
    lengths = f"T {', '.join(each)}" if each else ""
    return _Mutants(killed, len(own) - killed + missing, worst, bound, lengths)


def _to_rounding(bound: float) -> str:
    """The floor of what is exact but for rounding."""
    return f"{EXACT}, to rounding of {bound:.0e} at most"
