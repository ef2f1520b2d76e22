"""The rule by which a convention is called safe, case by case."""

import numpy as np
import pytest

from oracle import VerdictFlips
from validation.audit.rule import CANNOT_SAY, DEPENDS, MIN_TRIPLES, SAFE, SINK_ALONE, Floor, judge


def flips(flipped, triples=1000):
    return VerdictFlips(flipped / triples if triples else np.nan, np.array([np.nan]), flipped, triples, 0, 0)


def floor(*rates):
    return Floor(np.array(rates, dtype=float))


@pytest.mark.parametrize(
    ("flipped", "keep", "drop", "verdict"),
    [
        (60, (0.02, 0.05), (0.03, 0.06), SAFE),  # up to the upper end of the worse convention
        (61, (0.02, 0.05), (0.03, 0.06), DEPENDS),
        (0, (0.0,), (0.0,), SAFE),
        (1, (0.0,), (0.0,), DEPENDS),
        (250, (0.1,), (0.25, 0.25), SAFE),
        (250, (0.1,), (0.26, 0.26), CANNOT_SAY),
        (450, (0.1,), (0.3, 0.3), DEPENDS),  # above any noise, however high that is
        (10, (np.nan, 0.02), (0.03,), SAFE),  # a split without triples does not count
        (10, (np.nan,), (0.03,), CANNOT_SAY),
        (900, (), (), CANNOT_SAY),
    ],
)
def test_flips_are_judged_by_the_floors_of_both_conventions(flipped, keep, drop, verdict):
    assert judge(flips(flipped), [floor(*keep), floor(*drop)]) == verdict
    assert judge(flips(flipped), [floor(*drop), floor(*keep)]) == verdict


def test_few_triples_say_nothing():
    low = floor(0.01)
    assert judge(flips(50, MIN_TRIPLES), [low, low]) == DEPENDS
    assert judge(flips(50, MIN_TRIPLES - 1), [low, low]) == CANNOT_SAY
    assert judge(flips(0, 0), [low, low]) == CANNOT_SAY


def test_distances_that_vanish_under_drop_are_the_sinks_alone():
    low = floor(0.01)
    assert judge(flips(480), [low, low], vanishing=True) == SINK_ALONE
    assert judge(flips(480), [low, floor()], vanishing=True) == CANNOT_SAY


def test_a_floor_is_the_median_with_its_range():
    known = floor(0.3, np.nan, 0.1, 0.2)
    assert (known.low, known.median, known.high) == (0.1, 0.2, 0.3)
    assert np.isnan([floor().low, floor(np.nan).median, floor().high]).all()
