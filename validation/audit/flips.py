"""Every comparison of an audit: keep against drop, metric against metric, half the texts against half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import VerdictFlips
from oracle.distances import CONVENTIONS
from validation.audit.clustering import takes_root
from validation.audit.distances import Distances
from validation.audit.halves import text_halves
from validation.audit.rule import Floor, judge, vanishing_share
from validation.progress import Progress, silent

__all__ = [
    "ALL",
    "LEAST_MARGIN",
    "MARGIN",
    "WITHIN",
    "Analysis",
    "Scope",
    "analyse",
    "pair_values",
    "scoped_flips",
    "together",
]

Array = NDArray[Any]
Scope = str | int  # which triples: all, those within a layer, those with clear margins, or one layer's
Scoped = Mapping[Scope, VerdictFlips]
Key = tuple[str, str]  # metric and convention

ALL, WITHIN, MARGIN = "all", "within", "margin"
LEAST_MARGIN = 0.1  # of the anchor's median distance


@dataclass(frozen=True, eq=False)
class Analysis:
    """What was compared. `drawn` is the number of splits of the texts, no two of which are the same."""

    distances: Distances
    flips: Mapping[str, Scoped]  # by metric: keep against drop
    law: Mapping[str, Array]  # by metric, (head,): what the arccos law expects of each anchor
    splits: Mapping[Key, Sequence[Scoped]]  # half the texts against half, split by split
    floors: Mapping[Key, Mapping[Scope, Floor]]  # their rates
    between: Mapping[tuple[str, str, str], VerdictFlips]  # convention, metric, metric
    against: Mapping[float, Mapping[str, VerdictFlips]]  # by delta: see `_against_deltas`
    drawn: int

    def verdict(self, metric: str, scope: Scope) -> str:
        """What the rule says of keep against drop under `metric`."""
        return judge(self.flips[metric][scope], self.both_floors(metric, scope), self.vanishes(metric, scope))

    def both_floors(self, metric: str, scope: Scope) -> list[Floor]:
        """The floors under keep and under drop."""
        return [self.floors[metric, convention][scope] for convention in CONVENTIONS]

    def pooled_floors(self, metric: str, layers: Sequence[int]) -> list[Floor]:
        """The floors of both over the triples within each of `layers`: every split's counts are added up."""
        return [
            Floor(
                np.array(
                    [
                        together([split[layer] for layer in layers]).rate
                        for split in self.splits[metric, convention]
                    ]
                )
            )
            for convention in CONVENTIONS
        ]

    def vanishes(self, metric: str, scope: Scope | Sequence[int] = ALL) -> bool:
        """Whether all distances under drop are as good as zero beside those under keep."""
        keep, drop = (self.median(metric, convention, scope) for convention in CONVENTIONS)
        squared = takes_root(metric, "ward")
        return drop <= vanishing_share(self.distances.precision, squared) * keep and keep > 0

    def median(self, metric: str, convention: str, scope: Scope | Sequence[int] = ALL) -> float:
        """Median distance of the pairs of heads, or of those that share a layer: any, one, or one of several.

        NaN without any.
        """
        layers, matrix = self.distances.layers, self.distances.mean(metric, convention)
        if scope not in (ALL, MARGIN):
            among = layers if scope == WITHIN else np.atleast_1d(scope)
            here = np.isin(layers, among)
            matrix = np.where((layers[:, None] == layers) & here, matrix, np.nan)
        values = pair_values(matrix)
        return float(np.median(values)) if len(values) else float("nan")

    def median_again(self, delta: float, convention: str) -> float:
        """Median of Aitchison's distances when `delta` takes the place of zeros; NaN without any."""
        values = pair_values(oracle.mean_distances(self.distances.again[delta], "aitchison", convention))
        return float(np.median(values)) if len(values) else float("nan")


def pair_values(matrix: Array) -> Array:
    """The defined distances of all pairs of different heads, (pair,)."""
    values = matrix[np.triu_indices(len(matrix), 1)]
    return values[~np.isnan(values)]


def scoped_flips(
    first: Array, second: Array, layers: NDArray[np.int64], flips: Callable[..., VerdictFlips]
) -> Scoped:
    """Flips between two distance matrices (head, head): over all triples, within layers, with clear margins.

    The keys are ALL, WITHIN, MARGIN and the number of each layer; `flips` is a layer's `verdict_flips`.
    """
    by_layer: dict[Scope, VerdictFlips] = {}
    for layer in np.unique(layers).tolist():
        among = np.ix_(layers == layer, layers == layer)
        by_layer[layer] = flips(first[among], second[among])
    return {
        ALL: flips(first, second),
        WITHIN: together(list(by_layer.values())),  # the same as groups=layers, which would judge them again
        MARGIN: flips(first, second, margin=LEAST_MARGIN),
        **by_layer,
    }


def together(parts: Sequence[VerdictFlips]) -> VerdictFlips:
    """The flips of layers that follow each other, each judged by itself, as one."""
    flipped, triples, tied, undefined = (
        sum(getattr(part, name) for part in parts) for name in ("flipped", "triples", "tied", "undefined")
    )
    per_anchor = np.concatenate([part.per_anchor for part in parts])
    rate = flipped / triples if triples else float("nan")
    return VerdictFlips(rate, per_anchor, flipped, triples, tied, undefined)


def analyse(
    distances: Distances,
    flips: Callable[..., VerdictFlips] = oracle.verdict_flips,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Analysis:
    """Compare everything: `flips` is the `verdict_flips` of the layer that computes.

    The splits of `text_halves` are the same for every metric and convention; `seed` draws them.
    """
    layers, keys = distances.layers, distances.keys
    both = [metric for metric in distances.metrics if all((metric, c) in keys for c in CONVENTIONS)]
    halves = text_halves(distances.blocks, seed=seed)
    means = {key: distances.mean(*key) for key in keys}
    steps = len(both) + len(keys)
    compared, law = {}, {}
    for done, metric in enumerate(both):
        progress("verdicts", done, steps)
        keep, drop = (means[metric, convention] for convention in CONVENTIONS)
        compared[metric] = scoped_flips(keep, drop, layers, flips)
        law[metric] = oracle.gaussian_flip_rate(keep, drop)
    splits: dict[Key, list[Scoped]] = {}
    for done, key in enumerate(keys):
        progress("verdicts, halves of the texts", len(both) + done, steps)
        splits[key] = [
            scoped_flips(distances.mean(*key, first), distances.mean(*key, second), layers, flips)
            for first, second in halves
        ]
    scopes: list[Scope] = [ALL, WITHIN, MARGIN, *np.unique(layers).tolist()]
    floors = {
        key: {scope: Floor(np.array([split[scope].rate for split in found])) for scope in scopes}
        for key, found in splits.items()
    }
    between = {
        (convention, *pair): flips(*(means[metric, convention] for metric in pair))
        for convention in CONVENTIONS
        for pair in combinations([name for name in distances.metrics if (name, convention) in keys], 2)
    }
    progress("verdicts", steps, steps)
    against = _against_deltas(distances, means, flips)
    return Analysis(distances, compared, law, splits, floors, between, against, len(halves))


def _against_deltas(
    distances: Distances, means: Mapping[Key, Array], flips: Callable[..., VerdictFlips]
) -> dict[float, dict[str, VerdictFlips]]:
    """By delta: Aitchison's keep against drop, and each of them against what the chosen delta gives."""
    found: dict[float, dict[str, VerdictFlips]] = {}
    for delta, sums in distances.again.items():
        keep, drop = (oracle.mean_distances(sums, "aitchison", convention) for convention in CONVENTIONS)
        found[delta] = {
            "both": flips(keep, drop),
            "keep": flips(means["aitchison", "keep"], keep),
            "drop": flips(means["aitchison", "drop"], drop),
        }
    return found
