"""Squared Aitchison distances from scores as a matrix product: its digits, its close heads, its odd rows."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import fastpath
import oracle
from fastpath import _aitchison, _parts, _score_squares, distances
from fastpath._pair_kernels import tiles_of
from fastpath._parts import rows_of_pairs
from oracle import KeyRange
from validation.distance_bounds import distance_bound

KEYS, QUERIES = 127, 17
PARTS = 128  # as they are laid out
SINKS = np.arange(KEYS) == 0
EPS = float(np.finfo(np.float64).eps)
METRICS = ("aitchison", "aitchison_sink")


def draw(heads=9, spread=1.0):
    return spread * np.random.default_rng(1).normal(size=(heads, QUERIES, KEYS))


def rows_of(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sums_of(layer, scores, **given):
    return layer.distance_sums(given.pop("rows", rows_of(scores)), SINKS, METRICS, scores=scores, **given)


def derived_border():
    """At this share of two norms the product's rounding is half of what closing and centring may do."""
    scores = np.zeros((2, QUERIES, KEYS))  # none is over one
    given = {"rows": rows_of(scores), "sink_mask": SINKS, "scores": scores}
    _, relative = distance_bound("aitchison", given, summed=True)
    closing = relative - (40 + 12 + QUERIES) * EPS
    return 8 * math.sqrt(QUERIES * PARTS) * EPS / (closing / 2)


@pytest.fixture
def differences(monkeypatch):
    """Size and first heads of the tiles that were summed as differences, call by call: first of the sinks."""
    called, plain = [], _score_squares._differences

    def recorded(parts, width, defined=None, tiles=None):
        size, chosen = tiles or tiles_of(parts.shape[1])
        called.append((size, chosen.tolist()))
        return plain(parts, width, defined, tiles)

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
    near = size**2 / (2 + size**2) < derived_border()
    assert differences[1:] == ([(1, [[0, 1]])] if near else [])
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


def test_the_pairs_summed_again_are_those_that_the_derived_border_names(differences):
    """Four pairs of heads that are all at right angles but for their partner, closely around the border."""
    border = derived_border()
    assert 0.1 < border < 0.2
    directions = np.random.default_rng(3).normal(size=(8, QUERIES, KEYS - 1))
    directions -= directions.mean(axis=-1, keepdims=True)
    directions = np.linalg.qr(directions.reshape(8, -1).T)[0].T.reshape(directions.shape)
    shares = border * np.array([0.5, 0.98, 1.02, 2])
    steps = np.sqrt(2 * shares / (1 - shares))[:, None, None]
    directions[1::2] = directions[::2] + steps * directions[1::2]
    scores = np.concatenate([np.zeros((8, QUERIES, 1)), directions], axis=-1)
    sums_of(fastpath, scores / np.abs(scores).max())
    assert differences[1:] == [(1, [[0, 1], [2, 3]])]


def test_the_product_stays_within_the_half_of_the_tolerance_that_it_is_given():
    """Against 40 digits, for pairs at the border of what the product takes."""
    scores = draw(heads=6, spread=0.3)
    border = derived_border()
    scores[1:] = scores[0] + np.sqrt(2.2 * border / (1 - border)) * scores[1:]
    found = sums_of(fastpath, scores).sums["aitchison", "drop"][0]
    rows = rows_of(scores)
    given = {"rows": rows, "sink_mask": SINKS, "scores": scores}
    _, relative = distance_bound("aitchison", given, summed=True)
    with mpmath.workdps(40):
        for other in range(1, 6):
            exact = mpmath.mpf(0)
            for x, y in zip(scores[0, :, 1:].tolist(), scores[other, :, 1:].tolist(), strict=True):
                steps = [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(x, y, strict=True)]
                mean = sum(steps) / len(steps)
                exact += sum((step - mean) ** 2 for step in steps)
            off = abs(found[0, other] - exact)
            assert off <= relative / 2 * exact, f"off by {float(off / exact):.2g} of itself"


def test_rows_defined_in_some_heads_count_for_those():
    scores, rows = draw(), rows_of(draw())
    rows[2, :3], rows[4, 2:9], rows[:, 11] = 0, 0, 0
    found, expected = (sums_of(layer, scores, rows=rows) for layer in (fastpath, oracle))
    for pair, sums in expected.sums.items():
        np.testing.assert_array_equal(found.counts[pair], expected.counts[pair])
        np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-13, atol=1e-13)
    assert set(np.unique(expected.counts["aitchison", "drop"])) == {16 - 9, 16 - 7, 16 - 3, 16}


@pytest.fixture
def steps(monkeypatch):
    """What is done one after the other: compiled passes, and products with the columns they are of."""
    done = []

    def recorded(name, function):
        def call(*given, **named):
            done.append(name)
            return function(*given, **named)

        return call

    def product(columns, near, plain=_score_squares._multiplied):
        done.append(columns.shape)
        return plain(columns, near)

    for name in ("centre_scores", "_differences"):
        monkeypatch.setattr(_score_squares, name, recorded("compiled", getattr(_score_squares, name)))
    monkeypatch.setattr(_score_squares, "_multiplied", product)
    return done


def test_one_product_comes_after_all_compiled_passes_over_a_text(steps):
    scores, rows = draw(), rows_of(draw())
    rows[2, :3], rows[4, 2:9], rows[:, 11] = 0, 0, 0
    sums_of(fastpath, scores, rows=rows)
    assert steps[:-1] == ["compiled"] * (len(steps) - 1)
    assert steps[-1] == (1, 9, (QUERIES - 10) * PARTS)  # 9 rows that some lack, 1 that all lack


def test_where_every_row_is_lacked_by_some_head_nothing_is_multiplied(steps):
    scores, rows = draw(), rows_of(draw())
    rows[np.arange(QUERIES) % 9, np.arange(QUERIES)] = 0
    sums_of(fastpath, scores, rows=rows)
    assert set(steps) == {"compiled"}


def test_rows_that_all_heads_have_or_lack_are_counted_without_a_product():
    """A product of integers is slow: only rows that some heads lack are in it."""
    multiplied = []

    class Watched(np.ndarray):
        def __matmul__(self, other):
            multiplied.append(len(other))
            return np.asarray(self) @ np.asarray(other)

    defined = np.ones((5, 3), dtype=bool)
    defined[1], defined[3, 2] = False, False
    counts = rows_of_pairs(defined.view(Watched))
    assert multiplied == [1]
    np.testing.assert_array_equal(counts, [[4, 4, 3], [4, 4, 3], [3, 3, 3]])


def test_rows_that_do_not_count_are_not_counted_with(monkeypatch):
    seen, plain = [], _aitchison.rows_of_pairs
    monkeypatch.setattr(_aitchison, "rows_of_pairs", lambda defined: seen.append(defined) or plain(defined))
    sums_of(fastpath, draw(), queries=np.arange(QUERIES) % 3 > 0)
    (defined,) = seen
    assert defined.all()
    assert len(defined) == QUERIES - 6


def test_parts_are_selected_once_for_a_text(monkeypatch):
    texts, plain = [], _parts.select_parts
    for module in (_aitchison, distances):
        if hasattr(module, "select_parts"):
            monkeypatch.setattr(module, "select_parts", lambda text: texts.append(text) or plain(text))
    sums_of(fastpath, draw())
    assert len(texts) == 1


def test_rows_of_any_width_lie_one_behind_the_other(monkeypatch):
    scores = draw()
    stop = 1 + 7 * np.arange(QUERIES)
    seen = KeyRange(np.zeros_like(stop), stop)
    rows = np.where(np.arange(KEYS) < stop[:, None], np.exp(scores), 0)
    rows /= rows.sum(axis=-1, keepdims=True)
    given = {"rows": rows, "visible": seen, "queries": np.arange(QUERIES) % 3 > 0}
    expected = sums_of(oracle, scores, **given)
    for size in (_score_squares._BYTES, 1):  # all rows at once, and one at a time
        for limit in ("_BYTES", "_FEW_BYTES"):
            monkeypatch.setattr(_score_squares, limit, size)
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
    assert all(size > 1 for size, _ in differences)
    for pair, sums in expected.sums.items():
        np.testing.assert_allclose(found.sums[pair], sums, rtol=1e-11)
