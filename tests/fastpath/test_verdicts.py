"""Verdicts against their definition, triple by triple, with ties, gaps, groups and margins."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest

import fastpath
import oracle


def brute_force(first, second, groups, margin):
    """Flipped, triples, tied and undefined of each anchor, by the words of the definition."""
    heads = len(first)
    counts = np.zeros((heads, 4), dtype=int)
    for a in range(heads):
        others = [b for b in range(heads) if b != a]
        for b, c in itertools.combinations(others, 2):
            if groups is not None and not groups[a] == groups[b] == groups[c]:
                continue
            verdicts, apart = [], True
            for d in (first[a], second[a]):
                gap, larger = d[b] - d[c], max(abs(d[b]), abs(d[c]))
                verdicts.append(math.nan if math.isnan(gap) else 0 if abs(gap) <= 1e-12 * larger else gap)
                if margin and not math.isnan(gap):
                    apart &= bool(abs(gap) > margin * np.nanmedian([d[x] for x in others]))
            if math.isnan(sum(verdicts)):
                counts[a, 3] += 1
            elif apart:
                tied = 0 in verdicts
                counts[a] += [not tied and (verdicts[0] < 0) != (verdicts[1] < 0), 1, tied, 0]
    return counts


def matrices(kind, heads=9):
    first, second = np.random.default_rng(len(kind)).random((2, heads, heads))
    if kind == "tied":
        first, second = np.round(first, 1), np.round(second, 1)
    if kind == "on the border":
        steps = np.random.default_rng(1).integers(0, 30, (heads, heads))
        first = 1 + steps * 1e-13
    if kind == "gaps":
        first[first < 0.2] = np.nan
        second[1] = np.nan
    return first, second


@pytest.mark.parametrize("kind", ["random", "tied", "on the border", "gaps"])
@pytest.mark.parametrize("groups", [None, [0, 0, 0, 1, 1, 1, 1, 2, 2]])
@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_every_count_is_that_of_the_definition(kind, groups, margin):
    first, second = matrices(kind)
    found = fastpath.verdict_flips(first, second, groups, margin)
    counts = brute_force(first, second, groups, margin)
    assert (found.flipped, found.triples, found.tied, found.undefined) == tuple(counts.sum(axis=0))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found.per_anchor, counts[:, 0] / counts[:, 1])
    if kind == "tied" and not margin:
        assert found.tied > 0
    if kind == "gaps":
        assert found.undefined > 0
    slow = oracle.verdict_flips(first, second, groups, margin)
    assert slow._replace(per_anchor=None) == found._replace(per_anchor=None)


def test_any_thread_count_gives_the_same():
    first, second = matrices("tied")
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = fastpath.verdict_flips(first, second)
    finally:
        numba.set_num_threads(before)
    many = fastpath.verdict_flips(first, second)
    np.testing.assert_array_equal(one.per_anchor, many.per_anchor)
    assert one[2:] == many[2:]


def test_a_reversed_order_flips_every_triple_and_the_same_none():
    first, _ = matrices("random")
    assert fastpath.verdict_flips(first, -first).rate == 1
    assert fastpath.verdict_flips(first, first).rate == 0
    assert fastpath.verdict_flips(first, first).triples == 9 * 8 * 7 / 2


def test_counts_are_whole_numbers_of_python():
    found = fastpath.verdict_flips(*matrices("random"))
    assert {type(value) for value in found[2:]} == {int}
    assert isinstance(found.rate, float)
    assert math.isnan(fastpath.verdict_flips(np.ones((2, 2)), np.ones((2, 2))).rate)
