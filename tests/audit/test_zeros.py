"""Zeros in rows: which count, where the first is, and how the choice is written."""

import numpy as np
import pytest
from audit_rows import sink_and_content_apart

import fastpath
import oracle
from oracle import InputError
from validation.audit.zeros import FoundZeros, ZerosChoice, find_zeros, parse_zeros

SINKS = np.arange(7) == 0
SEEN = np.ones((7, 7), dtype=bool)
CONTENT = np.arange(1, 7)


def rows_with(*places, text=0):
    rows = sink_and_content_apart()[text]
    for place in places:
        rows[place] = 0
    total = rows.sum(axis=-1, keepdims=True)
    return np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)


def found(rows, visible=SEEN, layers=(0, 1), sinks=SINKS):
    return find_zeros(4, rows, sinks, visible, CONTENT[visible[CONTENT].any(axis=1)], layers)


def test_zeros_are_counted_and_the_first_is_named():
    assert found(rows_with()) == FoundZeros()
    assert found(rows_with((1, 2, 3, 4), (1, 2, 3, 5))) == (2, "text 5, layer 1, head 2, query 3, key 4", 0)
    assert found(rows_with((0, 7, 6, 0))) == (1, "text 5, layer 0, head 7, query 6, the sink", 0)
    assert found(rows_with((1, 2, 3, 4)), layers=[0]) == (0, "", 0)


def test_what_the_oracle_refuses_is_what_is_found():
    rows = rows_with((1, 2, 3, 4), (0, 7, 6, 0), (1, 4, 5, slice(1, None)), (0, 0, 2, slice(None)))
    assert found(rows).parts == 2
    with pytest.raises(InputError, match=r"\(?2 in all|2 zeros|found 2"):
        oracle.distance_sums(rows[:, :, 1:], SINKS, "aitchison", visible=SEEN[1:])


def test_rows_without_content_and_sink_queries_have_no_zeros():
    assert found(rows_with((1, 4, 5, slice(1, None)))) == (0, "", 1)  # all on the sink
    assert found(rows_with((1, 4, 5, slice(None)))) == (0, "", 1)
    assert found(rows_with((1, 4, 0, 3))) == (0, "", 0)  # the row of the sink itself
    both = (1, 4, 5, slice(1, None)), (0, 2, slice(2, 5), slice(1, None)), (1, 2, 3, 4)
    assert found(rows_with(*both)) == (1, "text 5, layer 1, head 2, query 3, key 4", 4)
    assert found(rows_with(*both), layers=[0]) == (0, "", 3)
    sink_alone = SEEN.copy()
    sink_alone[5, 1:] = False
    args = rows_with((1, 4, 5, slice(1, None))), SINKS, sink_alone, CONTENT, (0, 1)
    assert find_zeros(4, *args) == (0, "", 0)  # nothing is zero that could be otherwise


@pytest.mark.parametrize("zeros", [{"zeros": "common-support"}, {"zeros": "replace", "delta": 1e-3}])
@pytest.mark.parametrize("layer", [oracle, fastpath], ids=["oracle", "fastpath"])
def test_rows_without_content_are_left_out_of_every_pair(layer, zeros):
    rows = rows_with((1, 4, 5, slice(1, None)), (0, 2, 3, slice(1, None)))
    counts = layer.distance_sums(rows, SINKS, "aitchison", queries=~SINKS, **zeros).counts
    lacking = np.zeros((2, 16), dtype=int)
    lacking[0, 12] = lacking[1, 2] = 1  # one query each, and not the same
    lost = np.maximum(lacking[:, :, None], lacking[:, None, :]).sum(axis=0)
    for table in counts.values():
        np.testing.assert_array_equal(table[0], len(CONTENT) - lost)


def test_what_is_not_visible_is_no_zero():
    causal = np.tri(7, dtype=bool)
    rows = np.tril(rows_with())
    assert found(rows, causal).parts == 0
    rows[0, 0, 5, 2] = 0
    assert found(rows, causal) == (1, "text 5, layer 0, head 0, query 5, key 2", 0)
    late = SEEN.copy()
    late[:, 0] = False  # nobody sees the sink, so it is no part of a row
    assert found(rows_with((0, 0, slice(None), 0)), late).parts == 0


def test_several_sinks_are_one_part():
    sinks = np.isin(np.arange(7), (0, 6))
    rows = rows_with((0, 0, 2, 0))
    args = (4, rows, sinks, SEEN, np.arange(1, 6), (0, 1))
    assert find_zeros(*args).parts == 0
    rows[0, 0, 2, 6] = 0
    assert find_zeros(*args) == (1, "text 5, layer 0, head 0, query 2, the sink", 0)


def test_the_choice_is_read():
    assert parse_zeros("refuse") == ZerosChoice()
    assert parse_zeros("common-support") == ("common-support", None)
    assert parse_zeros("replace:1e-6") == ("replace", 1e-6)
    for text in ("replace:nan", "replace:1", "replace:-1e-3", "Refuse", "common-support:1"):
        with pytest.raises(InputError, match="zeros: expected refuse, common-support, or replace:"):
            parse_zeros(text)
