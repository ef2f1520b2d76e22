"""Some pairs of heads, drawn at random, whose distances the oracle computes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import DistanceSums
from oracle._checks import reject
from validation.distance_bounds import distance_bound
from validation.report.document import Check, Note

__all__ = ["PairVerification"]

Array = NDArray[Any]


class _Drawn(NamedTuple):
    """One pair as it was drawn: the smallest lots win. `used` is the largest deviation over its bound."""

    lot: float
    place: str
    deviation: float
    used: float


@dataclass
class PairVerification:
    """Draws `pairs` pairs of heads from all texts, each pair of each text with the same chance.

    A pair is checked as a whole: the sum over all rows of the text, by every metric and convention, and how
    many rows it is of. Which pairs are drawn depends on the seed and on the order of the texts alone; without
    a seed they are others each time. InputError for fewer than one.
    """

    pairs: int
    seed: int | None = None
    _drawn: list[_Drawn] = field(default_factory=list, repr=False)
    _seen: int = 0

    def __post_init__(self) -> None:
        """Refuse a draw of nothing, which would hold whatever the result."""
        if self.pairs < 1:
            reject(
                "verify", expected="at least one pair", found=str(self.pairs), todo="Leave it out for none."
            )
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._random = np.random.default_rng(self.seed)

    def add(
        self,
        text: int,
        layers: Sequence[int],
        rows: Array,
        sink_mask: NDArray[np.bool_],
        found: DistanceSums,
        given: Mapping[str, Any],
    ) -> None:
        """Draw from one text: `rows` (layer, head, query, key), of which `found` (1, head, head) was made.

        `given` is what `distance_sums` was told beside the rows and the sinks.
        """
        n_heads = rows.shape[1]
        first, second = np.triu_indices(len(layers) * n_heads, 1)
        lots = self._random.random(len(first))
        self._seen += len(first)
        worst_lot = self._drawn[-1].lot if len(self._drawn) == self.pairs else np.inf
        for place in np.argsort(lots)[: self.pairs]:
            if lots[place] >= worst_lot:
                break
            pair = (int(first[place]), int(second[place]))
            names = " and ".join(f"L{layers[head // n_heads]} H{head % n_heads}" for head in pair)
            where = f"text {text + 1}, heads {names}"
            two = _of_two_heads({"rows": rows, "sink_mask": sink_mask, **given}, pair)
            self._drawn.append(_compare(float(lots[place]), where, pair, found, two))
        self._drawn = sorted(self._drawn)[: self.pairs]

    def part(self) -> Check | Note:
        """The Check of all pairs drawn; a Note where there was none."""
        if not self._drawn:
            return Note("verify", "Nothing was verified: there is no pair of heads.")
        worst = max(self._drawn, key=lambda drawn: drawn.used)
        wrong = sum(not drawn.used <= 1 for drawn in self._drawn)
        said = f"largest deviation {worst.deviation:.1e}, {worst.used:.2%} of its bound, at {worst.place}"
        found = f"{wrong} pairs outside their bound; {said}" if wrong else said
        drawn = f"{len(self._drawn):,} of {self._seen:,} sums over the rows of a text and a pair of heads"
        expected = f"{drawn}, drawn with seed {self.seed}, as the oracle computes them again"
        return Check("verify", expected, found, not wrong)


def _of_two_heads(given: Mapping[str, Any], pair: tuple[int, int]) -> dict[str, Any]:
    """What `distance_sums` was told, for the two flattened heads of `pair` alone: (head, query, key)."""
    two = dict(given)
    for name in ("rows", "scores"):
        if two.get(name) is not None:
            two[name] = np.stack([two[name][divmod(head, two[name].shape[1])] for head in pair])
    return two


def _compare(
    lot: float, where: str, pair: tuple[int, int], found: DistanceSums, given: Mapping[str, Any]
) -> _Drawn:
    """The metric and convention that deviate most, of those that were computed; `given` is of two heads."""
    again = oracle.distance_sums(**given)
    results = []
    for key, sums in found.sums.items():
        value, expected = float(sums[0][pair]), float(again.sums[key][0, 0, 1])
        absolute, relative = distance_bound(key[0], given, summed=True)
        deviation = abs(value - expected)
        used = deviation / (absolute + relative * abs(expected))
        if found.counts[key][0][pair] != again.counts[key][0, 0, 1] or np.isnan(used):
            used = np.inf
        results.append(_Drawn(lot, f"{where}, {' '.join(key)}", deviation, used))
    return max(results, key=lambda drawn: drawn.used)
