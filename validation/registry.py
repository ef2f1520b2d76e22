"""One row per measure: who computes it, on which inputs, how far two answers may be apart and why.

It drives tests/test_registry.py, `sinkscope diff oracle fastpath` and the bound of `verify`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import DistanceSums, EntropyChange, EntropySplit, RowMeasures, VerdictFlips
from validation import bad_distance_cases, distance_cases, verdict_cases
from validation.cases import Case, bad_row_cases, row_cases, weight_cases
from validation.compare import Comparison, compare
from validation.distance_bounds import distance_bound
from validation.pair_cases import bad_pair_cases, pair_cases
from validation.query_key_cases import bad_query_key_cases, query_key_cases

__all__ = [
    "LAYERS",
    "REASONS",
    "REGISTRY",
    "Bound",
    "Measure",
    "MissingImplementation",
    "bound_for",
    "compare_layers",
    "largest_score",
    "parts_of",
]

Array = NDArray[Any]

LAYERS = ("oracle", "fastpath")

REASONS: Mapping[str, str] = {
    "rows, float32": "sums of at most 128 weights run in float32, in lanes, and are joined in float64: their "
    "roundings, of random sign, stay under 16 eps = 1e-6 of a share (at most 2 eps seen), twice that four "
    "times in an r; an entropy takes logarithms of weights p over their mean, where the sum of p |ln n p| is "
    "under ln n + 1, which is 11 at 16,384 keys: 7 eps of it are 1e-5 nats",
    "rows, float64": "a sum of n terms is off by at most n eps, in each of the four sums of a share or an r; "
    "16 more for products and quotients: (4 n + 16) eps; in an entropy times the largest |ln weight|",
    "query and key": "an error d of every score changes a share by d at most; d is 2 eps times the largest "
    "|score|, for the product and for what the exponential is taken of; and the bound of rows beside it",
    "distances": "both layers compute in float64 whatever comes in and close a row of n keys by sums of "
    "their own, which moves its weights by e = (4 n + 16) eps: a distance by 2 e, a root of one by 8 e, "
    "an entropy difference by 2 e times the largest |ln weight| L, a squared Aitchison distance d² by "
    "e L sqrt(n + 1) (1 + d²); and (40 + 12 L) eps of itself for the formula, one more for each row summed",
    "entropy change": "with b the bound of an entropy over rows and d that of a share, a difference of two "
    "entropies is off by 2 b, a change of a share times a mean entropy by b + 2 d ln(n + 1), the rest times "
    "a difference of entropies by less: 3 b + 2 d ln(n + 1); of two dtypes the coarser counts",
    "verdicts": "counts of triples: the same comparisons of the same numbers, so equal",
}
"""Why the bounds of `bound_for` are what they are.

Entropies of rows whose mean content weight is below the smallest normal number have none.
"""


class MissingImplementation(LookupError):
    """A layer lacks a measure that the registry names."""


class Bound(NamedTuple):
    """What |found - expected| may be: absolute + relative * |expected|."""

    absolute: float
    relative: float = 0.0


def bound_for(kind: str, dtype: Any, n_keys: int, logarithm: float = 1.0, score: float = 0.0) -> Bound:
    """The bound of a "share", "ratio", "entropy" or its "change" over rows of `n_keys`; REASONS says why.

    `logarithm` is the largest |ln weight| of an entropy, `score` the largest |score| of shares from queries
    and keys, 0 for rows.
    """
    coarse = np.dtype(dtype).itemsize < 8 and np.dtype(dtype).kind == "f"
    eps = float(np.finfo(np.float32 if coarse else np.float64).eps)
    terms = (4 * n_keys + 16) * eps
    if kind == "share":
        return Bound((1e-6 if coarse else terms) + 2 * eps * score)
    if kind == "change":
        entropy, share = (bound_for(part, dtype, n_keys, logarithm).absolute for part in ("entropy", "share"))
        return Bound(3 * entropy + 2 * share * float(np.log1p(n_keys)))
    if kind == "ratio":
        return Bound(0.0, 8e-6 if coarse else terms)
    return Bound(1e-5 if coarse else terms * max(logarithm, 1.0))


@dataclass(frozen=True)
class Measure:
    """A measure of both layers."""

    name: str
    kind: str  # "share", "ratio" or "distance" for a bare array; parts of a named tuple have their own
    cases: Callable[[], Iterator[Case]]
    refused: Callable[[], Iterator[Case]]
    reason: str

    def implementation(self, layer: str) -> Callable[..., Any]:
        """The function of that name in `layer`; raises MissingImplementation."""
        found = getattr(importlib.import_module(layer), self.name, None)
        if found is None:
            raise MissingImplementation(f"{layer} has no {self.name}")
        return found

    def bound(self, case: Case, kind: str) -> Bound:
        """The bound of the parts of this kind for one case."""
        given = case.arguments
        if self.reason == "verdicts" or kind == "count":
            return Bound(0.0)
        if self.reason == "distances":
            metric = given.get("metric", "jsd") if kind == "distance" else kind
            return Bound(*distance_bound(metric, given, summed=self.name != "head_distances"))
        first = next(iter(given.values()))
        if "query" not in given:
            pair = [given[name] for name in "xy"] if "x" in given else [first]
            logarithm = _largest_logarithm(given)
            return max(bound_for(kind, rows.dtype, first.shape[-1], logarithm) for rows in pair)
        dtype = min((given["query"].dtype, given["key"].dtype), key=lambda dtype: dtype.itemsize)
        return bound_for(kind, dtype, given["key"].shape[-2], score=_score_of(given))


def largest_score(query: Array, key: Array, scale: float | None = None) -> float:
    """The largest finite |scale · q·k|, visible or not, uncapped; both are (..., head, token, d_head).

    `scale` None is 1 / sqrt(d_head). A head at a time, as all scores at once may be large.
    """
    group = query.shape[-3] // key.shape[-3] if key.shape[-3] else 1
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    largest = 0.0
    for place in np.ndindex(query.shape[:-2]):
        theirs = (*place[:-1], place[-1] // group)
        with np.errstate(over="ignore", invalid="ignore"):  # garbage that nobody sees
            products = np.asarray(query[place], np.float64) @ np.asarray(key[theirs], np.float64).T
            scores = np.abs(factor * products)
        largest = max(largest, float(scores.max(initial=0, where=np.isfinite(scores))))
    return largest


def parts_of(result: Any, kind: str) -> dict[tuple[str, str], Array]:
    """The arrays of a result by (kind, name): "share", "ratio", "entropy" or a metric, and the name in it."""
    if isinstance(result, EntropySplit):
        return {("entropy", name): array for name, array in result._asdict().items()}
    if isinstance(result, EntropyChange):
        return {("change", name): array for name, array in result._asdict().items()}
    if isinstance(result, RowMeasures):
        parts = {("share", name): array for name, array in result.shares.items()}
        parts |= {("ratio", name): array for name, array in result.ratios.items()}
        return parts | ({} if result.entropy is None else parts_of(result.entropy, kind))
    if isinstance(result, DistanceSums):
        parts = {pair: array for pair, array in result.sums.items()}
        return parts | {("count", " ".join(pair)): array for pair, array in result.counts.items()}
    if isinstance(result, VerdictFlips):
        return {
            ("count" if isinstance(value, int) else "verdict", name): np.asarray(value)
            for name, value in result._asdict().items()
        }
    return {(kind, ""): result}


def compare_layers(
    measure: Measure, case: Case, expected: str = "oracle", found: str = "fastpath"
) -> dict[tuple[str, str], Comparison]:
    """One case through two layers, by part. A part that only one of them has is an error of shape."""
    results = [
        parts_of(measure.implementation(layer)(**case.arguments), measure.kind) for layer in (expected, found)
    ]
    compared = {}
    for part in dict.fromkeys([*results[0], *results[1]]):
        bound = measure.bound(case, part[0])
        first, second = (result.get(part, np.empty((0, 0, 0, 0, 0, 0))) for result in results)
        compared[part] = compare(
            first, second, absolute=bound.absolute, relative=bound.relative, same_dtype=True
        )
    return compared


def _largest_logarithm(given: Mapping[str, Any]) -> float:
    """The largest |ln weight| of a case, over positive finite weights; at least one."""
    rows = [given[name] for name in "xy"] if "x" in given else [next(iter(given.values()))]
    weights = np.abs(np.concatenate([np.asarray(some, np.float64).ravel() for some in rows]))
    weights = weights[np.isfinite(weights) & (weights > 0)]
    return float(np.abs(np.log(weights)).max(initial=1))


def _score_of(given: Mapping[str, Any]) -> float:
    return largest_score(given["query"], given["key"], given.get("scale"))


def _with_norm(cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    yield from (case for case in cases() if case.arguments.get("norm") is not None)


def _with_and_without_norm(cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    for case in cases():
        yield case
        if "norm" in case.arguments:
            yield Case(f"{case.name}, no norm", {**case.arguments, "norm": None})


def _without_norm(cases: Callable[[], Iterator[Case]], rename: str = "attention") -> Iterator[Case]:
    for case in cases():
        given = dict(case.arguments)
        norm, rows = given.pop("norm", None), given.pop("attention")
        if norm is None or cases is row_cases:
            yield Case(case.name, {rename: rows, **given})


def _with_named_norms(cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    """Cases of `row_measures`: no norm to three of them, with entropies."""
    for number, case in enumerate(cases()):
        given = dict(case.arguments)
        norm = given.pop("norm", None)
        names = ("value_norm", "transformed_norm", "third")[: number % 4 if cases is row_cases else 1]
        norms = (
            {}
            if norm is None
            else {name: (norm, norm[..., ::-1], norm + 1)[k] for k, name in enumerate(names)}
        )
        yield Case(case.name, {**given, "norms": norms, "entropies": number % 2 == 0})


def _refused_norms() -> Iterator[Case]:
    """Refused cases of `row_measures`: those of rows, and what only several norms can have wrong."""
    yield from _with_named_norms(bad_row_cases)
    good = next(iter(row_cases())).arguments
    norm = good["norm"]
    changes: Mapping[str, Any] = {
        "a norm named attention": {"attention": norm},
        "norms without names": norm,
        "a third norm of NaN": {"value_norm": norm, "transformed_norm": norm, "third": norm * np.nan},
    }
    for name, norms in changes.items():
        given = {"attention": good["attention"], "sink_mask": good["sink_mask"], "norms": norms}
        yield Case(name, given)


def _good_norm(cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    """Refused cases of a measure that needs a norm: one of ones where the case has none."""
    for case in cases():
        yield Case(case.name, {**case.arguments, "norm": case.arguments.get("norm", np.ones(7))})


REGISTRY: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "clark2019_distances",
            "distance",
            distance_cases.clark_cases,
            bad_distance_cases.bad_clark_cases,
            "distances",
        ),
        Measure(
            "distance_sums",
            "distance",
            distance_cases.distance_cases,
            bad_distance_cases.bad_distance_cases,
            "distances",
        ),
        Measure("entropy_change", "change", pair_cases, bad_pair_cases, "entropy change"),
        Measure(
            "entropy_split",
            "entropy",
            partial(_without_norm, row_cases, "rows"),
            partial(_without_norm, bad_row_cases, "rows"),
            "rows",
        ),
        Measure(
            "head_distances",
            "distance",
            distance_cases.head_cases,
            bad_distance_cases.bad_head_cases,
            "distances",
        ),
        Measure(
            "norm_odds_ratio",
            "ratio",
            partial(_with_norm, row_cases),
            partial(_good_norm, bad_row_cases),
            "rows",
        ),
        Measure(
            "row_measures",
            "share",
            partial(_with_named_norms, row_cases),
            _refused_norms,
            "rows",
        ),
        Measure("sink_share", "share", partial(_with_and_without_norm, row_cases), bad_row_cases, "rows"),
        Measure("sink_share_from_query_key", "share", query_key_cases, bad_query_key_cases, "query and key"),
        Measure(
            "verdict_flips",
            "verdict",
            verdict_cases.verdict_cases,
            verdict_cases.bad_verdict_cases,
            "verdicts",
        ),
        Measure("weight_share", "share", weight_cases, partial(bad_row_cases, "weights"), "rows"),
    )
}
"""The measures by name."""
