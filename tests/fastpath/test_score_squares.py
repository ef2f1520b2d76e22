"""Squared Aitchison distances from scores as a matrix product: its digits, its close heads, its odd rows."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import fastpath
import oracle
from fastpath import _score_squares
from oracle import KeyRange
from validation.distance_bounds import distance_bound

KEYS, QUERIES = 127, 17
SINKS = np.arange(KEYS) == 0
METRICS = ("aitchison", "aitchison_sink")


def draw(heads=9, spread=1.0):
    return spread * np.random.default_rng(1).normal(size=(heads, QUERIES, KEYS))


def rows_of(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sums_of(layer, scores, **given):
    return layer.distance_sums(given.pop("rows", rows_of(scores)), SINKS, METRICS, scores=scores, **given)


@pytest.fixture
def differences(monkeypatch):
    """The pairs that were summed as differences, call by call."""
    called, plain = [], _score_squares._differences

    def recorded(columns, size, tiles):
        called.append((columns.shape, size, len(tiles)))
        return plain(columns, size, tiles)

    monkeypatch.setattr(_score_squares, "_differences", recorded)
    return called


def test_heads_apart_come_from_the_product_alone(differences):
    found, expected = (sums_of(layer, draw()) for layer in (fastpath, oracle))
    assert len(differences) == 1  # of the sinks
    for pair, sums in expected.sums.items():
        np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-13, atol=0)
        np.testing.assert_array_equal(found.counts[pair], expected.counts[pair])


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-7, 1e-3, 0.1, 0.3, 0.5, 0.8])
def test_close_heads_keep_their_digits_and_no_other_is_summed_again(size, differences):
    """Heads 0 and 1 are `size` apart, relative to their norms, on both sides of the border."""
    scores = draw()
    scores[1] = scores[0] + size * scores[1]
    found = sums_of(fastpath, scores)
    border = _score_squares.near_share((5, 9, 512), KEYS)
    assert 0.1 < border < 0.2
    near = size**2 / (2 + size**2) < border
    assert [call[1:] for call in differences[:-1]] == ([(1, 1)] if near else [])
    wide = scores[:2].astype(np.longdouble)
    split = oracle.aitchison_split_from_scores(wide[0], wide[1], SINKS)
    exact = float(split.content.sum())
    value = found.sums["aitchison", "drop"][0, 0, 1]
    if size == 0:
        assert value == found.sums["aitchison", "keep"][0, 0, 1] == 0
    else:
        assert value == pytest.approx(exact, rel=max(1e-13, 4e-16 / size), abs=0)


def test_content_and_sink_add_up_to_the_total_exactly():
    found = sums_of(fastpath, draw(spread=3)).sums
    total = found["aitchison", "drop"] + found["aitchison_sink", "keep"]
    np.testing.assert_array_equal(found["aitchison", "keep"], total)


def test_the_product_stays_within_the_half_of_the_tolerance_that_it_is_given():
    """Against 40 digits, for pairs at the border of what the product takes."""
    scores = draw(heads=6, spread=0.3)
    border = _score_squares.near_share((5, 6, 512), KEYS)
    scores[1:] = scores[0] + np.sqrt(2.2 * border / (1 - border)) * scores[1:]
    found = sums_of(fastpath, scores).sums["aitchison", "drop"][0]
    rows = rows_of(scores)
    given = {"rows": rows, "sink_mask": SINKS, "scores": scores}
    absolute, relative = distance_bound("aitchison", given, summed=True)
    with mpmath.workdps(40):
        for other in range(1, 6):
            exact = mpmath.mpf(0)
            for x, y in zip(scores[0, :, 1:].tolist(), scores[other, :, 1:].tolist(), strict=True):
                steps = [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(x, y, strict=True)]
                mean = sum(steps) / len(steps)
                exact += sum((step - mean) ** 2 for step in steps)
            assert abs(found[0, other] - exact) <= relative / 2 * exact, absolute


def test_rows_defined_in_some_heads_count_for_those():
    scores, rows = draw(), rows_of(draw())
    rows[2, :3], rows[4, 2:9], rows[:, 11] = 0, 0, 0
    found, expected = (sums_of(layer, scores, rows=rows) for layer in (fastpath, oracle))
    for pair, sums in expected.sums.items():
        np.testing.assert_array_equal(found.counts[pair], expected.counts[pair])
        np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-13, atol=1e-13)
    assert set(np.unique(expected.counts["aitchison", "drop"])) == {16 - 9, 16 - 7, 16 - 3, 16}


def test_rows_of_any_width_lie_one_behind_the_other(monkeypatch):
    scores = draw()
    stop = 1 + 7 * np.arange(QUERIES)
    seen = KeyRange(np.zeros_like(stop), stop)
    rows = np.where(np.arange(KEYS) < stop[:, None], np.exp(scores), 0)
    rows /= rows.sum(axis=-1, keepdims=True)
    given = {"rows": rows, "visible": seen, "queries": np.arange(QUERIES) % 3 > 0}
    expected = sums_of(oracle, scores, **given)
    for size in (_score_squares._BYTES, 1):  # all rows at once, and one at a time
        monkeypatch.setattr(_score_squares, "_BYTES", size)
        found = sums_of(fastpath, scores, **given)
        for pair, sums in expected.sums.items():
            np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-13, atol=1e-13)
            np.testing.assert_array_equal(found.counts[pair], expected.counts[pair])


def test_scores_whose_squares_overflow_are_summed_as_differences():
    scores = draw()
    scores[:2] *= 1e154
    scores[1] = scores[0] + scores[2]
    found, expected = (sums_of(layer, scores, rows=rows_of(draw())) for layer in (fastpath, oracle))
    for pair, sums in expected.sums.items():
        np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-12)


def test_many_close_heads_are_taken_by_tiles(differences):
    scores = draw(1) + 1e-3 * draw()
    found, expected = (sums_of(layer, scores) for layer in (fastpath, oracle))
    assert all(size > 1 for _, size, _ in differences)
    for pair, sums in expected.sums.items():
        np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-11)
