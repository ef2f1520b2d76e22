"""Sinks by name, their value norms, and keys that act like sinks without being declared."""

import numpy as np
import pytest
from text_models import by_key, width

from validation.report.document import Note, Table
from validation.sink_report import SinkReport

TOKENS = ("[CLS]", "a", "b", "[SEP]")
SINKS = np.array([True, False, False, True])
ALL = np.ones((4, 4), bool)
EVEN = np.full((2, 1, 4, 4), 0.25)


def add(
    report, norm=None, sinks=SINKS, visible=ALL, tokens=TOKENS, layers=(0, 1), text=0, ids=None, rows=EVEN
):
    report.add(rows, norm, sinks, visible, text=text, layers=layers, tokens=tokens, token_ids=ids)


def test_value_norm_ratios_by_hand():
    report = SinkReport("special")
    add(report, np.array([[[1, 2, 4, 3]], [[6, 2, 4, 1.5]]]), ids=[101, 7, 8, 102])
    add(report, np.array([[[3, 2, 4, 9]], [[6, 2, 4, 3]]]), text=1)
    (table,) = report.ratio_tables()
    rows = {(row["layer"], row["token"]): row for row in table.records()}
    assert rows[0, "[CLS]"]["median"] == pytest.approx((1 / 3 + 3 / 3) / 2)
    assert (rows[0, "[CLS]"]["n"], rows[0, "[CLS]"]["below_one"]) == (2, 1)
    assert rows[1, "[SEP]"]["median"] == pytest.approx((0.5 + 1) / 2)
    assert rows["all", "[CLS]"]["median"] == pytest.approx(1.5)
    assert (rows["all", "[SEP]"]["n"], rows["all", "[SEP]"]["below_one"]) == (4, 1)
    assert rows["all", "[SEP]"]["share_below_one"] == 0.25
    assert report.ratio_values("[CLS]").tolist() == pytest.approx([1 / 3, 2, 1, 2])
    assert report.ratio_values("<s>").size == 0
    assert "[CLS] (id 101), [SEP] (id 102)" in report.note().text
    assert width(table) <= 80


def test_a_text_of_special_tokens_only_has_no_ratio_and_is_counted():
    report = SinkReport("special")
    add(report, np.ones((2, 1, 4)), sinks=np.ones(4, bool))
    (table,) = report.ratio_tables()
    assert all(row["n"] == 0 and np.isnan(row["median"]) for row in table.records())
    assert table.notes == ("8 values of texts without content left out as undefined",)


def test_without_norms_or_sinks_there_is_no_ratio_table():
    report = SinkReport("none")
    add(report, None)
    assert report.ratio_tables() == ()
    report = SinkReport("none")
    add(report, np.ones((2, 1, 4)), sinks=np.zeros(4, bool))
    assert report.ratio_tables() == ()
    assert "Sink set (none): no key, by choice, so every share is 0." in report.note().text


@pytest.mark.parametrize(
    ("sink", "label"),
    [
        ("special", "[CLS]"),
        ("token:[CLS]", "[CLS]"),
        ("first", "first token"),
        ("0", "position 0"),
        ([0], "position 0"),
    ],
)
def test_sinks_go_by_spelling_or_by_place(sink, label):
    report = SinkReport(sink)
    add(report, np.ones((2, 1, 4)), sinks=np.arange(4) == 0)
    assert {row["token"] for row in report.ratio_tables()[0].records()} == {label}


def test_texts_without_a_sink_are_counted():
    report = SinkReport("token:b")
    add(report, sinks=np.arange(4) == 2)
    add(report, sinks=np.zeros(4, bool), text=1)
    assert "In 1 of 2 texts no sink is visible (share 0, no r)." in report.note().text


def test_padding_is_no_sink():
    real = np.array([True, True, True, False])
    report = SinkReport("special")
    add(report, np.array([[[1, 2, 4, np.nan]]] * 2), visible=real[:, None] & real)
    assert {row["token"] for row in report.ratio_tables()[0].records()} == {"[CLS]"}


def test_many_sinks_are_listed_in_short():
    report = SinkReport("0,1,2,3,4,5,6,7,8,9")
    rows = np.full((1, 1, 12, 12), 1 / 12)
    add(
        report,
        sinks=np.arange(12) < 10,
        visible=np.ones((12, 12), bool),
        tokens=tuple("abcdefghijkl"),
        rows=rows,
    )
    assert "position 7 and 2 more" in report.note().text


def heavy(key, weight, count=20):
    """Rows (1 layer, 2 heads) in which `key` has `weight` and the rest is spread evenly."""
    rows = np.full((1, 2, count, count), (1 - weight) / (count - 1))
    rows[..., key] = weight
    return rows


def undeclared(rows, sinks=None, layers=(0,)):
    count = rows.shape[-1]
    report = SinkReport("none")
    sinks = np.zeros(count, bool) if sinks is None else sinks
    names = tuple(f"t{key}" for key in range(count))
    add(report, sinks=sinks, visible=np.ones((count, count), bool), tokens=names, rows=rows, layers=layers)
    return by_key(report.parts())


def test_an_undeclared_sink_is_reported():
    table = undeclared(heavy(2, 0.4))["undeclared_sinks"]
    assert isinstance(table, Table)
    (row,) = table.records()
    assert (row["text"], row["layer"], row["position"], row["token"]) == (1, 0, 2, "t2")
    assert row["weight"] == pytest.approx(0.4)


def test_its_layer_keeps_its_number():
    rows = np.concatenate([heavy(2, 0.1), heavy(2, 0.2), heavy(3, 0.5)])
    table = undeclared(rows, layers=(0, 2))["undeclared_sinks"]
    assert [(row["layer"], row["position"]) for row in table.records()] == [(2, 3)]


def test_declared_or_light_keys_are_not_reported():
    for parts in (undeclared(heavy(2, 0.4), sinks=np.arange(20) == 2), undeclared(heavy(2, 0.29))):
        note = parts["undeclared"]
        assert isinstance(note, Note)
        assert "none in the 1 of 1 text with at least 16 later rows" in note.text


def test_short_texts_are_said_to_be_untested():
    assert "not tested" in undeclared(heavy(2, 0.9, count=16))["undeclared"].text
    assert "none in the 1" in undeclared(heavy(0, 0.1, count=17))["undeclared"].text
