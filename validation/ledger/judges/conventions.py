"""Rules on keeping or dropping the sink: verdicts that flip, maps of heads, where it is safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oracle.distances import CONVENTIONS
from validation.claims import Claim
from validation.ledger.finding import NOT_TESTABLE, Finding, verdict
from validation.ledger.result import Result, Results
from validation.wording import percent

__all__ = ["artefact", "breadth", "depends", "flips_in_range", "safe_map"]

_METRICS = ("cosine", "JSD", "entropy")
_STANDARD = "clark2019"
_MAPS = {_STANDARD: "Clark et al. 2019", "jsd": "JSD"}
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
    floors = "; ".join(map(_floors, runs))
    wanted = (claim.figure("breadth_models").value, claim.figure("breadth_families").value)
    if len(models) < wanted[0] or len(families) < wanted[1]:
        return Finding(said, NOT_TESTABLE, floors)
    every = all(run.row("verdicts", metric=name)["verdict"] == "depends" for run in runs for name in _METRICS)
    return Finding(said, verdict(every), floors)


def artefact(claim: Claim, results: Results) -> Finding:
    """Whether the standard pipeline's map of the heads shows the sink, and no more with it dropped."""
    runs = [results[name] for name in claim.runs]
    judged = results["audit-minilm-clusters"]
    if judged.provenance["model_sizes"]["family"] != claim.number("family"):
        judged.refuse(f"a model of the family {claim.number('family')}", _model(judged))
    kept, dropped = (_fits(judged, _STANDARD, side) for side in CONVENTIONS)
    leads = max(kept, key=lambda covariate: kept[covariate])
    gone = dropped[_SINK] < kept[_SINK] / 2
    against = f"{percent(kept[leads])} against {percent(kept[_SINK])}"
    more = "" if leads == _SINK else f"; {leads} explains more than the sink does, {against}"
    beside = "; ".join(
        _map_words(run, name) for run in runs for name in _MAPS if run is not judged or name != _STANDARD
    )
    halves = judged.row(f"axes_{_STANDARD}", side="keep", covariate=_SINK)
    low, high = (percent(judged.number(halves, f"halves_{end}")) for end in ("low", "high"))
    return Finding(
        f"{_map_words(judged, _STANDARD)}{more}. Beside it, not judged: {beside}",
        verdict(gone and leads == _SINK, gone and kept[_SINK] >= claim.number("most")),
        f"{_MAPS[_STANDARD]}, halves of the texts {low} to {high}",
    )


def safe_map(claim: Claim, results: Results) -> Finding:
    """Our map, beside theirs that nobody here has seen."""
    said, floors = [], []
    for name in claim.runs:
        run = results[name]
        floors.append(_floors(run))
        rows = run.rows("safety")
        layers = [row["verdict"] for row in rows if row["scope"].startswith("layer ")]
        counts = ", ".join(f"{layers.count(word)} {word}" for word in dict.fromkeys(sorted(layers)))
        safe = [row["metric"] for row in rows if row["scope"] == "all" and row["verdict"] == "safe"]
        said.append(f"{_model(run)}: of {len(layers)} cells {counts}; safe over all: {_list(safe)}")
    floor = "; ".join(floors)
    return Finding(f"their map is not at hand; ours: {'; '.join(said)}", NOT_TESTABLE, floor)


def _fits(run: Result, name: str, side: str, column: str = "r_squared") -> Mapping[str, float]:
    """How each covariate of the heads goes with a map, by the covariate."""
    rows = run.rows(f"axes_{name}", side=side)
    return {row["covariate"]: run.number(row, column) for row in rows}


def _map_words(run: Result, name: str) -> str:
    """R² on both axes of every covariate with the sink kept, and |r| with axis 1; of the sink dropped too."""
    kept, first = (_fits(run, name, "keep", column) for column in ("r_squared", "axis_1"))
    each = ", ".join(f"{one} {percent(kept[one])} ({first[one]:.2f})" for one in kept)
    dropped = percent(_fits(run, name, "drop")[_SINK])
    return (
        f"{_model(run)}, {_MAPS[name]}: R² on both axes (|r| with axis 1), sink kept: {each}; sink dropped: "
        f"{_SINK} {dropped}"
    )


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
