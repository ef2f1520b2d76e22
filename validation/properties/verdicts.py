"""Laws of verdicts: which of two heads is nearer to a third, and how often two distance matrices disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation import verdict_definitions as definitions
from validation.properties.finding import Finding, deviation
from validation.properties.implementation import Implementation

__all__ = [
    "arccos_by_definition",
    "flips_are_symmetric",
    "flips_by_brute_force",
    "flips_of_a_reversal",
    "monotone_changes_no_verdict",
    "no_flips_with_itself",
]

Array = NDArray[Any]


def flips_by_brute_force(
    implementation: Implementation, first: Any, second: Any, groups: Any = None, margin: float = 0.0
) -> Finding:
    """Every count equals that over all triples, taken one by one, and so do the rates, bit for bit."""
    found = implementation.verdict_flips(first, second, groups, margin)
    wanted = definitions.verdict_flips(first, second, groups, margin)
    return Finding("flips by brute force", *_apart(found, wanted))


def flips_are_symmetric(
    implementation: Implementation, first: Any, second: Any, groups: Any = None
) -> Finding:
    """Which matrix comes first changes nothing."""
    there, back = (implementation.verdict_flips(*pair, groups) for pair in ((first, second), (second, first)))
    return Finding("flips are symmetric", *_apart(back, there))


def no_flips_with_itself(implementation: Implementation, matrix: Any, groups: Any = None) -> Finding:
    """A matrix never flips against itself, whatever is tied or undefined in it."""
    found = implementation.verdict_flips(matrix, matrix, groups)
    per_anchor = np.nan_to_num(np.asarray(found.per_anchor))
    error = float(found.flipped + np.abs(per_anchor).sum() + (found.rate if found.triples else 0.0))
    return Finding("no flips with itself", error, 0.0, f"{found.flipped} of {found.triples} triples")


def monotone_changes_no_verdict(implementation: Implementation, first: Any, second: Any) -> Finding:
    """A strictly increasing map of one matrix (x to 3 x + 1, and e**x) changes no count and no rate.

    Distances are zero or well apart, so that no map makes or breaks a tie.
    """
    plain = implementation.verdict_flips(first, second)
    mapped = [np.asarray(first) * 3 + 1, np.exp(np.asarray(first))]
    gaps = [_apart(implementation.verdict_flips(matrix, second), plain) for matrix in mapped]
    return Finding("monotone maps change no verdict", *max(gaps))


def flips_of_a_reversal(implementation: Implementation, matrix: Any) -> Finding:
    """Against its own negative every triple that is not tied flips, so that tied + flipped = triples."""
    given = np.asarray(matrix)
    found = implementation.verdict_flips(given, given.max() - given)
    error = abs(found.triples - found.tied - found.flipped)
    return Finding("a reversal flips what is not tied", float(error), 0.0, f"{found.flipped} flips")


def arccos_by_definition(implementation: Implementation, first: Any, second: Any) -> Finding:
    """Rates arccos(rho) / pi per anchor, rho taken in a loop.

    The arccos has an infinite slope at rho = 1: there a rate is known to the root of what rho is known to.
    """
    found = implementation.gaussian_flip_rate(first, second)
    gap = deviation(np.cos(np.pi * found), np.cos(np.pi * definitions.gaussian_flip_rate(first, second)))
    return Finding("arccos by definition", gap[0], 2 * implementation.rounding(len(found)), gap[1])


def _apart(found: Any, wanted: Any) -> tuple[float, float, str]:
    """Error, bound (zero) and place: the largest difference of a count or a rate."""
    gaps = {
        name: deviation(getattr(found, name), getattr(wanted, name))
        for name in ("flipped", "triples", "tied", "undefined", "rate", "per_anchor")
    }
    name, gap = max(gaps.items(), key=lambda item: item[1][0])
    return gap[0], 0.0, f"{name} {getattr(found, name)} instead of {getattr(wanted, name)}" if gap[0] else ""
