"""The headline counts what it says that it counts."""

import time

import numpy as np
import pytest
from text_models import by_key, width

from validation.headline import (
    Summary,
    _heads,
    head_table,
    headline_tables,
    layer_numbers,
    layer_words,
    length_words,
    row_notes,
    summarise,
)
from validation.table import HEAD_SUMMED, join_tables, tabulate, tabulate_head_summed

SINKS = np.array([True, False, False])
ALL = np.ones((3, 3), bool)


def test_summary_of_shares_by_hand():
    shares = np.array([0.1, 0.5, 0.51, 0.9, 0.95, np.nan])
    ratios = np.array([0.5, 1, 1.5, np.nan, np.inf, np.nan])
    assert summarise(shares, ratios) == Summary(5, 0.51, 0.95, 3, 1, 2, 4)
    assert summarise(shares).worse is None


def test_summary_of_nothing_is_undefined():
    empty = summarise(np.array([np.nan]), np.array([np.nan]))
    assert empty.rows == 0
    assert np.isnan([empty.median, empty.worst, empty.part(empty.above_half)]).all()


@pytest.mark.parametrize(
    ("layers", "numbers", "words"),
    [
        ([3], "3", "layer 3"),
        ([0, 1, 2], "0-2", "layers 0-2"),
        ([0, 3, 4, 7], "0,3-4,7", "layers 0,3-4,7"),
        ([], "", "no layer"),
    ],
)
def test_layers_in_words(layers, numbers, words):
    assert (layer_numbers(layers), layer_words(layers)) == (numbers, words)


def test_lengths_in_words():
    assert [length_words(lengths) for lengths in ([], [9], [8, 12, 17])] == ["no T", "T 9", "T 8-17"]


def table_of(sink_weights, norm, text=0, zero=False):
    """One layer per weight: each content row gives the sink that weight."""
    rows = np.array([[[[w, 1 - w, 0]] * 3] for w in sink_weights])
    if zero:
        rows[0, 0, 1] = 0
    return tabulate(rows, SINKS, ALL, {"value_norm": np.full((len(rows), 1, 3), norm)}, text=text)


def test_headline_over_all_and_by_layer():
    table = table_of([0.2, 0.6, 0.95], [3, 1, 1])
    parts = by_key(headline_tables(table))
    assert list(parts) == ["headline", "headline_attention", "headline_value_norm"]
    overall = {record["weighting"]: record for record in parts["headline"].records()}
    attention = overall["attention"]
    assert (attention["rows"], attention["median"], attention["worst"]) == (6, 0.6, 0.95)
    assert (attention["above_half"], attention["above_ninety"], attention["worse"]) == (4, 2, None)
    assert attention["share_above_half"] == 4 / 6
    # three times the norm: odds 0.25, 1.5 and 19 become 0.75, 4.5 and 57
    value = overall["value norm"]
    assert value["median"] == pytest.approx(4.5 / 5.5)
    assert (value["worse"], value["share_worse"]) == (6, 1)
    layers = parts["headline_value_norm"].records()
    assert [record["layer"] for record in layers] == [0, 1, 2]
    assert [record["above_ninety"] for record in layers] == [0, 0, 2]
    assert [record["worst"] for record in layers] == pytest.approx([0.75 / 1.75, 4.5 / 5.5, 57 / 58])
    assert "worse" not in parts["headline_attention"].records()[0]
    assert all(", T 3" in part.title for part in parts.values())


def test_head_summed_stands_beside_them_with_its_note():
    rows = np.broadcast_to([0.5, 0.25, 0.25], (2, 2, 3, 3))
    table = tabulate(rows, SINKS, ALL, {"value_norm": np.ones((2, 2, 3))})
    summed = tabulate_head_summed(rows, np.ones((2, 3, 2, 2)), SINKS, ALL)
    parts = by_key(headline_tables(table, summed, ["attention"]))
    assert list(parts) == ["headline", "headline_attention", f"headline_{HEAD_SUMMED}"]
    record = parts["headline"].records()[1]
    assert (record["weighting"], record["rows"], record["median"]) == ("head-summed", 4, 0.5)
    assert "worse" not in record  # neither of the two has an r, so that there is no column for it
    assert not any("‖v‖" in note or "r:" in note for note in parts["headline"].notes)
    assert any("pools the heads" in note for note in parts["headline"].notes)


def test_r_is_explained_where_it_is_shown():
    table = table_of([0.2, 0.6], [3, 1, 1])
    assert any(note.startswith("r: the attention-weighted mean") for note in headline_tables(table)[0].notes)
    alone = headline_tables(table, weightings=["attention"])
    assert not any("r:" in note for part in alone for note in part.notes)
    assert not any(column.key == "worse" for part in alone for column in part.columns)


def test_tables_say_which_queries_count():
    table = table_of([0.2], [3, 1, 1])
    assert all("content queries of all heads" in part.title for part in headline_tables(table))
    assert all("all real queries of all" in part.title for part in headline_tables(table, queries="all"))
    selection = by_key(row_notes(table, min_content_keys=5))["selection"].text
    assert "content queries (real tokens that are no sink)" in selection
    assert "at least 5 content keys" in selection
    assert "depends on the sink set" in selection


def test_medians_of_every_head_by_hand_for_json_alone():
    rows = np.array([[[[w, 1 - w, 0]] * 3 for w in (0.2, 0.6)], [[[w, 1 - w, 0]] * 3 for w in (0.8, 0.1)]])
    table = tabulate(rows, SINKS, ALL, {"value_norm": np.ones((2, 2, 3))})
    heads = head_table(table, ["attention"])
    assert not heads.shown
    assert [tuple(record.values()) for record in heads.records()] == [
        (0, 0, 0.2),
        (0, 1, 0.6),
        (1, 0, 0.8),
        (1, 1, 0.1),
    ]
    assert list(head_table(table, ["value_norm"]).records()[0]) == ["layer", "head", "median_value_norm"]
    assert head_table(join_tables([]), ["attention"]).rows == ()


def test_undefined_rows_are_left_out_of_the_headline_and_counted():
    table = join_tables([table_of([0.2, 1], [3, 1, 1]), table_of([0.2, 1], [3, 1, 1], text=1, zero=True)])
    records = headline_tables(table)[1].records()
    assert [record["rows"] for record in records] == [3, 4]
    undefined = by_key(row_notes(table))["undefined"].text
    assert "no content mass (share 1, content undefined): 4" in undefined
    assert "no mass at all (undefined, left out): 1" in undefined
    assert "no visible sink (share 0, no r): 0" in undefined


def test_rows_that_a_weighting_leaves_without_mass_are_counted():
    table = table_of([0, 0.5], [1, 0, 0])
    assert [record["rows"] for record in headline_tables(table)[2].records()] == [0, 2]
    assert "no mass under value norm (undefined, left out): 2" in by_key(row_notes(table))["undefined"].text


def test_every_length_is_named():
    wide = tabulate(
        np.full((1, 1, 5, 5), 0.2),
        np.arange(5) == 0,
        np.ones((5, 5), bool),
        {"value_norm": np.ones((1, 1, 5))},
        text=1,
    )
    table = join_tables([table_of([0.2], [1, 1, 1]), wide])
    notes = by_key(row_notes(table))
    assert "3, 5, in 2 texts" in notes["T"].text
    assert "compare equal T only" in notes["T"].text
    assert headline_tables(table)[0].title.endswith("T 3-5")
    assert "Rows: 6 of 1 head." in notes["rows"].text


def test_tables_fit_80_columns():
    rng = np.random.default_rng(1)
    rows = rng.random((12, 12, 3, 3))
    rows /= rows.sum(axis=-1, keepdims=True)
    table = tabulate(rows, SINKS, ALL, {"transformed_norm": rng.random((12, 12, 3)) * 9})
    many = join_tables([table] * 500)
    assert len(many) == 144_000
    assert all(width(part) <= 80 for part in headline_tables(many))


def test_heads_with_rows_are_told_apart_from_pooled_ones():
    rows = np.full((3, 2, 3, 3), 1 / 3)
    table = tabulate(rows, SINKS, ALL, {}, layers=[0, 2])
    pooled = tabulate_head_summed(rows, np.ones((3, 3, 2, 2)), SINKS, ALL, layers=[0, 2])
    assert _heads(table) == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert _heads(pooled) == [(0, -1), (2, -1)]


@pytest.mark.timing
def test_the_heads_of_a_million_rows_are_counted_at_once():
    rows = np.full((4, 16, 160, 160), 1 / 160)
    table = tabulate(rows, np.arange(160) == 0, np.ones((160, 160), bool), {})
    many = join_tables([table] * 100)
    start = time.perf_counter()
    assert len(_heads(many)) == 64
    assert time.perf_counter() - start < 0.5
