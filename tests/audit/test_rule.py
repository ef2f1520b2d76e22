"""The rule by which a convention is called safe, case by case."""

import numpy as np
import pytest

from oracle import VerdictFlips
from validation.audit.rule import (
    CANNOT_SAY,
    DEPENDS,
    MIN_SPLITS,
    MIN_TRIPLES,
    SAFE,
    SINK_ALONE,
    Floor,
    judge,
    vanishing_share,
)


def flips(flipped, triples=1000):
    return VerdictFlips(flipped / triples if triples else np.nan, np.array([np.nan]), flipped, triples, 0, 0)


def floor(*rates):
    """Of 10 splits or more, where there is any rate at all."""
    return Floor(np.array(rates * MIN_SPLITS, dtype=float))


@pytest.mark.parametrize(
    ("flipped", "keep", "drop", "verdict"),
    [
        (60, (0.02, 0.05), (0.03, 0.06), SAFE),  # up to the upper end of the worse convention
        (61, (0.02, 0.05), (0.03, 0.06), DEPENDS),
        (0, (0.0,), (0.0,), SAFE),
        (1, (0.0,), (0.0,), DEPENDS),
        (100, (0.02,), (0.02, 0.1), SAFE),
        (100, (0.02,), (0.02, 0.101), CANNOT_SAY),  # the worst split decides, not the median
        (0, (0.02,), (0.02, 0.101), CANNOT_SAY),
        (450, (0.1,), (0.3, 0.3), DEPENDS),  # above any noise, however high that is
        (10, (np.nan, 0.02), (0.03,), SAFE),  # a split without triples does not count
        (10, (np.nan,), (0.03,), CANNOT_SAY),
        (900, (), (), CANNOT_SAY),
    ],
)
def test_flips_are_judged_by_the_floors_of_both_conventions(flipped, keep, drop, verdict):
    assert judge(flips(flipped), [floor(*keep), floor(*drop)]) == verdict
    assert judge(flips(flipped), [floor(*drop), floor(*keep)]) == verdict


def test_few_splits_say_nothing():
    enough, few = (Floor(np.full(splits, 0.01)) for splits in (MIN_SPLITS, MIN_SPLITS - 1))
    assert judge(flips(50), [enough, enough]) == DEPENDS
    assert judge(flips(50), [enough, few]) == judge(flips(5), [few, enough]) == CANNOT_SAY


def test_few_triples_say_nothing():
    low = floor(0.01)
    assert judge(flips(50, MIN_TRIPLES), [low, low]) == DEPENDS
    assert judge(flips(50, MIN_TRIPLES - 1), [low, low]) == CANNOT_SAY
    assert judge(flips(0, 0), [low, low]) == CANNOT_SAY


def test_distances_that_vanish_under_drop_are_the_sinks_alone():
    low = floor(0.01)
    assert judge(flips(480), [low, low], vanishing=True) == SINK_ALONE
    assert judge(flips(480), [low, floor()], vanishing=True) == CANNOT_SAY


def test_distances_vanish_by_the_precision_of_the_rows_and_squared_by_its_square():
    assert vanishing_share(2.0**-52, False) == 1e-5
    assert vanishing_share(2.0**-52, True) == pytest.approx(1e-10)
    assert vanishing_share(2.0**-10, False) == 2.0**-6
    assert vanishing_share(2.0**-10, True) == 2.0**-12


def test_a_floor_is_the_median_with_its_range():
    known = floor(0.3, np.nan, 0.1, 0.2)
    assert (known.low, known.median, known.high) == (0.1, 0.2, 0.3)
    assert np.isnan([floor().low, floor(np.nan).median, floor().high]).all()
