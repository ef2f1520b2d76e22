"""Judging: results that lack something, verdicts that nobody knows, rows that do not say what they take."""

from dataclasses import replace

import pytest
from ledger_results import CLAIMS, made_up
from wording import refused

from oracle import InputError
from validation.ledger import judging
from validation.ledger.finding import EXACT, HOLDS, NOT_TESTABLE, Finding, verdict
from validation.ledger.judging import judge_claim, judge_claims
from validation.ledger.result import Results

ARITHMETIC = CLAIMS["arithmetic"]


def always(monkeypatch, said, lengths=None):
    monkeypatch.setitem(
        judging.JUDGES, ARITHMETIC.judge, lambda claim, results: Finding("x", said, EXACT, lengths)
    )


def test_claims_are_judged_by_their_own_runs_each_loaded_once():
    loaded = []

    def load(name):
        loaded.append(name)
        rows = [
            {"what": "by the odds law, measured by the oracle", "ratio": 0.6, "sink_share": 0.919},
            {"what": "the ratio that would give 73%", "ratio": 0.142, "sink_share": 0.73},
        ]
        return made_up({"arithmetic": rows})

    again = replace(ARITHMETIC, id="again")
    found = judge_claims([ARITHMETIC, again, CLAIMS["code"]], load)
    assert list(found) == ["arithmetic", "again", "code"]
    assert found["arithmetic"] == found["again"]
    assert loaded == ["validate"]


def test_a_result_that_lacks_a_table_is_refused_with_the_claim():
    with pytest.raises(
        InputError, match="claim arithmetic: result of validate: expected one table 'arithmetic'"
    ):
        judge_claim(ARITHMETIC, Results(("validate",), lambda name: made_up()))


def test_another_verdict_is_refused(monkeypatch):
    always(monkeypatch, "confirmed")
    with refused("claim arithmetic", "a verdict from holds, holds in direction, fails, not testable here"):
        judge_claim(ARITHMETIC, Results((), {}.__getitem__))


def test_not_testable_takes_words_on_what_it_would_take(monkeypatch):
    always(monkeypatch, NOT_TESTABLE)
    with refused("claim arithmetic", "what it would take"):
        judge_claim(ARITHMETIC, Results((), {}.__getitem__))
    able = replace(ARITHMETIC, needs="another model")
    assert judge_claim(able, Results(("validate",), lambda name: made_up())).verdict == NOT_TESTABLE


def test_lengths_stand_beside_a_finding(monkeypatch):
    """T of one run, of several that share it, and of each where they differ; none of a run without texts."""
    always(monkeypatch, HOLDS)
    lengths = {"one": [18, 11, 12], "two": [11, 18], "three": [512, 512], "none": []}
    results = Results(tuple(lengths), lambda name: made_up(T=lengths[name]))
    for runs, words in (
        (("one",), "T 11-18"),
        (("one", "two", "none"), "T 11-18"),
        (("one", "three"), "one T 11-18, three T 512"),
        (("none",), ""),
        ((), ""),
    ):
        assert judge_claim(replace(ARITHMETIC, runs=runs), results).lengths == words


@pytest.mark.parametrize("words", ["T 7", ""])
def test_a_judge_that_says_t_itself_is_believed(monkeypatch, words):
    always(monkeypatch, HOLDS, words)
    results = Results(("validate",), lambda name: made_up(T=[11, 18]))
    assert judge_claim(ARITHMETIC, results).lengths == words


def test_verdicts_in_their_order():
    assert [verdict(True), verdict(True, True), verdict(False, True), verdict(False)] == [
        "holds",
        "holds",
        "holds in direction",
        "fails",
    ]
