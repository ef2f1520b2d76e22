"""Sums of texts that are added up in blocks: the same as one by one, in less memory."""

import numpy as np
import pytest

from oracle import DistanceSums
from validation.audit.sums import BlockSums

KEYS = (("jsd", "keep"), ("l1", "keep"), ("jsd", "drop"))


def text(seed, counts=None):
    rng = np.random.default_rng(seed)
    same = rng.integers(1, 9, (1, 4, 4))
    return DistanceSums(
        {key: rng.random((1, 4, 4)) for key in KEYS},
        {key: same if counts is None else counts[key] for key in KEYS},
    )


def added(texts, most):
    sums = BlockSums(most)
    for one in texts:
        sums.add(one)
    return sums.total()


@pytest.mark.parametrize(("n_texts", "most"), [(1, 32), (5, 32), (5, 2), (4, 1)])
def test_every_text_is_in_its_block(n_texts, most):
    texts = [text(seed) for seed in range(n_texts)]
    found = added(texts, most)
    for table, name in ((found.sums, "sums"), (found.counts, "counts")):
        assert list(table) == list(KEYS)
        for key, blocks in table.items():
            values = [getattr(one, name)[key][0] for one in texts]
            wanted = [sum(values[block::most]) for block in range(min(n_texts, most))]
            assert np.array_equal(blocks, wanted)


def test_equal_counts_are_one_table_until_they_differ():
    same = added([text(0), text(1)], 8).counts
    assert len({id(same[key].base) for key in KEYS}) == 1
    other = {key: np.full((1, 4, 4), 3 + (key == KEYS[1])) for key in KEYS}
    apart = added([text(0), text(1, other), text(2)], 8).counts
    assert apart[KEYS[0]].base is apart[KEYS[2]].base
    assert np.array_equal(apart[KEYS[1]][1], np.full((4, 4), 4))
    assert np.array_equal(apart[KEYS[0]][1], np.full((4, 4), 3))
    assert np.array_equal(apart[KEYS[1]][[0, 2]], apart[KEYS[0]][[0, 2]])
