"""Two results side by side: what is shown has to be equal, and every kind of difference is noticed."""

from __future__ import annotations

from copy import deepcopy

import pytest

from validation.reproduction.compare import compare


def changed(report, path, value):
    """A copy of the report with another value at a path."""
    copy = deepcopy(report)
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


def test_equal_results_have_no_differences(report):
    found = compare(report, deepcopy(report))
    assert found.differences == ()
    assert found.compared == 22


@pytest.mark.parametrize(
    ("path", "value", "where", "expected", "found"),
    [
        (("parts", 1, "rows", 0, "flips"), 0.271, "flips, row 1, flips", "27.0%", "27.1%"),
        (("parts", 1, "rows", 1, "flips"), 0.5, "flips, row 2, flips", "–", "50.0%"),
        (("parts", 1, "rows", 2, "n"), 0, "flips, row 3, n", "", "0"),
        (("parts", 1, "title"), "Other", "flips, title 1", "What flips", "Other"),
        (("parts", 1, "notes"), [], "flips, note 1", "a note", "nothing"),
        (("parts", 2, "rows", 0, "metric"), "b", "hidden, row 1, metric", "a", "b"),
        (("parts", 4, "text"), "Another.", "note closing#2", "Second sentence.", "Another."),
        (("parts", 5, "ok"), False, "check sums", "held", "failed"),
        (("provenance", "model"), "n", "model", "m", "n"),
    ],
)
def test_a_difference_is_named_with_its_place(report, path, value, where, expected, found):
    other = changed(report, path, value)
    if path[-1] == "flips" and path[3] == 1:
        other["parts"][1]["undefined"] = []
    (difference,) = compare(report, other).differences
    assert difference[:3] == (where, expected, found)
    assert not difference.allowed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("parts", 1, "rows", 0, "flips"), 0.27004),
        (("parts", 5, "found"), "0.9999999"),
        (("provenance", "versions"), {"numpy": "3"}),
    ],
)
def test_what_nobody_sees_is_no_difference(report, path, value):
    assert compare(report, changed(report, path, value)).differences == ()


def test_a_part_that_is_missing_or_new_is_noticed(report):
    less = changed(report, ("parts",), report["parts"][:-1])
    assert [one[1:3] for one in compare(report, less).differences] == [("held", "nothing")]
    assert [one[1:3] for one in compare(less, report).differences] == [("nothing", "held")]


@pytest.mark.parametrize("pattern", ["flips.flips", "flips.*", "flips", "fl*", "*"])
def test_what_may_vary_is_allowed(report, pattern):
    found = compare(report, changed(report, ("parts", 1, "rows", 0, "flips"), 0.9), [pattern])
    assert [one.allowed for one in found.differences] == [True]
    assert found.wrong == ()


@pytest.mark.parametrize("pattern", ["flips.n", "hidden", "closing", "flip"])
def test_what_may_vary_covers_nothing_else(report, pattern):
    found = compare(report, changed(report, ("parts", 1, "rows", 0, "flips"), 0.9), [pattern])
    assert len(found.wrong) == 1


@pytest.mark.parametrize(
    ("path", "value", "may"),
    [
        (("parts", 1, "rows", 0, "flips"), 0.9, True),
        (("parts", 1, "rows", 0, "flips"), -0.27, False),
        (("parts", 1, "rows", 0, "n"), 1300, False),
        (("parts", 1, "rows", 0, "flips"), None, False),
        (("parts", 1, "rows", 0, "metric"), "cosine 2", False),
        (("parts", 1, "rows", 0, "metric"), "f" * 64, True),
        (("parts", 1, "title"), "", False),
        (("parts", 1, "notes"), ["2 of 3 notes"], True),
        (("parts", 1, "notes"), ["another of 3 notes"], False),
        (("parts", 5, "ok"), False, False),
        (("provenance", "model"), "n", False),
    ],
)
def test_elsewhere_figures_may_differ_and_nothing_else(report, path, value, may):
    report["parts"][1]["notes"] = ["1 of 3 notes"]
    report["parts"][1]["rows"][0]["metric"] = "a" * 64 if value == "f" * 64 else "cosine 1"
    found = compare(report, changed(report, path, value), elsewhere=["*"])
    assert found.differences
    assert (found.wrong == ()) == may
    assert compare(report, changed(report, path, value)).wrong
