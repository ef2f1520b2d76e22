"""T of a trial is that of the rows that it asked for, and of no others."""

import numpy as np
import pytest

from validation.headline import length_words
from validation.mutants import MUTANTS, Subjects, put_to, random_model, report_outcomes
from validation.mutants.trials import TRIALS
from validation.mutants.watched import Watched


@pytest.fixture(scope="module")
def subjects():
    return Subjects(random_model(3), [[1, 5, 6, 2], [1, 5, 6, 7, 8, 2]])


@pytest.mark.parametrize(
    ("asked", "lengths"),
    [
        ((), ()),
        (("matrices", "small"), ()),
        (("mask",), ()),
        (("rows",), (11,)),
        (("pair",), (11,)),
        (("heads",), (13,)),
        (("words",), (12,)),
        (("head_texts",), (7, 11)),
        (("small", "ids"), (13,)),
        (("small", "ids", "mask"), (11,)),
        (("traces",), (4, 6)),
        (("heads", "rows"), (11, 13)),
    ],
)
def test_the_lengths_are_those_of_what_was_asked_for(asked, lengths, subjects):
    watched = Watched(subjects)
    for name in asked:
        assert getattr(watched, name) is getattr(subjects, name)
    assert watched.lengths == lengths


@pytest.mark.parametrize(
    "name", ["split by loops", "‖v W_O‖ by loops", "clark2019 by loops", "arccos by loops"]
)
def test_an_outcome_has_the_lengths_of_its_trial_and_the_table_shows_them(name, subjects):
    mutant = next(one for one in MUTANTS if one.trial == name)
    outcome = put_to(TRIALS[name], mutant, subjects)
    watched = Watched(subjects)
    {
        "split by loops": lambda: watched.pair,
        "‖v W_O‖ by loops": lambda: watched.ids,
        "clark2019 by loops": lambda: watched.head_texts,
        "arccos by loops": lambda: watched.distinct_matrices,
    }[name]()
    assert outcome.lengths == watched.lengths
    (row,) = report_outcomes([outcome])[0].records()
    assert row["T"] == (length_words(outcome.lengths).removeprefix("T ") if outcome.lengths else "")


def test_padding_is_no_part_of_a_length(subjects):
    """The seeded rows have two keys more than are visible."""
    assert subjects.pair.rows[0].shape[-1] == 13
    assert np.sum(subjects.pair.visible) == 11
    assert [rows.shape[-1] for rows in subjects.head_texts.rows] == [11, 7, 13]
