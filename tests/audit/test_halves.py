"""The splits of the texts are halves, seeded and of every text."""

import numpy as np
import pytest

from oracle import InputError
from validation.audit.halves import text_halves


@pytest.mark.parametrize(
    ("n_texts", "expected"), [(2, 1), (3, 3), (4, 3), (5, 10), (6, 10), (7, 20), (20, 20), (21, 20)]
)
def test_every_split_is_of_all_texts_into_halves_and_none_comes_twice(n_texts, expected):
    splits = text_halves(n_texts)
    assert len(splits) == expected == len({frozenset(map(tuple, split)) for split in splits})
    for first, second in splits:
        assert sorted([*first, *second]) == list(range(n_texts))
        assert 0 <= len(second) - len(first) <= 1
        assert (np.diff(first) > 0).all()
        assert (np.diff(second) > 0).all()


def test_the_seed_decides():
    def chosen(seed):
        return [list(first) for first, _ in text_halves(20, 5, seed)]

    assert chosen(3) == chosen(3) != chosen(4)
    assert len({tuple(first) for first in chosen(3)}) == 5


def test_one_text_has_no_halves():
    assert text_halves(1) == text_halves(0) == ()


def test_no_splits_are_refused():
    with pytest.raises(InputError, match="splits: expected at least 1; found 0"):
        text_halves(5, 0)
