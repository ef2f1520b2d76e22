"""Which pairs are drawn, and that a wrong sum cannot hide."""

import numpy as np
import pytest
from audit_rows import sink_and_content_apart

import oracle
from oracle import DistanceSums
from validation.audit.checking import PairVerification
from validation.report.document import Check, Note

SINKS = np.arange(7) == 0


def verified(pairs, seed=0, texts=3, change=None):
    drawn = PairVerification(pairs, seed)
    asked = {"metrics": ("jsd", "entropy"), "conventions": ("keep", "drop"), "visible": np.ones((7, 7), bool)}
    for text, rows in enumerate(sink_and_content_apart(texts=texts)):
        found = oracle.distance_sums(rows, SINKS, **asked)
        if change is not None:
            change(text, found)
        drawn.add(text, (3, 5), rows, SINKS, found, asked)
    return drawn


def test_as_many_as_were_asked_for_are_drawn_from_all_texts():
    part = verified(40).part()
    assert isinstance(part, Check)
    assert part.ok
    assert part.expected.startswith("40 of 360 sums")
    drawn = verified(40)._drawn
    assert {one.place.split(",")[0] for one in drawn} == {"text 1", "text 2", "text 3"}
    assert [one.place for one in drawn] == [one.place for one in verified(40)._drawn]
    assert [one.place for one in drawn] != [one.place for one in verified(40, seed=1)._drawn]
    assert verified(10_000).part().expected.startswith("360 of 360")
    assert "heads L3 H" in drawn[0].place or "heads L5 H" in drawn[0].place


@pytest.mark.parametrize("part", ["sums", "counts"])
@pytest.mark.parametrize("key", [("jsd", "keep"), ("entropy", "drop")])
def test_one_wrong_sum_is_found_and_named(part, key):
    def change(text, found):
        if text == 1:
            getattr(found, part)[key][0, 2, 9] += 1

    check = verified(360, change=change).part()
    assert not check.ok
    assert check.found.startswith("1 pairs outside")
    assert check.found.endswith(f"at text 2, heads L3 H2 and L5 H1, {' '.join(key)}")


def test_a_sum_that_is_off_by_rounding_is_within_and_by_more_is_not():
    def scaled(factor):
        def change(_, found: DistanceSums):
            for sums in found.sums.values():
                sums *= factor

        return verified(20, change=change).part()

    assert scaled(1 + 1e-14).ok
    assert not scaled(1 + 1e-11).ok
    assert not scaled(np.nan).ok


def test_a_single_head_has_no_pair():
    drawn = PairVerification(3)
    rows = sink_and_content_apart(texts=1)[0, :1, :1]
    drawn.add(0, (0,), rows, SINKS, oracle.distance_sums(rows, SINKS, "jsd"), {"metrics": "jsd"})
    assert isinstance(drawn.part(), Note)


def test_without_a_seed_other_pairs_are_drawn_each_time():
    assert verified(40, seed=None)._drawn != verified(40, seed=None)._drawn
