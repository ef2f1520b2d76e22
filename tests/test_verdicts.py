from __future__ import annotations

import itertools
import statistics

import ml_dtypes
import numpy as np
import pytest
from wording import refused

from oracle import InputTypeError, VerdictFlips, gaussian_flip_rate, verdict_flips

TIE = 1e-12


def brute_force(first, second, groups=None, margin=0.0) -> VerdictFlips:
    """The definition as a loop over all triples of Python floats."""
    first, second = ([[float(value) for value in row] for row in matrix] for matrix in (first, second))
    heads = range(len(first))
    flipped, triples, tied, undefined = [0 for _ in heads], [0 for _ in heads], 0, 0
    for a in heads:
        for b, c in itertools.combinations([head for head in heads if head != a], 2):
            if groups is not None and not groups[a] == groups[b] == groups[c]:
                continue
            pairs = [(matrix[a][b], matrix[a][c]) for matrix in (first, second)]
            if any(value != value for pair in pairs for value in pair):
                undefined += 1
                continue
            medians = [
                statistics.median([m[a][x] for x in heads if x != a and m[a][x] == m[a][x]])
                for m in (first, second)
            ]
            if margin and any(
                abs(u - v) <= margin * median for (u, v), median in zip(pairs, medians, strict=True)
            ):
                continue
            triples[a] += 1
            ties = [abs(u - v) <= TIE * max(abs(u), abs(v)) for u, v in pairs]
            verdicts = [u < v for u, v in pairs]
            tied += any(ties)
            flipped[a] += not any(ties) and verdicts[0] != verdicts[1]
    total, count = sum(flipped), sum(triples)
    per_anchor = np.array([f / t if t else np.nan for f, t in zip(flipped, triples, strict=True)])
    return VerdictFlips(total / count if count else np.nan, per_anchor, total, count, tied, undefined)


def equal(found: VerdictFlips, wanted: VerdictFlips) -> None:
    assert found[2:] == wanted[2:]
    np.testing.assert_array_equal(found.per_anchor, wanted.per_anchor)
    np.testing.assert_array_equal(found.rate, wanted.rate)
    assert [type(count) for count in found[2:]] == [int] * 4
    assert type(found.rate) is float


def random_pair(seed: int, heads: int, kind: str) -> list[np.ndarray]:
    """Two symmetric matrices; "tied" draws from few values, some of them within a tie's breadth."""
    rng = np.random.default_rng(seed)
    pair = []
    for _ in range(2):
        values = rng.random((heads, heads))
        if kind != "plain":
            values = rng.integers(0, 4, (heads, heads)) / 7
            values *= 1 + rng.choice([0, 1e-13, -4e-13, 3e-12], (heads, heads))
        values = np.triu(values, k=1)
        values += values.T
        if kind == "holes":
            lost = np.triu(rng.random((heads, heads)) < 0.15, k=1)
            values[lost | lost.T] = np.nan
        np.fill_diagonal(values, rng.choice([0.0, np.nan, 5.0]))  # never read
        pair.append(values)
    return pair


@pytest.mark.parametrize("kind", ["plain", "tied", "holes"])
@pytest.mark.parametrize("heads", [3, 4, 7, 11])
def test_flips_are_those_of_all_triples(heads, kind):
    for seed in range(6):
        first, second = random_pair(seed, heads, kind)
        groups = np.random.default_rng(seed).integers(0, 3, heads)
        for labels in (None, groups):
            for margin in (0.0, 0.1, 0.7):
                found = verdict_flips(first, second, labels, margin)
                equal(found, brute_force(first, second, labels, margin))


def test_the_counts_of_these_matrices_exercise_everything():
    plain, tied, holes = (verdict_flips(*random_pair(1, 11, kind)) for kind in ("plain", "tied", "holes"))
    assert plain.triples == 11 * 10 * 9 // 2
    assert (plain.tied, plain.undefined) == (0, 0)
    assert plain.flipped > 100
    assert 0 < tied.tied < tied.triples
    assert tied.flipped > 0
    assert holes.triples + holes.undefined == plain.triples
    assert holes.undefined > 0


def test_a_matrix_agrees_with_itself_and_disagrees_with_its_reverse():
    first, _ = random_pair(2, 9, "plain")
    assert verdict_flips(first, first).rate == 0
    assert verdict_flips(first, 1 - first).rate == 1
    assert verdict_flips(first, first**3).flipped == 0  # only the order counts


def test_ties_are_relative_and_agree_with_everything():
    def matrix(near: float, far: float) -> np.ndarray:
        return np.array([[0, near, far], [near, 0, 1.0], [far, 1.0, 0]])

    for scale in (1e-200, 1.0, 1e200):
        apart, reverse = matrix(1 * scale, 2 * scale), matrix(2 * scale, 1 * scale)
        assert verdict_flips(apart, reverse).per_anchor[0] == 1
        close = matrix(scale * (1 + 0.9e-12), scale)
        assert verdict_flips(apart, close).per_anchor[0] == 0
        assert verdict_flips(close, apart).per_anchor[0] == 0
        wider = matrix(scale * (1 + 1.1e-12), scale)
        assert verdict_flips(apart, wider).per_anchor[0] == 1
    assert verdict_flips(np.zeros((3, 3)), matrix(1, 2)).tied == 3


@pytest.mark.parametrize("heads", [5, 23])
def test_without_ties_an_anchor_has_kendalls_tau(heads):
    stats = pytest.importorskip("scipy.stats", reason='needs pip install "sinkscope[test]"')
    first, second = random_pair(3, heads, "plain")
    found = verdict_flips(first, second)
    for anchor in range(heads):
        rows = [np.delete(matrix[anchor], anchor) for matrix in (first, second)]
        tau = stats.kendalltau(*rows).statistic
        assert found.per_anchor[anchor] == pytest.approx((1 - tau) / 2, abs=1e-14)


def test_groups_may_be_any_labels():
    first, second = random_pair(4, 8, "plain")
    layers = np.repeat([0, 1], 4)
    found = verdict_flips(first, second, layers)
    assert found.triples == 2 * 4 * 3
    equal(found, verdict_flips(first, second, [7, 7, 7, 7, -1, -1, -1, -1]))
    inside = [verdict_flips(first[part, part], second[part, part]) for part in (slice(4), slice(4, 8))]
    np.testing.assert_array_equal(found.per_anchor, np.concatenate([part.per_anchor for part in inside]))
    assert verdict_flips(first, second, range(8)).triples == 0


@pytest.mark.parametrize("heads", [0, 1, 2])
def test_fewer_than_three_heads_have_no_verdict(heads):
    for margin in (0.0, 0.1):
        found = verdict_flips(np.zeros((heads, heads)), np.zeros((heads, heads)), margin=margin)
        assert np.isnan(found.rate)
        assert found.per_anchor.shape == (heads,)
        assert np.isnan(found.per_anchor).all()
        assert found[2:] == (0, 0, 0, 0)
    assert gaussian_flip_rate(np.zeros((heads, heads)), np.zeros((heads, heads))).shape == (heads,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble", ml_dtypes.bfloat16, "int64"])
def test_any_dtype_is_read_exactly(dtype):
    first, second = (np.round(64 * matrix).astype(dtype) for matrix in random_pair(5, 7, "plain"))
    equal(verdict_flips(first, second), brute_force(first, second))
    np.testing.assert_allclose(
        gaussian_flip_rate(first, second),
        gaussian_flip_rate(first.astype(np.float64), second.astype(np.float64)),
        rtol=1e-13,
    )


def test_input_stays_and_need_not_be_contiguous():
    first, second = random_pair(6, 9, "holes")
    wanted = verdict_flips(first, second)
    for matrix in (first, second):
        matrix.flags.writeable = False
    equal(verdict_flips(first, second), wanted)
    equal(verdict_flips(np.asfortranarray(first), np.repeat(second, 2, axis=1)[:, ::2]), wanted)
    equal(verdict_flips(first.tolist(), second.tolist()), wanted)


def gaussian_distances(rho: float, heads: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    one, other = 10 + rng.standard_normal((2, heads, heads))
    return [one, rho * one + np.sqrt(1 - rho**2) * other]


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.8, 0.95])
def test_gaussian_distances_flip_as_the_arccos_law_says(rho):
    first, second = gaussian_distances(rho, 160)
    law = np.arccos(rho) / np.pi
    found, expected = verdict_flips(first, second), gaussian_flip_rate(first, second)
    # The error of a rate over pairs of n values is at most that of n / 2 independent ones, per anchor.
    spread = np.sqrt(law * (1 - law) / (160 * 79))
    assert abs(found.rate - law) <= 4 * spread
    assert abs(expected.mean() - law) <= 4 * spread
    assert abs(found.rate - expected.mean()) <= 2 * spread
    assert found.tied == 0


def test_the_law_itself():
    first, second = gaussian_distances(0.6, 13)
    for anchor, rate in enumerate(gaussian_flip_rate(first, second)):
        rows = [np.delete(matrix[anchor], anchor) for matrix in (first, second)]
        assert rate == pytest.approx(np.arccos(np.corrcoef(*rows)[0, 1]) / np.pi, rel=1e-12)
    np.testing.assert_allclose(gaussian_flip_rate(first, 3 * first + 1), 0, atol=1e-14)
    np.testing.assert_allclose(gaussian_flip_rate(first, 2 - first), 1, atol=1e-14)
    near = first + 1e-9 * second  # a rounded correlation would say 0 or 1e-8
    angle = gaussian_flip_rate(first, near) * np.pi
    assert ((angle > 1e-10) & (angle < 3e-9)).all()


def test_an_anchor_without_a_correlation_has_no_law():
    first, second = random_pair(8, 5, "plain")
    first[0] = 0.1  # a constant row
    first[1, [0, 2, 3]] = np.nan  # one distance is left
    second[2, 3] = np.nan
    found = gaussian_flip_rate(first, second)
    assert np.isnan(found[:2]).all()
    assert (found[2:] >= 0).all()
    rows = [np.delete(matrix[2], [2, 3]) for matrix in (first, second)]
    assert found[2] == pytest.approx(np.arccos(np.corrcoef(*rows)[0, 1]) / np.pi)


def test_wrong_input_is_refused():
    square = np.zeros((4, 4))
    for compare in (verdict_flips, gaussian_flip_rate):
        with refused("first", "(head, head)", "shape (4,)"):
            compare(np.zeros(4), square)
        with refused("first", "shape (3, 4)"):
            compare(np.zeros((3, 4)), square)
        with refused("second", "as many heads in both", "shape (3, 3) with (4, 4)"):
            compare(square, np.zeros((3, 3)))
        infinite = square.copy()
        infinite[1, 2] = np.inf
        with refused("second", "inf between heads 1 and 2 (1 in all)", "NaN"):
            compare(square, infinite)
        with refused("first", "dtype", error=InputTypeError):
            compare(np.full((3, 3), "a"), square)
    with refused("groups", "4 heads", "shape (3,)"):
        verdict_flips(square, square, [0, 0, 1])
    for margin in (-0.1, np.nan, np.inf):
        with refused("margin", f"{margin}"):
            verdict_flips(square, square, margin=margin)
