from __future__ import annotations

import mpmath
import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import (
    EntropySplit,
    KeyRange,
    closure,
    clr,
    entropy_change,
    entropy_change_from_scores,
    entropy_split,
    entropy_split_from_scores,
    sink_share,
)
from oracle.ops import softmax

SINK = np.array([True, False, False])
EPS = float(np.finfo(np.float64).eps)


def exact_split(row, sinks) -> tuple[mpmath.mpf, mpmath.mpf, mpmath.mpf]:
    """Total, binary and content of one row by the definition, with digits enough next to 1e-300."""

    def entropy(parts):
        whole = mpmath.fsum(parts)
        return mpmath.fsum(-p / whole * mpmath.log(p / whole) for p in parts if p)

    with mpmath.workdps(700):
        weights = [mpmath.mpf(float(weight)) for weight in row]
        content = [weight for weight, sink in zip(weights, sinks, strict=True) if not sink]
        sink = mpmath.fsum(weight for weight, s in zip(weights, sinks, strict=True) if s)
        mass = mpmath.fsum(content)
        inner = entropy(content) if mass else mpmath.nan
        return entropy([sink, *content]), entropy([sink, mass]), inner


def test_the_worked_example_is_exact_to_1e_15():
    split = entropy_split([[0.9, 0.08, 0.02]], SINK)
    h = -0.9 * np.log(0.9) - 0.1 * np.log(0.1)
    inner = -0.8 * np.log(0.8) - 0.2 * np.log(0.2)
    assert split.total.item() == pytest.approx(0.375123, abs=5e-7)
    assert abs(split.total.item() - (h + 0.1 * inner)) <= 1e-15
    assert abs(split.binary.item() - h) <= 1e-15
    assert abs(split.content.item() - inner) <= 1e-15


def test_a_row_that_is_all_sink_has_entropy_zero_and_no_content():
    split = entropy_split([[1.0, 0.0, 0.0]], SINK)
    assert (split.total.item(), split.binary.item()) == (0, 0)
    assert np.isnan(split.content).all()


@pytest.mark.parametrize(
    ("row", "sinks", "total", "binary", "content"),
    [
        ([0.0, 0.5, 0.5], [1, 0, 0], np.log(2), 0, np.log(2)),  # no sink mass
        ([0.25, 0.75, 0.0], [0, 0, 0], None, 0, -0.25 * np.log(0.25) - 0.75 * np.log(0.75)),  # no sink
        ([0.0, 1.0, 0.0], [1, 0, 0], 0, 0, 0),  # one content key takes everything
        ([0.0, 0.0, 0.0], [1, 0, 0], np.nan, np.nan, np.nan),  # no mass
        ([0.25, 0.25, 0.5], [1, 1, 1], 0, 0, np.nan),  # every key is a sink
        ([0.25, 0.25, 0.5], [1, 1, 0], np.log(2), np.log(2), 0),  # several sinks are one part
        ([1.0], [1], 0, 0, np.nan),
        ([1.0], [0], 0, 0, 0),
    ],
)
def test_odd_rows(row, sinks, total, binary, content):
    split = entropy_split([row], sinks)
    expected = EntropySplit(*(np.array([v]) for v in (content if total is None else total, binary, content)))
    for found, wanted in zip(split, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * EPS)


@pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-13, 1e-17, 1e-200, 5e-324])
@pytest.mark.parametrize("place", ["sink", "content", "both"])
def test_parts_next_to_nothing_keep_their_relative_accuracy(small, place):
    # A rounded 1 - small would lose `small`, and with it most of these entropies.
    row = {
        "sink": [1 - small, small / 3, small * 2 / 3],
        "content": [small / 2, 1 - small, small / 2],
        "both": [1 - small, small, small * small],
    }[place]
    for sinks in (SINK, ~SINK, np.zeros(3, bool)):
        split = entropy_split([row], sinks)
        for found, wanted in zip(split, exact_split(row, sinks), strict=True):
            np.testing.assert_allclose(found.item(), float(wanted), rtol=8 * EPS, atol=1e-307)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_any_dtype_against_700_digits(dtype):
    rows = random_rows(np.random.default_rng(3), 2, 3, 4, 7).astype(dtype)
    sinks = np.arange(7) % 3 == 0
    split = entropy_split(rows, sinks)
    wide = np.longdouble if dtype == "longdouble" else np.float64
    for name, found in split._asdict().items():
        assert found.dtype == wide
        assert found.shape == (2, 3, 4)
        part = EntropySplit._fields.index(name)
        for place in np.ndindex(found.shape):
            wanted = exact_split(rows[place], sinks)[part]
            assert abs(mpmath.mpf(float(found[place])) - wanted) <= 16 * EPS


def test_the_chain_rule_ties_the_parts_to_the_share():
    rows = random_rows(np.random.default_rng(4), 3, 5, 11)
    sinks = np.arange(11) == 0
    split, share = entropy_split(rows, sinks), sink_share(rows, sinks)
    np.testing.assert_allclose(split.total, split.binary + (1 - share) * split.content, rtol=1e-13)
    assert (split.content <= np.log(10) + EPS).all()
    assert (split.binary <= np.log(2) + EPS).all()


def test_what_is_not_visible_is_no_part():
    rows = np.array([[0.5, 0.25, 0.25, 9.0], [0.5, 0.5, np.nan, -1.0]])
    seen = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    split = entropy_split(rows, [1, 0, 0, 0], seen)
    np.testing.assert_allclose(split.content, [np.log(2), 0], atol=EPS)
    by_range = entropy_split(rows, [1, 0, 0, 0], KeyRange([0, 0], [3, 2]))
    for one, other in zip(split, by_range, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_arrays_without_elements(shape):
    for part in entropy_split(np.zeros(shape), np.zeros(shape[-1], bool)):
        assert part.shape == shape[:-1]
        assert np.isnan(part).all()


def test_wrong_input_is_refused_and_input_stays():
    rows = random_rows(np.random.default_rng(5), 2, 4)
    before = rows.copy()
    rows.flags.writeable = False
    entropy_split(rows, np.arange(4) == 0)
    np.testing.assert_array_equal(rows, before)
    with refused("attention", "a sum of 2"):
        entropy_split([[1.0, 1.0]], [1, 0])
    with refused("sink_mask", "shape (3,)"):
        entropy_split(rows, [1, 0, 0])


# --- closure and clr ------------------------------------------------------------------------------------


def test_closure_divides_by_the_sum_of_what_is_visible():
    np.testing.assert_array_equal(closure([[1, 2, 5], [0, 0, 0]]), [[0.125, 0.25, 0.625], [np.nan] * 3])
    np.testing.assert_array_equal(closure([[1, 3, np.nan]], [True, True, False]), [[0.25, 0.75, 0]])
    np.testing.assert_array_equal(closure([[1e308, 1e308], [5e-324, 0]]), [[0.5, 0.5], [1, 0]])
    rows = random_rows(np.random.default_rng(6), 3, 4, 7)
    np.testing.assert_allclose(closure(7 * rows), rows, rtol=1e-15)
    assert np.isnan(closure([[np.nan, np.nan]])).all()


def test_clr_is_centred_and_blind_to_scale():
    rows = random_rows(np.random.default_rng(7), 3, 4, 7)
    found = clr(rows)
    np.testing.assert_allclose(found.sum(axis=-1), 0, atol=1e-13)
    np.testing.assert_allclose(found - found[..., :1], np.log(rows) - np.log(rows[..., :1]), atol=1e-13)
    np.testing.assert_allclose(clr(5 * rows), found, atol=1e-13)


def test_clr_over_visible_parts():
    rows = np.array([[1.0, 2, 4, 0], [3, -1, np.nan, 3]])
    seen = np.array([[1, 1, 1, 0], [1, 0, 0, 1]])
    np.testing.assert_allclose(clr(rows, seen), [[-np.log(2), 0, np.log(2), 0], [0, 0, 0, 0]], atol=1e-15)
    np.testing.assert_array_equal(clr(rows[:1], KeyRange([0], [3])), clr(rows, seen)[:1])
    assert np.isnan(clr([[0.0, 0, 0], [np.nan] * 3])).all()


def test_clr_refuses_zeros_with_their_place():
    rows = np.ones((2, 3, 4, 5))
    rows[1, 0, 2, 1:3] = rows[1, 2, 3, 4] = 0
    with refused("weights", "zero at layer 1, head 0, query 2, key 1 (3 in all)", "replace_zeros"):
        clr(rows)
    with refused("weights", "-1.0 at query 0, key 1"):
        clr([[1, -1]])
    with refused("weights", "(..., query, key)"):
        closure([0.5, 0.5])


def test_closure_and_clr_equal_scikit_bio():
    skbio = pytest.importorskip("skbio.stats.composition", reason='needs pip install "sinkscope[test]"')
    for keys in (2, 3, 17, 128):
        rows = random_rows(np.random.default_rng(keys), 9, keys) * np.arange(1, 10)[:, None]
        np.testing.assert_allclose(closure(rows), skbio.closure(rows), rtol=1e-15)
        wanted = skbio.clr(skbio.closure(rows))
        np.testing.assert_allclose(clr(rows), wanted, rtol=1e-13, atol=64 * EPS)


# --- from scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_sinks", [0, 1, 3, 11])
def test_entropy_of_scores_is_that_of_their_softmax(n_sinks):
    rng = np.random.default_rng(n_sinks)
    scores = 3 * rng.standard_normal((2, 3, 11, 11)) + 200 * rng.standard_normal((2, 3, 11, 1))
    sinks, seen = np.arange(11) < n_sinks, np.tri(11, dtype=bool)
    found = entropy_split_from_scores(np.where(seen, scores, np.nan), sinks, seen)
    wanted = entropy_split(softmax(np.where(seen, scores, -np.inf)), sinks, seen)
    for one, other in zip(found, wanted, strict=True):
        # Scores near 200 come with a rounding of 200 eps, which is what the logarithms here are off by.
        np.testing.assert_allclose(one, other, rtol=0, atol=512 * EPS)


def test_content_far_below_the_sink_keeps_its_entropy():
    scores = [[0.0, -2000, -2000, -2000], [-2000, 0, 0, -np.inf]]
    seen = [[True] * 4, [True, True, True, False]]
    split = entropy_split_from_scores(scores, [1, 0, 0, 0], seen)
    np.testing.assert_allclose(split.content, [np.log(3), np.log(2)], rtol=4 * EPS)
    np.testing.assert_allclose(split.total, [0, np.log(2)], rtol=4 * EPS)
    np.testing.assert_array_equal(split.binary, [0, 0])


@pytest.mark.parametrize("depth", [30, 40, 300])
def test_entropy_of_scores_next_to_nothing_keeps_its_relative_accuracy(depth):
    # Sink and content in turn have next to no mass; a rounded one less it would lose all of it.
    odds = mpmath.mpf(2) * mpmath.exp(-depth)
    with mpmath.workdps(200):
        shares = [1 / (1 + odds), odds / (1 + odds)]
        wanted = -mpmath.fsum(share * mpmath.log(share) for share in shares)
    for scores, sinks in (([0, -depth, -depth], [1, 0, 0]), ([0, -depth, -depth], [0, 1, 1])):
        split = entropy_split_from_scores([scores], sinks)
        assert split.binary.item() == pytest.approx(float(wanted), rel=64 * EPS, abs=0)
        within = shares[1] * mpmath.log(2) if sinks[0] else 0
        assert split.total.item() == pytest.approx(float(wanted + within), rel=64 * EPS, abs=0)


def test_odd_rows_of_scores():
    seen = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1]], bool)
    split = entropy_split_from_scores(np.zeros((3, 3)), SINK, seen)
    np.testing.assert_allclose(split.total, [np.nan, 0, np.log(2)])
    np.testing.assert_allclose(split.binary, [np.nan, 0, 0])
    np.testing.assert_allclose(split.content, [np.nan, np.nan, np.log(2)])
    for shape in [(0, 3), (3, 0), (0, 0)]:
        for part in entropy_split_from_scores(np.zeros(shape), np.zeros(shape[-1], bool)):
            assert part.shape == shape[:-1]
            assert np.isnan(part).all()
    with refused("scores", "inf at query 1, key 2 (1 in all)", "visible="):
        entropy_split_from_scores([[0, 0, 0], [0, 0, np.inf]], SINK)


# --- the change between two rows ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_the_two_channels_add_up_to_the_change(dtype):
    raw = random_rows(np.random.default_rng(8), 2, 50, 4, 23).astype(dtype)
    raw.flags.writeable = False
    x, y = raw
    sinks = np.arange(23) % 5 == 0
    change = entropy_change(x, y, sinks)
    assert {part.dtype.type for part in change} == {np.longdouble if dtype == "longdouble" else np.float64}
    assert np.abs(change.total - change.sink - change.content).max() <= 1e-13
    before, after = entropy_split(x, sinks), entropy_split(y, sinks)
    assert np.abs(change.total - (after.total - before.total)).max() <= 1e-13
    shares = sink_share(x, sinks), sink_share(y, sinks)
    content = (1 - (shares[0] + shares[1]) / 2) * (after.content - before.content)
    np.testing.assert_allclose(change.content, content, rtol=0, atol=1e-13)
    for forward, back in zip(change, entropy_change(y, x, sinks), strict=True):
        np.testing.assert_allclose(back, -forward, rtol=0, atol=1e-15)


def test_each_channel_moves_alone():
    row = np.array([[0.5, 0.3, 0.2]])
    more_sink = np.array([[0.75, 0.15, 0.1]])
    other_content = np.array([[0.5, 0.25, 0.25]])
    grown = entropy_change(row, more_sink, SINK)
    assert abs(grown.content.item()) <= EPS
    assert grown.sink.item() == pytest.approx(grown.total.item(), rel=1e-14)
    turned = entropy_change(row, other_content, SINK)
    assert abs(turned.sink.item()) <= EPS
    assert turned.content.item() == pytest.approx(turned.total.item(), rel=1e-14)


def test_the_change_of_odd_rows():
    x = [[1.0, 0, 0], [0.5, 0.25, 0.25], [0, 0, 0]]
    y = [[0.5, 0.25, 0.25]] * 3
    change = entropy_change(x, y, SINK)
    np.testing.assert_allclose(change.total, [1.5 * np.log(2), 0, np.nan], atol=EPS)
    np.testing.assert_array_equal(np.isnan(change.sink), [True, False, True])
    np.testing.assert_array_equal(np.isnan(change.content), [True, False, True])
    no_sink = entropy_change(x[1:2], y[:1], [0, 0, 0])
    assert (no_sink.sink.item(), no_sink.total.item()) == (0, 0)
    assert entropy_change(np.zeros((2, 0, 3)), np.zeros((0, 3)), SINK).total.shape == (2, 0)
    with refused("y", "a sum of 2 at query 1"):
        entropy_change(x, [[1, 0, 0], [1, 1, 0], [0, 0, 1]], SINK)


@pytest.mark.parametrize("n_sinks", [0, 1, 3])
def test_the_change_from_scores_is_that_of_their_softmax(n_sinks):
    scores = 3 * np.random.default_rng(n_sinks).standard_normal((2, 4, 11, 11))
    sinks, seen = np.arange(11) < n_sinks, np.tri(11, dtype=bool)
    rows = softmax(np.where(seen, scores, -np.inf))
    found = entropy_change_from_scores(*np.where(seen, scores, np.nan), sinks, seen)
    for one, other in zip(found, entropy_change(*rows, sinks, seen), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=64 * EPS)
    back = entropy_change_from_scores(scores[1], scores[0], sinks, seen)
    for one, other in zip(found, back, strict=True):
        np.testing.assert_allclose(one, -other, rtol=0, atol=4 * EPS)
    lengths = entropy_change_from_scores(scores[0], scores[1, 0], sinks, KeyRange.causal(11))
    np.testing.assert_array_equal(lengths.total[0], found.total[0])
    assert lengths.total.shape == (4, 11)


@pytest.mark.parametrize("depth", [40, 300])
def test_the_change_of_content_far_below_its_sink_keeps_its_digits(depth):
    x, y = [[0.0, -depth, -depth]], [[0.0, -depth, -depth - 2]]
    change = entropy_change_from_scores(x, y, SINK)
    with mpmath.workdps(300):
        rows = [[mpmath.exp(score) for score in row[0]] for row in (x, y)]
        masses = [mpmath.fsum(row[1:]) / mpmath.fsum(row) for row in rows]
        content = [
            mpmath.fsum(-p / sum(row[1:]) * mpmath.log(p / sum(row[1:])) for p in row[1:]) for row in rows
        ]
        binary = [-m * mpmath.log(m) - (1 - m) * mpmath.log(1 - m) for m in masses]
        wanted = (
            binary[1] - binary[0] + (masses[1] - masses[0]) * sum(content) / 2,
            sum(masses) / 2 * (content[1] - content[0]),
        )
    # The two terms of the sink channel nearly cancel nothing: each keeps its relative accuracy.
    assert change.sink.item() == pytest.approx(float(wanted[0]), rel=256 * EPS, abs=0)
    assert change.content.item() == pytest.approx(float(wanted[1]), rel=64 * EPS, abs=0)
    assert change.total.item() == pytest.approx(float(sum(wanted)), rel=256 * EPS, abs=0)


def test_the_change_from_scores_of_odd_rows():
    seen = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1]], bool)
    change = entropy_change_from_scores(np.zeros((3, 3)), np.eye(3), SINK, seen)
    np.testing.assert_array_equal(np.isnan(change.total), [True, False, False])
    np.testing.assert_array_equal(np.isnan(change.sink), [True, True, False])
    np.testing.assert_array_equal(np.isnan(change.content), [True, True, False])
    assert (change.total[1], change.sink[2]) == (0, 0)
    assert entropy_change_from_scores(np.zeros((2, 0, 3)), np.zeros((0, 3)), SINK).total.shape == (2, 0)
    with refused("y", "inf at query 1, key 2 (1 in all)", "visible="):
        entropy_change_from_scores(np.zeros((2, 3)), [[0, 0, 0], [0, 0, np.inf]], SINK)
    with refused("y", "(2, 3)", "shape (4, 3)"):
        entropy_change_from_scores(np.zeros((2, 3)), np.zeros((4, 3)), SINK)


def test_averages_do_not_split():
    rows = random_rows(np.random.default_rng(9), 2, 40, 7)
    change = entropy_change(rows[0][None], rows[1][None], np.arange(7) == 0)
    means = [np.mean(part) for part in change]
    assert means[0] == pytest.approx(means[1] + means[2], abs=1e-14)
    pooled = [np.mean(np.stack(entropy_split(side, np.arange(7) == 0)), axis=-1) for side in rows]
    shares = [sink_share(side, np.arange(7) == 0).mean() for side in rows]
    sink = pooled[1][1] - pooled[0][1] - (shares[1] - shares[0]) * (pooled[0][2] + pooled[1][2]) / 2
    content = (1 - sum(shares) / 2) * (pooled[1][2] - pooled[0][2])
    assert abs(means[0] - sink - content) > 1e-3
