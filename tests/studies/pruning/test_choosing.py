"""Which heads are cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from wording import refused

from validation.studies.pruning.choosing import (
    CHOICES,
    as_mask,
    chosen_heads,
    head_counts,
    layer_counts,
    matched_draw,
    parse_budgets,
    uniform_draw,
)
from validation.studies.pruning.criteria import CRITERIA

NAN = float("nan")


def test_four_criteria_from_both_ends_and_the_contribution_from_one() -> None:
    assert len({choice.key for choice in CHOICES}) == 9
    ends = Counter(choice.criterion for choice in CHOICES)
    assert ends == {name: 1 if name == "content_contribution" else 2 for name in CRITERIA}
    assert CHOICES[-1].label == "lowest content contribution"


def test_the_ends_of_a_criterion() -> None:
    values = np.array([[3.0, 1.0, NAN], [1.0, 7.0, 3.0]])
    assert chosen_heads(values, 1, highest=False) == (1,)
    assert chosen_heads(values, 3, highest=False) == (0, 1, 3)
    assert chosen_heads(values, 2, highest=True) == (0, 4)
    assert chosen_heads(values, 5, highest=True) == chosen_heads(values, 5, highest=False) == (0, 1, 3, 4, 5)


def test_many_equal_values_are_taken_in_order() -> None:
    values = np.tile([[0.5, 0.25]], (100, 1))
    assert chosen_heads(values, 40, highest=True) == tuple(range(0, 80, 2))
    assert chosen_heads(values, 40, highest=False) == tuple(range(1, 80, 2))


@pytest.mark.parametrize("text", ["", "0", "1", "0.1,", "a", "0.1;0.2", "-0.1", "nan", "inf", "10%"])
def test_budgets_that_are_none(text: str) -> None:
    with refused("--budget", repr(text)):
        parse_budgets(text)


def test_budgets() -> None:
    assert parse_budgets("0.2, 0.05,0.2") == (0.05, 0.2)
    assert head_counts((0.05, 0.1, 0.2), 270) == {0.05: 14, 0.1: 27, 0.2: 54}
    assert head_counts((0.01, 0.02, 0.3), 20) == {0.01: 1, 0.3: 6}


def test_uniform_draws_reach_every_set_alike() -> None:
    drawn = Counter(uniform_draw((2, 3), 2, 5, draw) for draw in range(3000))
    assert len(drawn) == 15
    assert all(heads == tuple(sorted(set(heads))) for heads in drawn)
    # 3000 draws over 15 sets: 200 each, and 56 is four standard deviations
    assert max(abs(count - 200) for count in drawn.values()) < 56


def test_matched_draws_keep_the_layers_and_reach_every_set() -> None:
    shape, heads = (4, 3), (0, 4, 5, 9, 10, 11)
    assert layer_counts(heads, shape) == (1, 2, 0, 3)
    drawn = Counter(matched_draw(shape, heads, CHOICES[0], 0, draw) for draw in range(900))
    assert {layer_counts(found, shape) for found in drawn} == {(1, 2, 0, 3)}
    assert len(drawn) == 9
    assert max(abs(count - 100) for count in drawn.values()) < 38  # four standard deviations
    assert np.flatnonzero(as_mask(heads, shape)).tolist() == list(heads)


def test_draws_depend_on_everything_that_names_them_and_on_nothing_else() -> None:
    shape, heads = (30, 9), tuple(range(0, 270, 5))
    first = matched_draw(shape, heads, CHOICES[0], 0, 0)
    assert first == matched_draw(shape, heads, CHOICES[0], 0, 0)
    others = [
        matched_draw(shape, heads, CHOICES[0], 0, 1),
        matched_draw(shape, heads, CHOICES[1], 0, 0),
        matched_draw(shape, heads, CHOICES[0], 1, 0),
    ]
    assert len({first, *others}) == 4
    assert len({uniform_draw(shape, 14, seed, draw) for seed in range(3) for draw in range(3)}) == 9
