"""The ledger for the eye and for programs, and the check that holds it to results."""

import pytest
from ledger_results import CLAIMS

from validation.ledger.finding import FAILS, HOLDS, NOT_TESTABLE, Finding
from validation.ledger.tables import agreement, commands_of, detail, ledger_table, summary, summary_tables

CHOSEN = [CLAIMS["above-half"], CLAIMS["code"], CLAIMS["median"]]
FINDINGS = {
    "above-half": Finding("a few", HOLDS),
    "code": Finding("nothing", NOT_TESTABLE),
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
    assert (shown["found"], shown["floor"], shown["verdict"]) == ("a few", "none", HOLDS)
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
    assert (first["rule"], first["floor"]) == (CHOSEN[0].rule, "none")


def test_a_claim_of_two_runs_has_two_commands():
    assert commands_of(CLAIMS["flips"], {"audit-minilm": "a", "audit-smollm2": "b"}) == ("a", "b")


@pytest.mark.parametrize("made_now", [False, True])
def test_a_ledger_that_agrees_passes(made_now):
    check = agreement(CHOSEN, FINDINGS, FINDINGS, made_now=made_now)
    assert check.ok
    assert check.found == "all 3 agree"


@pytest.mark.parametrize("made_now", [False, True])
def test_another_verdict_is_found(made_now):
    now = {**FINDINGS, "median": FINDINGS["median"]._replace(verdict=HOLDS)}
    check = agreement(CHOSEN, FINDINGS, now, made_now=made_now)
    assert not check.ok
    assert check.found == "1 differ: median: fails in the ledger, holds now"


def test_other_words_are_found_in_what_is_shipped_and_let_pass_in_what_is_new():
    now = {**FINDINGS, "median": FINDINGS["median"]._replace(floor="4%")}
    assert "median: other words" in agreement(CHOSEN, FINDINGS, now, made_now=False).found
    assert agreement(CHOSEN, FINDINGS, now, made_now=True).ok


def test_a_row_too_many_and_a_row_too_few_are_found():
    ledger = {**FINDINGS, "old": Finding("x", HOLDS)}
    del ledger["code"]
    found = agreement(CHOSEN, ledger, FINDINGS, made_now=False).found
    assert found == "2 differ: code: not in the ledger; old: no such claim"


def test_many_that_differ_are_counted():
    claims = list(CLAIMS.values())[:12]
    now = {claim.id: Finding("x", HOLDS) for claim in claims}
    assert agreement(claims, {}, now, made_now=False).found.endswith("; 4 more")
