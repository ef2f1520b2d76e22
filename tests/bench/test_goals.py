from __future__ import annotations

import pytest

from validation.bench.goals import GOALS, Goal, find_goal, judge


@pytest.mark.parametrize(
    ("direction", "value", "verdict"),
    [
        ("at least", 8.0, "met"),
        ("at least", 7.99, "missed"),
        ("at least", float("nan"), "missed"),
        ("at least", None, "not run"),
        ("at most", 8.0, "met"),
        ("at most", 8.01, "missed"),
        ("at most", float("nan"), "missed"),
        ("at most", None, "not run"),
    ],
)
def test_a_value_is_judged_in_the_direction_of_its_goal(direction, value, verdict):
    assert judge(Goal("case", "peer", 8, direction), value) == verdict


def test_goals_are_found_by_case_and_peer_and_each_is_there_once():
    assert find_goal("rows", "torch, eager").limit == 15
    assert find_goal("entropies", "torch, eager").limit == 8
    assert find_goal("memory").limit == 64
    assert find_goal("rows", "oracle, float64") is None
    assert find_goal("rows") is None
    assert len({goal[:2] for goal in GOALS}) == len(GOALS)


def test_goals_in_words():
    assert find_goal("rows", "read-only loop").words == ">= 0.8"
    assert find_goal("transformed memory", "torch, einsum").words == ">= 1000"
    assert find_goal("verdicts", "fastpath").words == "<= 50 ms"
    assert find_goal("rows time in T").words == "<= 2.05"
    assert find_goal("causal", "torch, SDPA").words == ">= 0.67"  # at most 1.5 times its time
