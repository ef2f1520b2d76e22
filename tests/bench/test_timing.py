from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest

from oracle import InputError
from validation.bench.timing import Paired, Timings, growth_exponent, in_turns, paired


class Clock:
    """Stands still until a call takes its time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def taking(self, seconds):
        seconds = iter(seconds)

        def call():
            self.now += next(seconds)

        return call


def test_paired_takes_turns_and_swaps_the_order():
    calls = []
    times = paired(lambda: calls.append("a"), lambda: calls.append("b"), repeats=4, warmup=2)
    orders = ["".join(two) for two in zip(calls[::2], calls[1::2], strict=True)]
    assert len(orders) == 6
    assert orders[2:].count("ab") == orders[2:].count("ba") == 2
    assert times.first.shape == times.second.shape == (4,)
    assert (times.first > 0).all()


def test_paired_tells_a_slow_call_from_a_fast_one():
    times = paired(lambda: time.sleep(0.02), lambda: time.sleep(0.001), repeats=5, warmup=0)
    assert times.median > 2
    assert times.quartiles[0] <= times.median <= times.quartiles[1]


def test_ratios_are_taken_pair_by_pair():
    times = Paired(np.array([2.0, 20.0, 3.0]), np.array([1.0, 10.0, 1.0]))
    assert times.ratios.tolist() == [2, 2, 3]
    assert times.median == 2
    assert times.quartiles == (2, 2.5)


def test_every_call_has_its_turn_in_every_round_and_follows_different_ones():
    said = []
    calls = {name: lambda name=name: said.append(name) for name in "abcd"}
    times = in_turns(calls, 8, warmup=0)
    rounds = ["".join(said[start : start + 4]) for start in range(0, 32, 4)]
    assert all(sorted(one) == list("abcd") for one in rounds)
    assert times.seconds.shape == (4, 8)
    for name in "abcd":
        assert [one.index(name) for one in rounds].count(0) == 2  # each place equally often
        before = {first for one in rounds for first, second in pairwise(one) if second == name}
        assert len(before) > 1


def test_statistics_are_those_of_the_rounds():
    clock = Clock()
    calls = {"a": clock.taking([9, 1, 10, 3]), "b": clock.taking([9, 2, 20, 12])}
    times = in_turns(calls, 3, warmup=1, clock=clock)
    assert times.seconds.tolist() == [[1, 10, 3], [2, 20, 12]]
    assert times.of("a") == (3, 2, 6.5)
    assert times.times("b", "a") == (2, 2, 3)
    assert times.times("a", "b") == (0.5, 0.375, 0.5)


def test_a_spent_budget_ends_the_rounds_but_not_before_the_least():
    clock = Clock()
    assert in_turns({"a": clock.taking([1] * 9)}, 9, warmup=0, budget=4.5, clock=clock).seconds.shape == (
        1,
        5,
    )
    assert in_turns({"a": clock.taking([9] * 9)}, 9, warmup=0, budget=1, clock=clock).seconds.shape == (1, 5)
    assert in_turns({"a": clock.taking([9] * 9)}, 2, warmup=0, budget=1, clock=clock).seconds.shape == (1, 2)


def test_slow_calls_take_part_in_the_first_three_timed_rounds_only():
    clock = Clock()
    calls = {"a": clock.taking([1, 2, 3, 4, 5, 6]), "b": clock.taking([10, 20, 30])}
    times = in_turns(calls, 5, warmup=1, slow=("b",), clock=clock)
    assert times.seconds[0].tolist() == [2, 3, 4, 5, 6]
    assert times.seconds[1, :3].tolist() == [10, 20, 30]
    assert np.isnan(times.seconds[1, 3:]).all()
    assert times.of("b").median == 20
    assert times.times("b", "a").median == pytest.approx(20 / 3)


def test_a_pause_is_not_timed():
    times = in_turns({"a": lambda: None}, 2, pause=0.02)
    assert times.seconds.max() < 0.02


def test_nothing_to_do_is_refused():
    with pytest.raises(InputError, match="rounds: expected one or more; found 0"):
        paired(list, list, repeats=0)
    with pytest.raises(InputError, match="calls: expected one or more; found none"):
        in_turns({})


def test_the_growth_exponent_is_that_of_a_power():
    sizes = [256, 512, 2048]
    assert growth_exponent(sizes, [3 * size**1.7 for size in sizes]) == pytest.approx(1.7)
    assert growth_exponent(sizes, [5, 5, 5]) == pytest.approx(0)
    assert np.isnan(growth_exponent([4, 4], [1, 2]))


def test_unknown_names_raise():
    with pytest.raises(ValueError, match="not in tuple"):
        Timings(("a",), np.ones((1, 1))).of("b")
