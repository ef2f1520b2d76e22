"""The cases about heads: divergences of all pairs, every distance at once, verdicts about triples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastpath
import oracle
from oracle import METRICS, DistanceSums
from validation import peers
from validation.bench.case import Case, Contender
from validation.bench.inputs import draw_rows
from validation.distance_bounds import distance_bound
from validation.registry import Bound

__all__ = ["distance_case", "divergence_case", "verdict_case"]

Array = NDArray[Any]

_SOME = 12  # heads whose distances are compared with the oracle's, and taken by the slowest peer
_FLOAT32_PEER = {"jsd": Bound(2e-2)}  # of a sum over rows: a float32 eps for each logarithm and part


def divergence_case(sizes: tuple[int, int, int], judged: bool = True) -> Case:
    """Jensen-Shannon divergences of all pairs of heads of `sizes` (head, query, key), summed over the rows.

    Ours gives both conventions, and so does SciPy's; the published recipe gives one. The peers are handed the
    rows as parts, ready made.
    """
    rows, sinks = _draw(sizes)
    content = rows[..., ~sinks]
    parts = np.concatenate([content, rows[..., sinks].sum(-1, keepdims=True)], axis=-1)
    content = content / content.sum(-1, keepdims=True)
    heads = sizes[0]
    some = min(_SOME, heads)
    peer = {"jsd": Bound(0.0, 1e-9)}
    return Case(
        "distances",
        f"JSD of all pairs of {heads} heads, {sizes[1]} x {sizes[2]}, float64, both conventions",
        lambda: _some(oracle.distance_sums(rows[:some], sinks, "jsd")),
        (
            Contender(
                "fastpath",
                lambda: _some(fastpath.distance_sums(rows, sinks, "jsd")),
                _bounds(rows[:some]),
            ),
            Contender(
                "numpy, loop over heads",
                lambda: _kept(peers.numpy_divergences(parts)),
                peer,
                slow=True,
                partial=True,
            ),
            Contender(
                "the same, float32",
                lambda: _kept(peers.numpy_divergences(parts.astype(np.float32))),
                _FLOAT32_PEER,
                slow=True,
                partial=True,
            ),
            Contender(
                "scipy, pair by pair, both conventions",
                lambda: {
                    "jsd keep": peers.scipy_divergences(parts[:some]),
                    "jsd drop": peers.scipy_divergences(content[:some]),
                },
                peer,
                peers.scipy_missing(),
                share=some * (some - 1) / (heads * (heads - 1)),
            ),
        ),
        (
            "the loop over heads gives one convention; it is that of Clark et al. 2019 without its smoothing",
            f"scipy: {some * (some - 1) // 2} pairs of {heads * (heads - 1) // 2} timed, scaled to all; one "
            "convention alone takes it half the time",
            f"compared with the oracle for {some} heads",
        ),
        judged,
        "jsd",
    )


def distance_case(sizes: tuple[int, int, int], judged: bool = True) -> Case:
    """Every metric under both conventions in one call, against the divergences alone."""
    rows, sinks = _draw(sizes)
    some = min(_SOME, sizes[0])
    bounds = _bounds(rows[:some])
    return Case(
        "all distances",
        f"Every metric under both conventions, {sizes[0]} heads",
        lambda: _some(oracle.distance_sums(rows[:some], sinks)),
        (
            Contender("fastpath", lambda: _some(fastpath.distance_sums(rows, sinks)), bounds),
            Contender(
                "fastpath, JSD alone",
                lambda: _some(fastpath.distance_sums(rows, sinks, "jsd")),
                bounds,
                partial=True,
            ),
        ),
        (f"{len(METRICS)} metrics, all but one under both conventions, from one layout of the rows",),
        judged,
        "jsd",
    )


def verdict_case(heads: int, judged: bool = True) -> Case:
    """Flips of all triples between two distance matrices (head, head) without ties."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(2, heads, 3)) + rng.normal(size=(heads, 3))
    first, second = (np.linalg.norm(place[:, None] - place, axis=-1) for place in places)

    def by_oracle() -> Mapping[str, Array]:
        return {"flips": oracle.verdict_flips(first, second).per_anchor}

    return Case(
        "verdicts",
        f"Verdicts of {heads} heads: {heads * (heads - 1) * (heads - 2) // 2:,} triples",
        by_oracle,
        (
            Contender(
                "fastpath",
                lambda: {"flips": fastpath.verdict_flips(first, second).per_anchor},
                {"flips": Bound(0.0)},
            ),
            Contender(
                "scipy, Kendall's tau",
                lambda: {"flips": peers.scipy_flips(first, second)},
                {"flips": Bound(1e-12)},
                peers.scipy_missing(),
            ),
            Contender("oracle, float64", by_oracle, slow=True),
        ),
        ("Kendall's tau sorts, and is the flip rate only where nothing is tied or missing",),
        judged,
        "flips",
    )


def _draw(sizes: tuple[int, int, int]) -> tuple[Array, NDArray[np.bool_]]:
    """Rows (head, query, key), float64 and closed, and the sink mask."""
    attention, sinks, _ = draw_rows(sizes)
    rows = attention.astype(np.float64)
    return rows / rows.sum(axis=-1, keepdims=True), sinks


def _some(found: DistanceSums) -> dict[str, Array]:
    """The distances of the first heads, by metric and convention."""
    return {" ".join(pair): sums[0, :_SOME, :_SOME] for pair, sums in found.sums.items()}


def _kept(sums: Array) -> dict[str, Array]:
    return {"jsd keep": sums[:_SOME, :_SOME]}


def _bounds(rows: Array) -> dict[str, Bound]:
    return {metric: Bound(*distance_bound(metric, {"rows": rows}, summed=True)) for metric in METRICS}
