"""What the registry's cases do not try: threads, blocks and tiles, close rows, ties, a real model."""

from __future__ import annotations

import mpmath
import numba
import numpy as np
import pytest

import fastpath
import oracle
from fastpath import _pair_kernels, _parts
from oracle import CONVENTIONS, METRICS, KeyRange

PAIRS = [(m, c) for m in METRICS for c in CONVENTIONS if (m, c) != ("aitchison_sink", "drop")]
SINKS = np.isin(np.arange(13), (0, 12))


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture
def scores():
    """Of 11 heads; with a pull to the sinks, as heads have it."""
    scores = np.random.default_rng(9).normal(size=(11, 5, 13))
    scores[..., SINKS] += np.linspace(-2, 6, 11)[:, None, None]
    return scores


def same_bits(first, second):
    for pair in PAIRS:
        assert first.sums[pair].tobytes() == second.sums[pair].tobytes(), pair
        np.testing.assert_array_equal(first.counts[pair], second.counts[pair])


def test_any_thread_count_gives_the_same_bits(scores):
    before = numba.get_num_threads()
    found = []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            plain = fastpath.distance_sums(softmax(scores), SINKS)
            found.append([plain, fastpath.distance_sums(softmax(scores), SINKS, scores=scores)])
    finally:
        numba.set_num_threads(before)
    for one, many in zip(*found, strict=True):
        same_bits(one, many)


@pytest.mark.parametrize("zeros", ["refuse", "common-support"])
def test_blocks_and_tiles_change_no_bit(scores, zeros, monkeypatch):
    rows, queries = softmax(scores), np.array([True, True, False, True, True])
    given = {"queries": queries, "zeros": zeros}
    whole = fastpath.distance_sums(rows, SINKS, **given)
    monkeypatch.setattr(_parts, "_BLOCK_BYTES", 1)  # a row in each
    same_bits(whole, fastpath.distance_sums(rows, SINKS, **given))
    monkeypatch.setattr(_pair_kernels, "TILE", 1)
    same_bits(whole, fastpath.distance_sums(rows, SINKS, **given))


def test_what_is_asked_for_alone_has_the_same_bits(scores):
    every = fastpath.distance_sums(softmax(scores), SINKS)
    for metric, convention in PAIRS:
        alone = fastpath.distance_sums(softmax(scores), SINKS, metric, convention)
        assert list(alone.sums) == list(alone.counts) == [(metric, convention)]
        assert alone.sums[metric, convention].tobytes() == every.sums[metric, convention].tobytes()


def test_distances_are_symmetric_and_zero_to_itself(scores):
    found = fastpath.distance_sums(softmax(scores), SINKS)
    for pair in PAIRS:
        np.testing.assert_array_equal(found.sums[pair], found.sums[pair].swapaxes(1, 2))
        assert not np.diagonal(found.sums[pair], axis1=1, axis2=2).any()
        assert (found.counts[pair] == 5).all()


def test_equal_heads_are_at_zero_and_tied_for_every_other(scores):
    rows = softmax(scores)[[0, 1, 2, 1, 4]]
    found = fastpath.distance_sums(rows, SINKS)
    for pair in PAIRS:
        assert found.sums[pair][0, 1, 3] == 0
        matrix = found.sums[pair][0]
        np.testing.assert_allclose(matrix[[0, 2, 4], 1], matrix[[0, 2, 4], 3], rtol=1e-15)
        assert fastpath.verdict_flips(matrix, matrix).tied >= 3


@pytest.mark.parametrize("size", [0.3, 1e-2, 1e-4, 1e-7])
def test_close_rows_keep_their_digits(size):
    """Against 50 digits, with weights of few bits, so that closing them rounds nothing."""
    rng = np.random.default_rng(10)
    step = 2.0 ** np.round(np.log2(size)) * 2.0**-4
    x = np.full((1, 16), 2.0**-4)
    y = x + step * np.repeat([1, -1], 8)[rng.permutation(16)]
    y[0, :2] = x[0, :2] + 0.5 * (y[0, :2].sum() - x[0, :2].sum())
    rows = np.stack([x, y])
    assert (rows.sum(axis=-1) == 1).all()
    none = np.zeros(16, bool)
    found = fastpath.distance_sums(rows, none, ["jsd", "hellinger", "cosine", "l1", "aitchison"], "keep")
    with mpmath.workdps(50):
        p, q = ([mpmath.mpf(v) for v in row[0].tolist()] for row in rows)
        both = list(zip(p, q, strict=True))
        jsd = sum(a * mpmath.log(2 * a / (a + b)) + b * mpmath.log(2 * b / (a + b)) for a, b in both) / 2
        logs = [mpmath.log(a / b) for a, b in both]
        lengths = [mpmath.sqrt(sum(v * v for v in row)) for row in (p, q)]
        units = [a / lengths[0] - b / lengths[1] for a, b in both]
        exact = {
            "jsd": jsd,
            "hellinger": mpmath.sqrt(sum((mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2 for a, b in both) / 2),
            "cosine": sum(u * u for u in units) / 2,
            "l1": sum(abs(a - b) for a, b in both),
            "aitchison": sum((v - sum(logs) / 16) ** 2 for v in logs),
        }
    # The logarithms of an Aitchison distance are rounded before they are subtracted, as nothing else is.
    for metric, value in exact.items():
        allowed = max(1e-13, 2e-15 / size) if metric == "aitchison" else 1e-13
        if metric == "cosine" and numba.config.DISABLE_JIT:  # a product and a difference in two roundings
            allowed = max(1e-13, 2e-15 / size)
        assert found.sums[metric, "keep"][0, 0, 1] == pytest.approx(float(value), rel=allowed), metric


def test_verdicts_flip_as_by_the_oracle(scores):
    rows = softmax(scores).astype(np.float32)
    fast, slow = (layer.distance_sums(rows, SINKS) for layer in (fastpath, oracle))
    for metric in METRICS[:-1]:
        flips = [
            layer.verdict_flips(*(oracle.mean_distances(found, metric, c) for c in CONVENTIONS))
            for layer, found in ((fastpath, fast), (oracle, slow))
        ]
        assert flips[0].flipped == flips[1].flipped > 0
        np.testing.assert_array_equal(flips[0].per_anchor, flips[1].per_anchor)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the JIT")
def test_a_real_model_flips_as_by_the_oracle(minilm):
    """No verdict of 72 heads differs, between conventions and between the layers for the same convention."""
    text = "The old harbour town woke slowly under a grey sky, and the gulls were already quarrelling."
    trace = oracle.forward(minilm, text)
    given = (trace.attention, trace.sink_mask)
    some = {"scores": trace.scores, "queries": ~trace.sink_mask}
    fast, slow = (layer.distance_sums(*given, **some) for layer in (fastpath, oracle))
    for metric in METRICS[:-1]:
        means = {
            (layer, c): oracle.mean_distances(found, metric, c)
            for layer, found in (("fast", fast), ("slow", slow))
            for c in CONVENTIONS
        }
        flips = [
            fastpath.verdict_flips(means[layer, "keep"], means[layer, "drop"]) for layer in ("fast", "slow")
        ]
        assert flips[0].flipped == flips[1].flipped > 1000
        for convention in CONVENTIONS:
            same = fastpath.verdict_flips(means["fast", convention], means["slow", convention])
            assert same.flipped == 0, (metric, convention)


def test_two_texts_are_the_sum_of_both(scores):
    rows = softmax(scores)
    texts = [rows, rows[:, :3, :7] / rows[:, :3, :7].sum(axis=-1, keepdims=True)]
    sinks = [SINKS, SINKS[:7]]
    both = fastpath.distance_sums(texts, sinks)
    for place in range(2):
        alone = fastpath.distance_sums(texts[place], sinks[place])
        for pair in PAIRS:
            np.testing.assert_array_equal(both.sums[pair][place], alone.sums[pair][0])
            np.testing.assert_array_equal(both.counts[pair][place], alone.counts[pair][0])
    means = fastpath.head_distances(texts, sinks, "jsd", "drop")
    np.testing.assert_allclose(means, oracle.mean_distances(both, "jsd", "drop"), rtol=0, atol=0)


def test_clark2019_sums_over_rows_and_keeps_the_sinks_apart(scores):
    rows = softmax(scores)
    found = fastpath.clark2019_distances([rows, rows])
    np.testing.assert_allclose(found, 2 * fastpath.clark2019_distances(rows), rtol=1e-15)
    smooth = 0.999 * rows + 0.001 / 13
    wanted = 5 * oracle.head_distances(smooth, None, "jsd")
    np.testing.assert_allclose(fastpath.clark2019_distances(rows), wanted, rtol=1e-12)


def test_a_row_that_is_refused_is_refused_whether_it_counts_or_not(scores):
    rows = softmax(scores)
    rows[3, 2, 4] = -0.25
    queries = np.arange(5) != 2
    said = []
    for layer in (oracle, fastpath):
        with pytest.raises(oracle.InputError) as caught:
            layer.distance_sums(rows, SINKS, "jsd", queries=queries)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "head 3, query 2, key 4" in said[0]


def test_rows_of_a_causal_model_have_parts_of_their_own_number(scores):
    causal = np.tril(softmax(np.random.default_rng(3).normal(size=(3, 33, 33))))
    causal /= causal.sum(axis=-1, keepdims=True)
    first = np.arange(33) == 0
    fast, slow = (
        layer.distance_sums(causal, first, visible=KeyRange.causal(33)) for layer in (fastpath, oracle)
    )
    for pair in PAIRS:
        np.testing.assert_array_equal(fast.counts[pair], slow.counts[pair])
        np.testing.assert_allclose(fast.sums[pair], slow.sums[pair], rtol=1e-12, atol=1e-13)
    assert fast.counts["jsd", "keep"].max() == 33
    assert fast.counts["jsd", "drop"].max() == 32  # the first row sees no content


def test_rounding_leaves_no_distance_beyond_its_range():
    """Rows of disjoint parts are as far apart as can be, one row for each head."""
    rows = np.zeros((24, 1, 18))
    weights = np.random.default_rng(6).gamma(0.7, size=(24, 9))
    rows[:12, 0, :9], rows[12:, 0, 9:] = weights[:12], weights[12:]
    rows /= rows.sum(axis=-1, keepdims=True)
    ends = {"jsd": np.log(2), "root_jsd": np.sqrt(np.log(2)), "hellinger": 1, "l1": 2, "cosine": 1}
    found = fastpath.distance_sums(rows, None, list(ends), "keep")
    for metric, end in ends.items():
        apart = found.sums[metric, "keep"][0, :12, 12:]
        assert apart.max() <= end, metric
        np.testing.assert_allclose(apart, end, rtol=4e-15)
