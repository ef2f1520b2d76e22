"""One row per word, by hand: pieces merged, the strongest link opened, shares read on attention's head."""

import numpy as np
import pytest
from text_models import hand_trace, small_model, width

import oracle
from validation.table import WEIGHTINGS
from validation.word_table import Link, WordTable

# "She walks" is [CLS] she walk ##s [SEP]; rows of [CLS] and [SEP] are never read
FIRST = [
    [1, 0, 0, 0, 0],
    [0.5, 0.1, 0.2, 0.1, 0.1],
    [0.2, 0.4, 0.2, 0.1, 0.1],
    [0.6, 0.2, 0.1, 0.1, 0],
    [0, 0, 0, 0, 1],
]
SECOND = [
    [1, 0, 0, 0, 0],
    [0.1, 0.6, 0.2, 0.1, 0],
    [0, 0.9, 0.05, 0.05, 0],
    [0, 0.9, 0.05, 0.05, 0],
    [0, 0, 0, 0, 1],
]


def walks(value_norm=None, layers=1):
    return hand_trace("She walks", [[FIRST, SECOND]] * layers, value_norm)


def table_of(*traces, sets=((0,),)):
    words = WordTable(sets)
    for index, trace in enumerate(traces):
        words.add(index, trace)
    return words


def test_rows_open_on_the_strongest_link():
    words = table_of(walks())
    she, walk = words.links((0,))
    assert she[:5] == (1, 0, 0, "She", "walks")
    assert she[5:] == pytest.approx((0.3 / 0.4, 0.3, 0.6))  # shown, of the row, sink
    assert walk[:5] == (1, 0, 1, "walks", "She")
    assert walk[5:] == pytest.approx((0.9, 0.9, 0))
    assert isinstance(she, Link)
    assert words.lengths == [5]


def test_shares_of_all_weightings_are_read_on_the_head_that_attention_opens():
    norm = [[[0.5, 1, 1, 1, 0.5], [1, 1, 1, 1, 1]]]
    words = table_of(walks(norm))
    assert words.shares("attention", (0,)) == pytest.approx([0.6, 0])
    assert words.shares("value_norm", (0,)) == pytest.approx([0.3 / 0.7, 0])
    assert words.same_head("value_norm", (0,)) == 2
    found = words.summary("value_norm", (0,))
    assert (found.rows, found.worse, found.above_half) == (2, 0, 0)
    assert found.with_r == 1  # the row of "walks" has no sink mass, and so no r
    assert words.summary("attention", (0,)).above_half == 1
    assert words.summary("attention", (0,)).worse is None


def test_a_weighting_can_open_another_head_and_make_rows_worse():
    # in the first head the pieces of "walks" hand on little, and [CLS] much: "She" opens the second head
    # (.333 against .231), "walks" the first (.3 / .325 against .9)
    norm = [[[2, 1, 0.1, 0.1, 1], [1, 1, 1, 1, 1]]]
    words = table_of(walks(norm))
    assert words.same_head("value_norm", (0,)) == 0
    assert words.shares("value_norm", (0,)) == pytest.approx([1.1 / 1.23, 0])
    assert words.summary("value_norm", (0,)).worse == 1
    (row,) = words.table("value_norm", "Words").records()
    assert (row["worse"], row["same_head"], row["share_same_head"]) == (1, 0, 0)
    assert "same_head" not in words.table("attention", "Words").records()[0]


def test_norms_of_one_change_no_bit():
    words = table_of(walks())
    for name in WEIGHTINGS[1:]:
        np.testing.assert_array_equal(words.shares(name, (0,)), words.shares("attention", (0,)))
        assert words.summary(name, (0,)).worse == 0


def test_a_text_of_one_word_has_no_row_and_is_counted():
    alone = hand_trace("doctor", np.full((1, 2, 3, 3), 1 / 3))
    words = table_of(walks(), alone)
    assert words.undefined((0,)) == 1
    (row,) = words.table("attention", "Words").records()
    assert (row["words"], row["undefined"]) == (2, 1)
    assert [link.text for link in words.links((0,))] == [1, 1]
    assert words.lengths == [3, 5]
    assert table_of(alone).summary("attention", (0,)).rows == 0


def test_stated_sets_keep_the_numbers_of_their_layers():
    sets = ((1,), (2,), (1, 2))
    words = table_of(walks(layers=3), sets=sets)
    assert [link.layer for link in words.links((2,))] == [2, 2]
    assert [link.layer for link in words.links((1, 2))] == [1, 1]  # ties to the lowest layer
    records = words.table("value_norm", "Words").records()
    assert [record["layers"] for record in records] == ["1", "2", "1-2"]
    assert words.summary("attention", (1,), (2,)).rows == 4


def test_it_equals_the_protocol_run_on_whole_traces():
    """Merging layer by layer and opening later gives the bits that opening in one go gives."""
    trace = oracle.forward(small_model(), 'The doctor "saw" the nurses, sleeping.')
    weights = {
        name: oracle.weighted_rows(trace.attention, None if name == "attention" else getattr(trace, name))
        for name in WEIGHTINGS
    }
    sets = ((1,), (0, 1))
    words = table_of(trace, sets=sets)
    for chosen in sets:
        whole = oracle.open_rows(weights, oracle.group_words(trace), chosen)
        assert len(whole.words) == 6
        for name in WEIGHTINGS:
            np.testing.assert_array_equal(words.shares(name, chosen), whole.shares[name])
            same = (whole.heads[name] == whole.heads["attention"]).all(axis=1).sum()
            assert words.same_head(name, chosen) == same
        assert [link.link for link in words.links(chosen)] == list(whole.links)
        assert [(link.layer, link.head) for link in words.links(chosen)] == [
            tuple(head) for head in whole.heads["attention"].tolist()
        ]


def test_tables_fit_80_columns():
    words = table_of(*[walks()] * 300, sets=((0,),))
    assert all(width(words.table(name, "Words")) <= 80 for name in WEIGHTINGS)
