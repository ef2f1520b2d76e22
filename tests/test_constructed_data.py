"""Verdicts on data whose answer is known: no sink effect, pure noise, and nothing but the sink."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import oracle
from oracle import DistanceSums, VerdictFlips

# Distances that carry the content with its mass: one sink share for all rows scales all of them alike.
CARRIED = ("jsd", "root_jsd", "hellinger", "l1", "entropy")
BOTH = ("cosine", *CARRIED, "aitchison")
HEADS, TEXTS, TOKENS = 9, 6, 11


def content_rows(seed: int, spread: float = 1.5, texts: int = TEXTS) -> list[np.ndarray]:
    """Closed content weights (head, query, key) of each text, drawn for each row by itself."""
    rng = np.random.default_rng(seed)
    weights = [np.exp(rng.normal(0, spread, (HEADS, TOKENS - 1, TOKENS - 1))) for _ in range(texts)]
    return [w / w.sum(axis=-1, keepdims=True) for w in weights]


def with_sink(content: np.ndarray, share: np.ndarray | float, of_two: np.ndarray | None = None) -> np.ndarray:
    """Whole rows (head, query, key): one sink key before the content, or two that divide the share."""
    shares = np.broadcast_to(share, content.shape[:-1])[..., None]
    sinks = [shares] if of_two is None else [shares * of_two, shares * (1 - of_two)]
    return np.concatenate([*sinks, (1 - shares) * content], axis=-1)


def sums_of(
    rows: Sequence[np.ndarray], sinks: int = 1, metrics: Sequence[str] = oracle.METRICS
) -> DistanceSums:
    sink_mask = np.arange(rows[0].shape[-1]) < sinks
    return oracle.distance_sums(list(rows), sink_mask, metrics)


def keep_against_drop(found: DistanceSums, metric: str) -> VerdictFlips:
    return oracle.verdict_flips(*(oracle.mean_distances(found, metric, c) for c in oracle.CONVENTIONS))


def floor(found: DistanceSums, metric: str, convention: str, seeds: int = 20) -> float:
    """Median over random halves of the texts of the flips between the two halves."""
    texts = len(found.sums[metric, convention])
    rates = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(texts)
        halves = [
            oracle.mean_distances(found, metric, convention, half)
            for half in (order[: texts // 2], order[texts // 2 :])
        ]
        rates.append(oracle.verdict_flips(*halves).rate)
    return float(np.median(rates))


# --- every row has one and the same sink share ----------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.7, 0.999])
@pytest.mark.parametrize("sinks", [1, 2])
def test_with_one_sink_share_nothing_that_carries_the_mass_flips(share: float, sinks: int) -> None:
    of_two = np.random.default_rng(1).uniform(0.1, 0.9, (HEADS, TOKENS - 1, 1)) if sinks == 2 else None
    found = sums_of([with_sink(content, share, of_two) for content in content_rows(0)], sinks, CARRIED)
    for metric in CARRIED:
        flips = keep_against_drop(found, metric)
        assert (flips.flipped, flips.undefined) == (0, 0), metric
        assert flips.triples == HEADS * (HEADS - 1) * (HEADS - 2) // 2


def test_with_one_sink_share_cosine_and_the_total_aitchison_distance_flip_all_the_same() -> None:
    found = sums_of([with_sink(content, 0.7) for content in content_rows(0)], metrics=("cosine", "aitchison"))
    assert keep_against_drop(found, "cosine").flipped > 0
    assert keep_against_drop(found, "aitchison").flipped > 0


def test_equal_sink_mass_leaves_a_sink_term() -> None:
    """Why the total flips: the sink term is a log-ratio to the geometric mean of the content."""
    found = sums_of([with_sink(content, 0.7) for content in content_rows(0)])
    sink, total = (oracle.mean_distances(found, m, "keep") for m in ("aitchison_sink", "aitchison"))
    apart = ~np.eye(HEADS, dtype=bool)
    assert (sink[apart] > 0.001 * total[apart]).all()


def test_unlike_sink_shares_flip_what_equal_ones_do_not() -> None:
    rng = np.random.default_rng(3)
    shares = rng.uniform(0.05, 0.95, (TEXTS, HEADS, TOKENS - 1))
    found = sums_of([with_sink(c, s) for c, s in zip(content_rows(0), shares, strict=True)], metrics=CARRIED)
    assert all(keep_against_drop(found, metric).flipped > 0 for metric in CARRIED)


# --- pure noise -----------------------------------------------------------------------------------------


def rates_on_noise(metric: str, found: Sequence[DistanceSums]) -> list[float]:
    """Means over draws: the flips of keep against drop, what the arccos law makes of them, both floors."""
    rates = []
    for sums in found:
        means = [oracle.mean_distances(sums, metric, convention) for convention in oracle.CONVENTIONS]
        law = float(np.mean(oracle.gaussian_flip_rate(*means)))
        floors = [floor(sums, metric, convention) for convention in oracle.CONVENTIONS]
        rates.append([keep_against_drop(sums, metric).rate, law, *floors])
    return [float(mean) for mean in np.mean(rates, axis=0)]


def noise(spread: float, least: float, most: float, draws: int = 6) -> list[DistanceSums]:
    """No head differs from another: content of some spread, and sink shares between two numbers."""
    found = []
    for seed in range(draws):
        drawn = np.random.default_rng(100 + seed).uniform(least, most, (TEXTS, HEADS, TOKENS - 1))
        rows = [with_sink(c, s) for c, s in zip(content_rows(seed, spread), drawn, strict=True)]
        found.append(sums_of(rows))
    return found


# A rate of one draw scatters by up to 0.07 around its expectation, the mean of six by 0.03.
def test_on_noise_flips_are_those_of_the_arccos_law_and_the_floor_is_a_coins_throw() -> None:
    """Which of two heads is nearer is a coin's throw, again for each half; keep and drop share the rows."""
    found = noise(1.5, 0.4, 0.6)
    for metric in BOTH:
        rate, law, *floors = rates_on_noise(metric, found)
        assert rate == pytest.approx(law, abs=0.03), metric
        assert floors == pytest.approx([0.5, 0.5], abs=0.06), metric
        assert rate < min(floors) - 0.15, metric


def test_on_noise_of_the_sink_half_of_all_verdicts_flip_and_no_more_than_between_halves() -> None:
    """Content that hardly differs, shares that do: keep and drop have nothing in common, nor have halves."""
    found = noise(0.05, 0.05, 0.95)
    for metric in BOTH:
        rates = rates_on_noise(metric, found)
        assert rates == pytest.approx([0.5] * 4, abs=0.08), metric


def test_where_heads_differ_the_floor_falls_below_the_flips() -> None:
    """So that the rule can fail: heads of other content, and shares that cut across them."""
    rng = np.random.default_rng(0)
    tilt = np.linspace(-2, 2, TOKENS - 1)
    kinds = rng.permutation(HEADS)[:, None, None] / HEADS * tilt
    shares = np.linspace(0.1, 0.9, HEADS)[:, None]
    rows = []
    for _ in range(TEXTS):
        weights = np.exp(kinds + rng.normal(0, 0.1, (HEADS, TOKENS - 1, TOKENS - 1)))
        rows.append(with_sink(weights / weights.sum(axis=-1, keepdims=True), shares))
    found = sums_of(rows)
    for metric in ("jsd", "cosine", "aitchison"):
        floors = [floor(found, metric, convention) for convention in oracle.CONVENTIONS]
        assert keep_against_drop(found, metric).rate > 2 * max(floors), metric


# --- only the sink differs ------------------------------------------------------------------------------


def test_where_only_the_sink_differs_drop_sees_nothing_and_keep_the_sink_alone() -> None:
    """Shares 1 - 2^-k and dyadic content, so that every row and every closure of it is exact."""
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(3):
        counts = rng.multinomial(64 - TOKENS + 1, np.full(TOKENS - 1, 1 / (TOKENS - 1)), TOKENS - 1) + 1
        content = np.broadcast_to(counts / 64, (HEADS, TOKENS - 1, TOKENS - 1))
        rows.append(with_sink(content, 1 - 0.5 ** np.arange(1, HEADS + 1)[:, None]))
    found = sums_of(rows)
    apart = ~np.eye(HEADS, dtype=bool)
    triples = HEADS * (HEADS - 1) * (HEADS - 2) // 2
    for metric in ("jsd", "root_jsd", "hellinger", "l1", "entropy"):
        dropped = oracle.mean_distances(found, metric, "drop")
        assert not dropped.any(), metric
        flips = keep_against_drop(found, metric)
        assert (flips.flipped, flips.tied) == (0, triples), metric
        assert (oracle.mean_distances(found, metric, "keep")[apart] > 0).all(), metric
    total, sink = (oracle.mean_distances(found, m, "keep") for m in ("aitchison", "aitchison_sink"))
    content = oracle.mean_distances(found, "aitchison", "drop")
    np.testing.assert_allclose(sink[apart], total[apart], rtol=1e-12)
    assert content.max() < 1e-28
    assert oracle.mean_distances(found, "cosine", "drop").max() < 1e-15
    # the sink's log-odds are k ln 2 apart, up to the rounding of 1 - 2^-k, whatever the content is
    assert oracle.verdict_flips(total, sink).flipped == 0
