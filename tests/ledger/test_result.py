"""Results are read by key and by cell, and what is not there is refused with the run's name."""

import pytest
from ledger_results import made_up

from oracle import InputError
from validation.ledger.result import Result, Results

DATA = made_up(
    {
        "t": [
            {"a": "x", "b": 1, "c": None},
            {"a": "y", "b": 2.5, "c": "Infinity"},
            {"a": "y", "b": True, "c": "z"},
        ],
        "one: t": [{"a": "w"}],
        "u": [],
    },
    checks={"good": True, "bad": False},
    notes={"n": "A sentence."},
    titles={"t": "A table of 5%", "u": "A table of 15%"},
    model="m",
)
RESULT = Result("some-run", DATA)


def test_rows_are_found_by_their_cells_wherever_they_stand():
    assert RESULT.row("t", a="x")["b"] == 1
    assert [row["b"] for row in RESULT.rows("t", a="y")] == [2.5, True]
    assert RESULT.rows("t", a="none") == []
    assert len(RESULT.rows("t")) == 3
    assert [row["a"] for row in RESULT.all_rows("t")] == ["x", "y", "y", "w"]


def test_a_table_is_found_by_how_its_title_begins():
    assert RESULT.titled("A table of 5%") == "t"


def test_numbers_checks_and_notes():
    first, second, third = RESULT.rows("t")
    assert RESULT.number(first, "b") == 1.0
    assert RESULT.number(second, "c") == float("inf")
    assert (RESULT.held("good"), RESULT.held("bad")) == (True, False)
    assert RESULT.text("n") == "A sentence."
    assert RESULT.provenance == {"model": "m"}
    for row, column in ((first, "c"), (third, "b"), (third, "c"), (first, "none")):
        with pytest.raises(InputError, match=f"result of some-run: expected a number under '{column}'"):
            RESULT.number(row, column)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda result: result.rows("none"), "one table 'none'; found 0"),
        (lambda result: result.row("t", a="y"), "one row of table 't' with a 'y'; found 2"),
        (lambda result: result.row("t", a="none"), "found 0"),
        (lambda result: result.rows("t", other=1), "a column 'other' of table 't'; found none"),
        (lambda result: result.all_rows("none"), "a table 'none'; found none"),
        (lambda result: result.held("none"), "one check 'none'; found 0"),
        (lambda result: result.text("none"), "one note 'none'; found 0"),
        (lambda result: result.titled("none"), "one table titled 'none'; found 0"),
        (lambda result: result.titled("A "), "one table titled 'A '; found 2"),
    ],
)
def test_what_is_not_there_is_refused(call, said):
    with pytest.raises(InputError, match=f"result of some-run: expected .*{said}"):
        call(RESULT)


def test_a_table_that_comes_twice_is_not_guessed_at():
    twice = {**DATA, "parts": [*DATA["parts"], DATA["parts"][0]]}
    with pytest.raises(InputError, match="one table 't'; found 2"):
        Result("some-run", twice).rows("t")


def test_each_result_is_loaded_once_and_only_when_asked_for():
    loaded = []

    def load(name):
        loaded.append(name)
        return DATA

    results = Results(("one", "two"), load)
    assert (list(results), len(results), loaded) == (["one", "two"], 2, [])
    assert results["two"] is results["two"]
    assert loaded == ["two"]
    with pytest.raises(KeyError):
        results["three"]
