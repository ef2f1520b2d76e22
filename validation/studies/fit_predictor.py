"""`python -m validation.studies.fit_predictor`: fit the predictor of flip rates again, and compare.

Loads MiniLM and nothing else. Without an argument it says whether the frozen file's numbers come out again;
with a path it writes a file there, whose hash must then stand in `validation.prediction.frozen`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from oracle.loading import load_model
from oracle.model import Model
from validation.audit.passages import load_passages
from validation.prediction.fitting import RULE, Fit, Observation, fit_rates
from validation.prediction.frozen import load_predictor
from validation.prediction.judging import RULES
from validation.prediction.statistics import FEATURES, Statistics
from validation.progress import Progress
from validation.provenance import describe_texts, versions
from validation.report.live import live_progress
from validation.studies import predictor_subjects
from validation.studies.predictor_subjects import GROUPS, LENGTHS, PREDICTED, VARIANTS, observe

__all__ = ["differences", "fit_all", "fitted_file", "main", "ranges_of", "read_observations", "refit"]

MODEL = "minilm-l6"
CLOSE = 2e-3  # of what another machine's rounding may move: a verdict or two near a tie
FORM = (
    "logit(flip rate) = c0 + c1 logit(sink_share) + c2 log(sink_spread) + c3 content_entropy "
    "+ c4 log(content_keys)"
)
NOT_SEEN = "no other model was loaded or looked at for the fit, smollm2-135m in particular"
_DIGITS = 6


def fit_all(observations: Sequence[Observation]) -> dict[str, Fit]:
    """The fit of every metric."""
    return {metric: fit_rates(observations, metric) for metric in PREDICTED}


def ranges_of(observations: Iterable[Observation]) -> dict[str, tuple[float, float]]:
    """Least and largest of every statistic, rounded outwards to four decimals."""
    values = np.array([one.statistics for one in observations])  # (observation, statistic)
    return {
        name: (math.floor(1e4 * column.min()) / 1e4, math.ceil(1e4 * column.max()) / 1e4)
        for name, column in zip(Statistics._fields, values.T, strict=True)
    }


def fitted_file(observations: Sequence[Observation], about: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the file: the rules, what they were fitted on, the numbers; `about` says with what."""
    return {
        **about,
        "predicts": "the flip rate between keep and drop over all triples of heads, from statistics "
        "under keep",
        "form": FORM,
        "features": FEATURES,
        "abstains_and_verdicts": RULES,
        "tolerance_rule": RULE,
        "subjects": " ".join((predictor_subjects.__doc__ or "").split()),
        "not_seen": NOT_SEEN,
        "variants": [variant._asdict() for variant in VARIANTS],
        "lengths": [length or "all" for length in LENGTHS],
        "layers": list(GROUPS),
        "ranges": ranges_of(observations),
        "metrics": {metric: _stated(fit) for metric, fit in fit_all(observations).items()},
        "observations": [_listed(one) for one in observations],
    }


def read_observations(data: Mapping[str, Any]) -> list[Observation]:
    """The observations of a file."""
    return [
        Observation(**{**one, "statistics": Statistics(**one["statistics"])}) for one in data["observations"]
    ]


def refit(model: Model, progress: Progress) -> dict[str, Any]:
    """Observe `model` on the bundled passages and fit."""
    texts = load_passages()
    observations = [_rounded(one) for one in observe(model, texts, progress)]
    about = {
        "made": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "models": [{"name": model.name, "sha256": model.sha256, "dtype": str(model.dtype)}],
        "texts": describe_texts("the bundled passages", texts),
    }
    return fitted_file(observations, about)


def differences(frozen: Mapping[str, Any], again: Mapping[str, Any], close: float = CLOSE) -> list[str]:
    """Where the numbers of two files differ by more than `close`, or what they are of differs at all."""
    found = [key for key in ("models", "texts", "variants", "form") if frozen[key] != again[key]]
    for part in ("ranges", "metrics"):
        pairs = zip(_numbers(frozen[part], part), _numbers(again[part], part), strict=True)
        found += [
            f"{name}: {old} -> {new}"
            for (name, old), (_, new) in pairs
            if abs(old - new) > close * max(1, abs(old))
        ]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print the table, and compare with the frozen file, or write a new one; 1 where they differ."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with live_progress(sys.stderr) as tell:
        made = json.loads(json.dumps(refit(load_model(MODEL), tell)))
    for line in _table(made):
        print(line)
    if given:
        Path(given[0]).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        return 0
    different = differences(load_predictor().data, made)
    print("\n".join(different) if different else "The frozen numbers come out again.")
    return 1 if different else 0


def _rounded(one: Observation) -> Observation:
    """As it stands in the file, so that the file is all that a fit needs."""
    return one._replace(statistics=Statistics(*(round(value, _DIGITS) for value in one.statistics)))


def _stated(fit: Fit) -> dict[str, Any]:
    return {
        "coefficients": [round(float(value), 4) for value in fit.coefficients],
        "tolerance": fit.tolerance,
        "error": round(fit.error, 4),
        "error_of_mean": round(fit.error_of_mean, 4),
        "useful": fit.useful,
    }


def _listed(one: Observation) -> dict[str, Any]:
    return {**one._asdict(), "statistics": one.statistics._asdict()}


def _numbers(part: Any, name: str) -> list[tuple[str, float]]:
    """Every number of nested mappings and lists, with where it stands."""
    if isinstance(part, (int, float)):
        return [(name, float(part))]
    inside = part.items() if isinstance(part, Mapping) else enumerate(part)
    return [found for key, value in inside for found in _numbers(value, f"{name}.{key}")]


def _table(data: Mapping[str, Any]) -> list[str]:
    """Observed, fitted and both left-out rates of every observation, metric by metric."""
    observations = read_observations(data)
    lines = []
    for metric, fit in fit_all(observations).items():
        lines.append(
            f"{metric}: {data['metrics'][metric]['coefficients']}, error left out {fit.error:.3f} (of the "
            f"mean rate {fit.error_of_mean:.3f}), tolerance {fit.tolerance:.2f}"
        )
        for one, *rates in zip(observations, fit.observed, fit.fitted, *fit.left_out.T, strict=True):
            place = f"{one.variant}, layers {one.layers}, T {one.length}"
            lines.append(f"  {place:48}" + "".join(f"{rate:7.1%}" for rate in rates))
    return lines


if __name__ == "__main__":
    sys.exit(main())
