"""Rules on keeping or dropping the sink: verdicts that flip, maps of heads, where it is safe."""

from __future__ import annotations

from collections.abc import Iterable

from oracle.distances import CONVENTIONS
from validation.claims import Claim
from validation.ledger.finding import NOT_TESTABLE, Finding, verdict
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = ["artefact", "breadth", "depends", "flips_in_range", "safe_map"]

_METRICS = ("cosine", "JSD", "entropy")
_MAPS = {"clark2019": "Clark et al. 2019", "jsd": "JSD"}
_SINK = "mean sink share"


def depends(claim: Claim, results: Results) -> Finding:
    """Whether the audit says so of the three published measures, on every model."""
    said, floors, counts = [], [], []
    for name in claim.runs:
        run = results[name]
        words = {metric: run.row("verdicts", metric=metric)["verdict"] for metric in _METRICS}
        said.append(f"{_model(run)}: " + ", ".join(f"{metric} {word}" for metric, word in words.items()))
        floors.append(_floors(run))
        counts.append(sum(word == "depends" for word in words.values()))
    holds, some = min(counts) == len(_METRICS), min(counts) >= len(_METRICS) - 1
    return Finding("; ".join(said), verdict(holds, some), "; ".join(floors))


def flips_in_range(claim: Claim, results: Results) -> Finding:
    """Whether the flip rates lie in the published range."""
    least, most = claim.figure("flips_least").value, claim.figure("flips_most").value
    said, floors, inside, above = [], [], [], []
    for name in claim.runs:
        run = results[name]
        rates = {metric: run.number(run.row("verdicts", metric=metric), "flips") for metric in _METRICS}
        said.append(f"{_model(run)}: " + ", ".join(f"{name} {percent(rate)}" for name, rate in rates.items()))
        floors.append(_floors(run))
        inside += [least <= rate <= most for rate in rates.values()]
        above += [rate > _floor(run, metric) for metric, rate in rates.items()]
    some = all(above) and 2 * sum(inside) >= len(inside)
    return Finding("; ".join(said), verdict(all(inside), some), "; ".join(floors))


def breadth(claim: Claim, results: Results) -> Finding:
    """How many models and families there are to ask."""
    runs = [results[name] for name in claim.runs]
    models = {run.provenance["model_sha256"] for run in runs}
    families = {run.provenance["model_sizes"]["family"] for run in runs}
    said = f"{len(models)} models of {len(families)} families: {', '.join(map(_model, runs))}"
    wanted = (claim.figure("breadth_models").value, claim.figure("breadth_families").value)
    if len(models) < wanted[0] or len(families) < wanted[1]:
        return Finding(said, NOT_TESTABLE)
    every = all(run.row("verdicts", metric=name)["verdict"] == "depends" for run in runs for name in _METRICS)
    return Finding(said, verdict(every))


def artefact(claim: Claim, results: Results) -> Finding:
    """Whether the map of the heads shows the sink with it kept, and no more with it dropped."""
    (name,) = claim.runs
    run, most = results[name], claim.number("most")
    said, floors, shown = [], [], []
    for metric, words in _MAPS.items():
        rows = run.rows(f"axes_{metric}")
        kept, dropped = (
            {row["covariate"]: run.number(row, "r_squared") for row in rows if row["side"] == side}
            for side in CONVENTIONS
        )
        leads = max(kept, key=lambda covariate: kept[covariate])
        shown.append(kept[_SINK] >= most and leads == _SINK and dropped[_SINK] < kept[_SINK] / 2)
        said.append(
            f"{words}: {_SINK} explains {percent(kept[_SINK])} of both axes with the sink kept, "
            f"{percent(dropped[_SINK])} with it dropped"
            + ("" if leads == _SINK else f"; {leads} explains more, {percent(kept[leads])}")
        )
        halves = run.row(f"axes_{metric}", side="keep", covariate=_SINK)
        low, high = (percent(run.number(halves, f"halves_{end}")) for end in ("low", "high"))
        floors.append(f"{words}, halves of the texts {low} to {high}")
    return Finding("; ".join(said), verdict(all(shown), any(shown)), "; ".join(floors))


def safe_map(claim: Claim, results: Results) -> Finding:
    """Whether the audit's maps tell safe layers from others."""
    said, tells = [], []
    for name in claim.runs:
        run = results[name]
        rows = run.rows("safety")
        whole = [row["verdict"] for row in rows if row["scope"] == "all"]
        layers = [row["verdict"] for row in rows if row["scope"].startswith("layer ")]
        tells.append("cannot say" not in whole and {"safe", "depends"} <= set(layers))
        counts = ", ".join(f"{layers.count(word)} {word}" for word in dict.fromkeys(sorted(layers)))
        safe = [row["metric"] for row in rows if row["scope"] == "all" and row["verdict"] == "safe"]
        said.append(f"{_model(run)}: of {len(layers)} cells {counts}; safe over all: {_list(safe)}")
    return Finding("; ".join(said), verdict(all(tells), any(tells)))


def _model(run: Result) -> str:
    return str(run.provenance["model"])


def _floor(run: Result, metric: str) -> float:
    row = run.row("verdicts", metric=metric)
    return max(run.number(row, f"floor_{convention}_high") for convention in CONVENTIONS)


def _floors(run: Result) -> str:
    each = ", ".join(f"{metric} {percent(_floor(run, metric))}" for metric in _METRICS)
    return f"worst split half, {_model(run)}: {each}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
