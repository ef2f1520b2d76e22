from __future__ import annotations

import time

import numpy as np
import pytest

from oracle._results import EntropySplit, RowMeasures
from validation.bench.case import Bound, Case, Contender, quantities, run_case, sound

TRUTH = np.array([0.25, 0.5])
BOUNDS = {"share": Bound(1e-3)}


def contender(name, error=0.0, bounds=BOUNDS, missing=None, calls=None):
    def call():
        if missing:
            raise AssertionError("what is missing must not be called")
        if calls is not None:
            calls.append(name)
        return (TRUTH + error).astype(np.float32)

    return Contender(name, call, bounds, missing)


def case(*contenders, key="rows", judged=True):
    return Case(key, "Title", lambda: TRUTH, contenders, ("a note",), judged)


def records(outcome):
    return {row["contender"]: row for row in outcome.table.records()}


def test_who_agrees_is_timed_and_set_against_us():
    outcome = run_case(
        case(contender("fastpath", 1e-4), contender("torch, eager"), contender("limit", bounds={}))
    )
    rows = records(outcome)
    assert outcome.check.ok
    assert outcome.check.found == "all within"
    assert outcome.check.expected.startswith("2 ways")
    assert rows["fastpath"]["times"] is None
    assert rows["fastpath"]["error"] == pytest.approx(1e-4, rel=1e-3)
    assert rows["limit"]["error"] is None
    for name in ("torch, eager", "limit"):
        assert rows[name]["lower"] <= rows[name]["times"] <= rows[name]["upper"]
        assert rows[name]["ms"] > 0
    assert rows["torch, eager"]["goal"] == ">= 15"
    assert rows["torch, eager"]["verdict"] in ("met", "missed")
    assert rows["limit"]["verdict"] == ""
    assert any("15 rounds" in note for note in outcome.table.notes)
    assert outcome.accuracy == [("rows", "share", pytest.approx(1e-4, rel=1e-3), 1e-3, "met")]
    assert sound(outcome.accuracy).records()[0]["bound"] == 1e-3


def test_a_peer_that_disagrees_is_not_timed_and_the_check_fails():
    calls = []
    outcome = run_case(
        case(contender("fastpath"), contender("torch, eager", 0.1, calls=calls), contender("x"))
    )
    rows = records(outcome)
    assert calls == ["torch, eager"]
    assert not outcome.check.ok
    assert outcome.check.found.startswith("torch, eager: share outside its bound")
    assert rows["torch, eager"]["verdict"] == "disagrees"
    assert rows["torch, eager"]["ms"] is None
    assert rows["x"]["ms"] > 0


def test_if_we_disagree_nothing_is_timed():
    calls = []
    outcome = run_case(case(contender("fastpath", np.nan), contender("torch, eager", calls=calls)))
    rows = records(outcome)
    assert outcome.timings is None
    assert calls == ["torch, eager"]
    assert not outcome.check.ok
    assert rows["fastpath"]["verdict"] == "disagrees"
    assert rows["torch, eager"]["verdict"] == "not run"
    assert outcome.accuracy[0][-1] == "missed"


def test_other_quantities_than_the_oracles_are_a_disagreement():
    ours = Contender("fastpath", lambda: RowMeasures({"attention": TRUTH}, {}), BOUNDS)
    outcome = run_case(case(ours))
    assert outcome.check.found == "fastpath: expected share; found share attention"


def test_what_is_missing_keeps_its_row():
    outcome = run_case(case(contender("fastpath"), contender("torch, eager", missing="no torch")))
    row = records(outcome)["torch, eager"]
    assert (row["verdict"], row["ms"], row["goal"]) == ("not run", None, ">= 15")
    assert outcome.check.ok


def test_goals_are_not_judged_at_other_sizes():
    outcome = run_case(case(contender("fastpath"), contender("torch, eager"), judged=False))
    row = records(outcome)["torch, eager"]
    assert row["verdict"] == "not judged"
    assert row["times"] > 0


def test_quantities_have_names():
    split = EntropySplit(TRUTH, TRUTH, TRUTH)
    found = quantities(RowMeasures({"attention": TRUTH, "n": TRUTH}, {"n": TRUTH}, split))
    assert list(found) == [
        "share attention",
        "share n",
        "r n",
        "entropy total",
        "entropy binary",
        "entropy content",
    ]
    assert list(quantities(TRUTH)) == ["share"]


def test_a_part_of_the_work_is_scaled_to_all_of_it():
    def slow():
        time.sleep(0.01)
        return TRUTH

    both = (Contender("fastpath", slow, BOUNDS), Contender("a tenth", slow, BOUNDS, share=0.1))
    rows = records(run_case(case(*both), rounds=3))
    assert rows["a tenth"]["ms"] >= 100
    assert 5 < rows["a tenth"]["times"] < 20


def test_a_partial_peer_may_leave_quantities_out_and_others_may_not():
    truth = {"jsd keep": TRUTH, "jsd drop": 2 * TRUTH}
    half = {"jsd keep": TRUTH}
    bounds = {"jsd": Bound(1e-3)}
    for partial in (True, False):
        peer = Contender("peer", lambda: half, bounds, partial=partial)
        given = (Contender("fastpath", lambda: truth, bounds), peer)
        outcome = run_case(Case("distances", "Title", lambda: truth, given, shown="jsd"), rounds=2)
        assert outcome.check.ok is partial
    wrong = Contender("peer", lambda: {"jsd keep": TRUTH + 1}, bounds, partial=True)
    outcome = run_case(Case("distances", "Title", lambda: truth, (given[0], wrong), shown="jsd"), rounds=2)
    assert not outcome.check.ok


def test_our_milliseconds_are_judged_by_a_goal_of_their_own():
    outcome = run_case(case(contender("fastpath"), contender("x"), key="verdicts"), rounds=2)
    rows = records(outcome)
    assert (rows["fastpath"]["goal"], rows["fastpath"]["verdict"]) == ("<= 50 ms", "met")
