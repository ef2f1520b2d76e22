"""A report read back: the same on the screen as the one that was written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from oracle import InputError
from validation.report.as_json import as_data, dumps
from validation.report.document import Check, Column, Document, Note, Table
from validation.report.from_json import read
from validation.report.terminal import render

COLUMNS = (
    Column("name", "name"),
    Column("share", "share", ".1%"),
    Column("count", "count", ",d"),
    Column("ratio", "ratio", ".2f"),
    Column("word", "word"),
    Column("held", "held"),
)
TABLE = Table(
    "shares",
    "Shares",
    COLUMNS,
    (
        ("a", np.float32(0.1), np.int64(1200), float("inf"), "Infinity", True),
        ("b", float("nan"), None, -np.inf, "x", np.False_),
        ("c", 0.99999, 3, np.longdouble("nan"), "", None),
    ),
    ("a note",),
    ("an intro",),
)
DOCUMENT = Document(
    "measure",
    {"T": tuple(range(20)), "model_sha256": None, "sizes": {"layers": 6}, "versions": {"numpy": "2.0"}},
    (
        Note("section", "A section"),
        TABLE,
        Table("hidden", "Hidden", COLUMNS[:1], (("a",),), shown=False),
        Check("rows", "1", "2", False),
        Note("T", "T: 9.", (9,)),
    ),
)


def back(document):
    return read(json.loads(dumps(document)))


@pytest.mark.parametrize("width", [80, 40])
def test_it_looks_the_same(width):
    assert render(back(DOCUMENT), width=width) == render(DOCUMENT, width=width)


def test_undefined_and_empty_cells_are_told_apart_and_so_are_infinities_and_words():
    table = back(DOCUMENT).parts[1]
    assert [str(row[1]) for row in table.rows] == [str(float(np.float32(0.1))), "nan", "0.99999"]
    assert [str(row[2]) for row in table.rows] == ["1200", "None", "3"]
    assert [str(row[3]) for row in table.rows] == ["inf", "-inf", "nan"]
    assert [row[4] for row in table.rows] == ["Infinity", "x", ""]


def test_it_is_written_again_as_it_was():
    data = json.loads(dumps(DOCUMENT))
    assert as_data(read(data)) == data


def without(key):
    data = as_data(DOCUMENT)
    return {name: value for name, value in data.items() if name != key}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (without("parts"), "no 'parts'"),
        ({**as_data(DOCUMENT), "format": 7}, "format 7"),
        ({**as_data(DOCUMENT), "parts": [{"kind": "chart"}]}, "a part of the kind 'chart'"),
        ({**as_data(DOCUMENT), "parts": [3]}, "subscriptable"),
        ([], "list"),
    ],
)
def test_anything_else_is_refused(data, words):
    with pytest.raises(InputError, match=f"the result: expected a report as --json writes it.*{words}"):
        read(data, "the result")
