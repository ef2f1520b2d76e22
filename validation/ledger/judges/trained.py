"""Rules on training, pruning and prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from validation.claims import Claim, figure
from validation.ledger.finding import EXACT, NOT_JUDGED, NOT_TESTABLE, Finding, verdict
from validation.ledger.result import Result, Results
from validation.prediction.frozen import load_predictor
from validation.wording import counted, percent

__all__ = ["channel_beyond_layers", "duplicates", "hundredfold", "predictor", "toy_collapse"]


class _Cut(NamedTuple):
    """One choice of heads at one budget: ratios of perplexity on both texts and of its matched draws."""

    name: str
    both: float  # what both texts reach
    first: float
    matched: float  # median
    most: float

    @property
    def words(self) -> str:
        return f"{self.name} {self.both:.0f}"


def toy_collapse(claim: Claim, results: Results) -> Finding:
    """What the embedded series show; never more than something to look at."""
    run = results["collapse-demo"]
    spans = []
    for row in run.rows("over_seeds"):
        low, high = (percent(run.number(row, f"sink_part_{end}")) for end in ("min", "max"))
        share = percent(run.number(row, "share_mean"))
        parts = low if low == high else f"{low} to {high}"
        spans.append(f"{row['kind']} {row['width']} wide {parts} (sink share at the end {share})")
    series = run.rows("series")
    most = {key: percent(max(run.number(row, key) for row in series)) for key in ("own", "previous")}
    floor = (
        f"another key taken as the sink: the row's own at most {most['own']}, the one before at most "
        f"{most['previous']}"
    )
    lengths = f"T {' or '.join(map(str, sorted(set(run.provenance['T']))))}"  # each series at one of them
    return Finding(f"toys, the sink's part of the drop: {'; '.join(spans)}", NOT_TESTABLE, floor, lengths)


def duplicates(claim: Claim, results: Results) -> Finding:
    """Whether checkpoints here have equal weights."""
    rows = results["collapse-demo"].all_rows("checkpoints")
    same = sum(row["same_as"] is not None for row in rows)
    said = f"of {counted(len(rows), 'checkpoint')} of the embedded series {same} equal an earlier one"
    return Finding(said, NOT_TESTABLE, EXACT, "")


def hundredfold(claim: Claim, results: Results) -> Finding:
    """Whether a choice multiplies the perplexity of both texts by the published factor."""
    run, wanted = results["prune-smollm2"], claim.figure("hundredfold").value
    cuts = list(_cuts(claim, run))
    above = [cut for cut in cuts if cut.both > wanted]
    most = max(cuts, key=lambda cut: cut.both)
    said = f"{len(above)} of {len(cuts)} choices and budgets, on both texts; the most: {most.words} times"
    uniform = max(
        run.number(run.row(table, heads_by="uniform draws, median"), text)
        for table in _tables(run).values()
        for text in ("text_1", "text_2")
    )
    floor = f"median of uniform draws at most {uniform:.2f} times"
    return Finding(said, verdict(bool(above), most.both > claim.number("some")), floor)


def channel_beyond_layers(claim: Claim, results: Results) -> Finding:
    """Whether the factor remains once the layers are matched."""
    run, wanted = results["prune-smollm2"], figure("hundredfold").value
    above = [cut for cut in _cuts(claim, run) if cut.both > wanted]
    if not above:
        return Finding("no choice reaches the factor", NOT_TESTABLE, NOT_JUDGED)
    outside = [cut for cut in above if cut.first > cut.most]
    said = "; ".join(
        f"{cut.name} {cut.first:.0f}, {cut.first / cut.matched:.2f} times its layers' median" for cut in above
    )
    floors = "; ".join(f"{cut.name} {cut.matched:.0f} (most {cut.most:.0f})" for cut in above)
    holds, some = (
        any(cut.first > times * cut.matched for cut in outside) for times in (wanted, claim.number("beyond"))
    )
    return Finding(
        f"on text 1: {said}",
        verdict(holds, some),
        f"random heads of the same layers, text 1: {floors}",
    )


def predictor(claim: Claim, results: Results) -> Finding:
    """Ours beside theirs; the frozen file is held to the hash that the ledger has."""
    sha256 = claim.number("predictor_sha256")
    load_predictor(sha256=sha256)
    run = results["predict-smollm2"]
    if sha256[:16] not in run.text("predictor"):
        run.refuse(f"a result of the predictor {sha256[:16]}", repr(run.text("predictor")))
    rows = run.rows("predictions")
    words = [row["verdict"] for row in rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("confirmed", "abstained", "failed"))
    said = f"ours on {run.provenance['model']}, over {len(words)} metrics: {counts} (SHA-256 {sha256[:16]})"
    floors = ", ".join(f"{row['metric']} {percent(run.number(row, 'floor_keep_high'))}" for row in rows)
    return Finding(said, NOT_TESTABLE, f"worst split half, sink kept: {floors}")


def _tables(run: Result) -> Mapping[str, str]:
    """The key of the table of each budget, by the budget in words."""
    words = [f"{100 * budget:.4g}%" for budget in run.provenance["budgets"]]
    return {budget: run.titled(f"{budget} of the heads cut ") for budget in words}


def _cuts(claim: Claim, run: Result) -> Iterator[_Cut]:
    """The choices that the rule names, at every budget."""
    for budget, table in _tables(run).items():
        for choice in claim.number("choices"):
            yield _cut(run, f"{choice} at {budget}", run.row(table, heads_by=choice))


def _cut(run: Result, name: str, row: Mapping[str, Any]) -> _Cut:
    first, second, matched, most = (
        run.number(row, column) for column in ("text_1", "text_2", "matched_median", "matched_most")
    )
    return _Cut(name, min(first, second), first, matched, most)
