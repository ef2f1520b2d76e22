"""The ledger for the eye and for programs, and the check that holds it to results."""

import pytest
from ledger_results import CLAIMS

from validation.ledger.finding import FAILS, HOLDS, NOT_JUDGED, NOT_TESTABLE, Finding
from validation.ledger.tables import agreement, commands_of, detail, ledger_table, summary, summary_tables

CHOSEN = [CLAIMS["above-half"], CLAIMS["code"], CLAIMS["median"]]
FINDINGS = {
    "above-half": Finding("a few", HOLDS, "2%"),
    "code": Finding("nothing", NOT_TESTABLE, NOT_JUDGED),
    "median": Finding("a lot", FAILS, "3%"),
}
COMMANDS = {"validate": "sinkscope validate"}


def test_the_summary_counts_claims_figures_and_verdicts():
    assert summary(CHOSEN, FINDINGS).text.startswith(
        "3 claims with 4 published figures: 1 holds, 0 holds in direction, 1 fails, 1 not testable here. "
    )
    tables = summary_tables(CHOSEN, FINDINGS)
    assert [(table.key, [(row["id"], row["verdict"]) for row in table.records()]) for table in tables] == [
        ("claims_A", [("above-half", HOLDS), ("median", FAILS)]),
        ("claims_B", [("code", NOT_TESTABLE)]),
    ]
    assert [table.key for table in summary_tables(CHOSEN[1:2], FINDINGS)] == ["claims_B"]


def test_details_hold_every_entry_and_what_it_would_take_only_where_it_would():
    shown = {
        row["entry"]: row["text"] for row in detail(CHOSEN[0], FINDINGS["above-half"], COMMANDS).records()
    }
    assert shown["published"] == "rows above 50%, attention 25 of 110; rows above 50%, value norm 12 of 110"
    assert shown["command"] == "sinkscope validate"
    assert (shown["found"], shown["floor"], shown["verdict"]) == ("a few", "2%", HOLDS)
    assert "it would take" not in shown
    shown = {row["entry"]: row["text"] for row in detail(CHOSEN[1], FINDINGS["code"], COMMANDS).records()}
    assert shown["it would take"] == CHOSEN[1].needs
    assert shown["command"] == "sinkscope claims --run"
    assert "published" not in shown


def test_programs_get_everything():
    table = ledger_table(CHOSEN, FINDINGS, COMMANDS)
    assert not table.shown
    first = table.records()[0]
    assert first["figures"].startswith("rows above 50%")
    assert (first["commands"], first["here"]) == ("sinkscope validate", "minilm-l6")
    assert (first["rule"], first["floor"]) == (CHOSEN[0].rule, "2%")


def test_a_claim_of_two_runs_has_two_commands():
    assert commands_of(CLAIMS["flips"], {"audit-minilm-clusters": "a", "audit-smollm2-clusters": "b"}) == (
        "a",
        "b",
    )


def rows(findings, claims=CHOSEN):
    return {row["id"]: row for row in ledger_table(claims, findings, COMMANDS).records()}


ROWS = rows(FINDINGS)


def with_entry(claim, key, text):
    return {**ROWS, claim: {**ROWS[claim], key: text}}


@pytest.mark.parametrize("made_now", [False, True])
def test_a_ledger_that_agrees_passes(made_now):
    check = agreement(ROWS, rows(FINDINGS), made_now=made_now)
    assert check.ok
    assert check.found == "all 3 agree"


@pytest.mark.parametrize("made_now", [False, True])
def test_another_verdict_is_found(made_now):
    check = agreement(ROWS, with_entry("median", "verdict", HOLDS), made_now=made_now)
    assert not check.ok
    assert check.found == "1 differ: median: fails in the ledger, holds now"


@pytest.mark.parametrize("made_now", [False, True])
@pytest.mark.parametrize("key", ["says", "figures", "rule", "needs", "source", "part", "here", "commands"])
def test_what_is_written_by_hand_has_to_be_in_the_ledger(key, made_now):
    check = agreement(ROWS, with_entry("median", key, "other"), made_now=made_now)
    assert check.found == f"1 differ: median: other words under {key}"


@pytest.mark.parametrize("key", ["found", "floor", "lengths"])
def test_other_words_are_found_in_what_is_shipped_and_let_pass_in_what_is_new(key):
    now = with_entry("median", key, "4%")
    assert f"median: other words under {key}" in agreement(ROWS, now, made_now=False).found
    assert agreement(ROWS, now, made_now=True).ok


def test_a_row_too_many_and_a_row_too_few_are_found():
    ledger = {**ROWS, "old": ROWS["code"]}
    del ledger["code"]
    found = agreement(ledger, ROWS, made_now=False).found
    assert found == "2 differ: code: not in the ledger; old: no such claim"


@pytest.mark.parametrize("made_now", [False, True])
def test_a_ledger_that_cannot_be_read_is_said_to_be_once(made_now):
    check = agreement(None, ROWS, made_now=made_now)
    assert not check.ok
    assert check.found == (
        "a ledger that is damaged or not there; make it anew: sinkscope reproduce claims --publish"
    )


def test_many_that_differ_are_counted():
    now = {str(number): ROWS["code"] for number in range(12)}
    assert agreement({}, now, made_now=False).found.endswith("; 4 more")
