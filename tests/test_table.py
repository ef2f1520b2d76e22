"""The tidy table: every number can be checked by hand, every odd row has its flag."""

from types import SimpleNamespace

import numpy as np
import pytest

import fastpath
import oracle
from oracle import InputError
from validation.table import (
    HEAD_SUMMED,
    WEIGHTINGS,
    content_queries,
    join_tables,
    tabulate,
    tabulate_head_summed,
)

SINKS = np.array([True, False, False, False])
ALL = np.ones((4, 4), bool)


def one_head(*rows, norm=None, sinks=SINKS, visible=ALL, **options):
    """A table of one layer and head; rows that are not given repeat the last one."""
    rows = [*rows, *[rows[-1]] * (4 - len(rows))]
    norms = {} if norm is None else {"value_norm": np.array([[norm]])}
    return tabulate(np.array([[rows]]), sinks, visible, norms, **options)


def random_rows(*shape, seed=3):
    rows = np.random.default_rng(seed).random(shape)
    return rows / rows.sum(axis=-1, keepdims=True)


def test_row_share_of_95_percent_with_sink_norm_of_point_6_is_919_not_73():
    table = one_head([0.95, 0.03, 0.01, 0.01], norm=[0.6, 1, 1, 1])
    assert table.shares["attention"] == pytest.approx([0.95] * 3, abs=1e-15)
    assert table.shares["value_norm"] == pytest.approx([0.57 / 0.62] * 3, abs=1e-15)
    assert table.ratios["value_norm"] == pytest.approx([0.6] * 3, abs=1e-15)


def test_rows_stand_in_the_order_layer_head_query():
    attention = random_rows(2, 3, 5, 5)
    norms = {name: np.random.default_rng(4).random((2, 3, 5)) for name in WEIGHTINGS[1:]}
    sinks = np.array([True, False, False, False, True])
    table = tabulate(attention, sinks, np.ones((5, 5), bool), norms, text=7)
    assert len(table) == 2 * 3 * 3
    assert set(table.text) == {7}
    assert set(table.n_tokens) == {5}
    places = list(zip(table.layer.tolist(), table.head.tolist(), table.query.tolist(), strict=True))
    assert places == [(layer, head, query) for layer in range(2) for head in range(3) for query in (1, 2, 3)]
    whole = {
        name: oracle.sink_share(attention, sinks, None if name == "attention" else norms[name])
        for name in WEIGHTINGS
    }
    ratios = {name: oracle.norm_odds_ratio(attention, sinks, norms[name]) for name in WEIGHTINGS[1:]}
    for name, share in whole.items():
        np.testing.assert_array_equal(table.shares[name], share[:, :, 1:4].ravel())
    for name, ratio in ratios.items():
        np.testing.assert_array_equal(table.ratios[name], ratio[:, :, 1:4].ravel())
    columns = [*table.shares.values(), *table.ratios.values(), table.no_sink, table.no_mass, table.text]
    assert {len(column) for column in columns} == {len(table)} == {18}


def test_chosen_layers_keep_their_numbers():
    attention = random_rows(5, 2, 4, 4)
    table = tabulate(attention, SINKS, ALL, {}, layers=[1, 4])
    assert sorted(set(table.layer.tolist())) == [1, 4]
    expected = oracle.sink_share(attention[[1, 4]], SINKS)[:, :, 1:]
    np.testing.assert_array_equal(table.shares["attention"], expected.ravel())


def test_a_row_without_content_mass_is_counted_and_has_no_r():
    table = one_head([1, 0, 0, 0], norm=[1, 1, 1, 1])
    assert table.zero_content.all()
    assert (table.shares["attention"] == 1).all()
    assert np.isnan(table.ratios["value_norm"]).all()
    assert not (table.thin_content | table.no_sink | table.no_mass).any()


@pytest.mark.parametrize(("content", "thin"), [(1e-3, False), (9.9e-4, True), (1e-30, True)])
def test_content_below_a_thousandth_is_flagged_however_small(content, thin):
    table = one_head([1 - content, content, 0, 0])
    assert table.thin_content.all() == table.thin_content.any() == thin
    assert not table.zero_content.any()


def test_a_row_of_zeros_is_undefined():
    table = one_head([0.5, 0.5, 0, 0], [0, 0, 0, 0], [0.5, 0, 0.5, 0], norm=[1, 1, 1, 1])
    assert table.no_mass.tolist() == [True, False, False]
    assert np.isnan(table.shares["attention"]).tolist() == [True, False, False]
    assert not table.zero_content.any()


def test_no_sink_gives_share_zero_and_no_r():
    table = one_head([0.4, 0.3, 0.2, 0.1], norm=[1, 2, 3, 4], sinks=np.zeros(4, bool))
    assert len(table) == 4
    assert table.no_sink.all()
    assert (table.shares["attention"] == 0).all()
    assert np.isnan(table.ratios["value_norm"]).all()


def test_a_visible_sink_without_weight_is_no_missing_sink():
    table = one_head([0, 0.5, 0.5, 0], norm=[1, 1, 1, 1])
    assert not table.no_sink.any()
    assert (table.shares["attention"] == 0).all()
    assert np.isnan(table.ratios["value_norm"]).all()


def test_padding_and_sink_queries_are_left_out():
    real = np.array([True, True, True, False])
    visible = real[:, None] & real[None, :]
    rows = [[0.5, 0.25, 0.25, 0]] * 3 + [[0, 0, 0, 0]]
    assert one_head(*rows, visible=visible).query.tolist() == [1, 2]
    everything = one_head(*rows, visible=visible, queries="all")
    assert everything.query.tolist() == [0, 1, 2]
    assert set(everything.n_tokens) == {3}
    with pytest.raises(InputError, match="queries: expected content or all; found 'sinks'"):
        one_head(*rows, queries="sinks")


def test_causal_rows_start_with_eight_content_keys():
    visible = np.tri(12, dtype=bool)
    sinks = np.arange(12) == 0
    rows, left_out = content_queries(sinks, visible)
    assert rows.tolist() == [8, 9, 10, 11]
    assert left_out == 7
    assert content_queries(sinks, visible, min_content_keys=3)[0].tolist() == list(range(3, 12))
    attention = np.tri(12) / np.tri(12).sum(axis=1, keepdims=True)
    table = tabulate(np.broadcast_to(attention, (2, 3, 12, 12)), sinks, visible, {})
    assert table.left_out == 7 * 2 * 3
    np.testing.assert_allclose(table.shares["attention"][:4], 1 / np.arange(9, 13), rtol=1e-15)


def test_rows_that_see_everything_are_never_taken_as_causal():
    assert content_queries(SINKS, ALL)[0].tolist() == [1, 2, 3]
    assert content_queries(np.array([False]), np.array([[True]]))[0].tolist() == [0]


def test_inputs_stay_as_they_are_and_may_be_float32_or_read_only():
    attention = random_rows(2, 3, 4, 4).astype(np.float32)[:, :, :, ::-1]
    attention.flags.writeable = False
    norm = random_rows(2, 3, 4)
    table = tabulate(attention, SINKS, ALL, {"value_norm": norm})
    wide = tabulate(attention.astype(np.float64), SINKS, ALL, {"value_norm": norm.copy()})
    np.testing.assert_array_equal(table.shares["value_norm"], wide.shares["value_norm"])
    assert table.shares["attention"].dtype == np.float64


def columns(table):
    """Every array of a table by name."""
    flags = ("no_sink", "no_mass", "zero_content", "thin_content")
    places = ("text", "layer", "head", "query", "n_tokens")
    plain = {name: getattr(table, name) for name in (*places, *flags)}
    shares = {f"share {name}": share for name, share in table.shares.items()}
    return {**plain, **shares, **{f"r {name}": ratio for name, ratio in table.ratios.items()}}


@pytest.mark.parametrize("norms", [{}, {"value_norm": random_rows(2, 1, 4)}])
def test_another_layer_can_measure_and_reads_each_layer_once(norms):
    calls = []

    def row_measures(*arguments):
        calls.append("row_measures")
        return oracle.row_measures(*arguments)

    measures = SimpleNamespace(row_measures=row_measures)
    attention = random_rows(2, 1, 4, 4)
    table = tabulate(attention, SINKS, ALL, norms, measures=measures)
    assert calls == ["row_measures"] * 2
    plain = tabulate(attention, SINKS, ALL, norms)
    for name, column in columns(plain).items():
        np.testing.assert_array_equal(columns(table)[name], column)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_fast_path_gives_the_same_table(dtype):
    rng = np.random.default_rng(6)
    attention = random_rows(3, 2, 11, 11)
    attention[0, 1, 3] = [1, *[0] * 10]
    attention[1, 0, 4] = 0
    attention[2, 1, 5] = [1, 1e-30, *[0] * 9]
    attention[2, 1, 6] = [1 - 5e-4, 5e-4, *[0] * 9]
    attention = attention.astype(dtype)
    norms = {name: rng.uniform(0.1, 4, (3, 2, 11)) for name in WEIGHTINGS[1:]}
    given = (attention, np.arange(11) == 0, np.ones((11, 11), bool), norms)
    slow, fast = (tabulate(*given, measures=layer) for layer in (oracle, fastpath))
    assert (slow.zero_content.sum(), slow.no_mass.sum(), slow.thin_content.sum()) == (1, 1, 2)
    for name, column in columns(slow).items():
        np.testing.assert_allclose(columns(fast)[name], column, rtol=8e-6, atol=1e-6, err_msg=name)


def test_head_summed_norm_of_one_head_is_its_transformed_norm():
    attention, norm = random_rows(3, 1, 4, 4), random_rows(3, 1, 4)
    gram = (norm**2)[:, 0, :, None, None]  # (layer, key, head, head)
    summed = tabulate_head_summed(attention, gram, SINKS, ALL, text=2, layers=[0, 2])
    single = tabulate(attention, SINKS, ALL, {"transformed_norm": norm}, layers=[0, 2])
    np.testing.assert_allclose(summed.shares[HEAD_SUMMED], single.shares["transformed_norm"], rtol=1e-14)
    assert set(summed.head.tolist()) == {-1}
    assert summed.ratios == {}
    assert (summed.layer.tolist(), summed.query.tolist()) == ([0] * 3 + [2] * 3, [1, 2, 3] * 2)


def test_opposite_heads_cancel_in_the_sum():
    """Two heads that hand on opposite vectors from the sink: the sum takes nothing from it."""
    attention = np.broadcast_to([0.7, 0.1, 0.1, 0.1], (1, 2, 4, 4))
    gram = np.ones((1, 4, 2, 2))
    gram[0, 0] = [[1, -1], [-1, 1]]
    summed = tabulate_head_summed(attention, gram, SINKS, ALL)
    assert summed.shares[HEAD_SUMMED].tolist() == [0, 0, 0]


def test_joining():
    first = one_head([0.4, 0.3, 0.2, 0.1], norm=[1, 1, 1, 1], text=0)
    second = one_head([0.6, 0.2, 0.1, 0.1], norm=[1, 1, 1, 1], text=1)
    both = join_tables([first, second])
    assert both.text.tolist() == [0, 0, 0, 1, 1, 1]
    assert both.shares["attention"] == pytest.approx([0.4] * 3 + [0.6] * 3)
    assert set(both.ratios) == {"value_norm"}
    assert both.lengths() == [4]
    assert both.text_lengths() == [4, 4]
    assert join_tables([]).text_lengths() == []
    assert len(join_tables([])) == 0
