"""`sinkscope claims`: what is shipped agrees with its results, and what is tampered with does not."""

import copy
import json
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest
import typer
from wording import refused

from validation.claims import read_claims
from validation.cli import app, main
from validation.ledger import command
from validation.ledger.command import Chosen, read_commands, show_claims
from validation.ledger.finding import FAILS, HOLDS, NOT_TESTABLE
from validation.ledger.saved import read_rows
from validation.progress import silent
from validation.reproduction import Outcome, choose_runs, load_result
from validation.reproduction.kept import SHIPPED, read_kept

CLAIMS = read_claims()


EVERY = Chosen()


def show(chosen=EVERY, **given):
    return show_claims(chosen, **{"run": False, "fresh": False, "progress": silent, **given})


def agree(document):
    return next(part for part in document.parts if part.key == "claims_agree")


def verdicts(document):
    (table,) = (part for part in document.parts if part.key == "ledger")
    return {row["id"]: row["verdict"] for row in table.records()}


@pytest.fixture
def tampered(monkeypatch):
    """Lets a shipped result be changed: a function of the rows of one of its tables."""

    def change(run, table, edit):
        def load(name, folder):
            data = copy.deepcopy(load_result(name, folder))
            if name == run:
                edit(next(part for part in data["parts"] if part.get("key") == table)["rows"])
            return data

        monkeypatch.setattr(command, "load_result", load)

    return change


@pytest.fixture
def outcomes(monkeypatch):
    """Fakes the runs: those of `without` give no result; `asked` holds what was asked for."""
    asked = []

    def fake(without=()):
        def run_named(names, progress, fresh):
            asked.append((tuple(names), fresh))
            return tuple(
                Outcome(run, "new", 1.0, None if run.name in without else load_result(run.name), "code 3")
                for run in choose_runs(names)
            )

        monkeypatch.setattr(command, "run_named", run_named)
        return asked

    return fake


def test_no_row_of_the_ledger_is_without_a_floor_or_a_word_why():
    rows = read_rows()
    assert {row["floor"] for row in rows.values()} & {"", "none"} == set()
    own = {
        name: rows[name]["lengths"] for name in ("orthogonal-split", "entropy-split", "formula", "arithmetic")
    }
    assert own == {"orthogonal-split": "T 11", "entropy-split": "T 11", "formula": "T 13", "arithmetic": ""}
    assert rows["formula"]["here"] == "drawn weights"
    assert rows["clark-recipe"]["here"] == "minilm-l6, drawn rows"
    assert rows["depth"]["lengths"] == "T 64, 128, 256, 512 in both"


def test_the_ledger_is_what_its_shipped_results_say():
    document = show()
    assert agree(document).ok, agree(document).found
    assert list(read_rows()) == [claim.id for claim in CLAIMS]
    assert not document.not_run


@pytest.mark.parametrize(
    ("run", "table", "edit", "claim", "verdict"),
    [
        (
            "validate",
            "controls",
            lambda rows: [row.update(moved=3) for row in rows if row["weighting"] == "all norms 1"],
            "unit-norms",
            FAILS,
        ),
        (
            "validate",
            "arithmetic",
            lambda rows: [
                row.update(sink_share=0.73) for row in rows if row["what"].startswith("by the odds")
            ],
            "arithmetic",
            HOLDS,
        ),
        (
            "audit-smollm2-clusters",
            "verdicts",
            lambda rows: [row.update(flips=0.01) for row in rows if row["metric"] == "cosine"],
            "flips",
            FAILS,
        ),
        (
            "prune-smollm2",
            "pruned_1",
            lambda rows: [row.update(matched_median=1.0, matched_most=1.0) for row in rows],
            "pruning-channel",
            HOLDS,
        ),
        (
            "validate",
            "published",
            lambda rows: [
                row.update(one_set=0.6) for row in rows if row["figure"] == "worst row, value norm"
            ],
            "worst",
            HOLDS,
        ),
        (
            "audit-minilm-clusters",
            "axes_clark2019",
            lambda rows: [row.update(r_squared=0.5) for row in rows if row["side"] == "drop"],
            "artefact",
            FAILS,
        ),
        (
            "lengths-smollm2",
            "lengths",
            lambda rows: [row.update(median_value_norm=0.0) for row in rows if row["T"] == 64],
            "depth",
            NOT_TESTABLE,
        ),
    ],
)
def test_a_tampered_result_changes_the_verdict_and_is_noticed(tampered, run, table, edit, claim, verdict):
    tampered(run, table, edit)
    document = show()
    assert verdicts(document)[claim] == verdict
    assert not agree(document).ok
    assert f"{claim}: " in agree(document).found


def test_a_reordered_result_changes_nothing(tampered):
    tampered("validate", "published", lambda rows: rows.reverse())
    assert agree(show()).ok


def test_claims_are_chosen_by_id_part_and_verdict():
    document = show(Chosen(ids=("arithmetic", "flips")))
    assert list(verdicts(document)) == ["arithmetic", "flips"]
    assert [part.key for part in document.parts if part.key.startswith("claim_")] == [
        "claim_arithmetic",
        "claim_flips",
    ]
    assert agree(document).ok
    parts = {claim.id for claim in CLAIMS if claim.source.part == "B"}
    assert verdicts(show(Chosen(part="B"))).keys() == parts
    failed = verdicts(show(Chosen(verdict=FAILS)))
    assert "arithmetic" in failed
    assert set(failed.values()) == {FAILS}
    assert verdicts(show(Chosen(ids=("arithmetic",), verdict=NOT_TESTABLE))) == {}
    assert not [part for part in show().parts if part.key.startswith("claim_")]


@pytest.mark.parametrize(
    ("chosen", "option"),
    [
        (Chosen(ids=("none",)), "--detail"),
        (Chosen(part="C"), "--part"),
        (Chosen(verdict="true"), "--verdict"),
    ],
)
def test_what_no_claim_has_is_refused(chosen, option):
    with refused(option, "expected"):
        show(chosen)


def test_options_that_mean_nothing_together_are_refused():
    with refused("--fresh", "--run"):
        show(fresh=True)


def test_a_run_is_of_the_commands_that_the_claims_need(outcomes):
    asked = outcomes()
    document = show(Chosen(ids=("arithmetic", "pruning")), run=True, fresh=True)
    assert asked == [(("validate", "prune-smollm2"), True)]
    assert agree(document).ok
    assert "made now" in agree(document).expected
    show(Chosen(ids=("code",)), run=True)
    assert len(asked) == 1  # no command is needed, which is not to say all of them


def test_claims_without_a_result_are_left_out_and_named(outcomes):
    outcomes(without=("prune-smollm2",))
    document = show(Chosen(ids=("arithmetic", "pruning")), run=True)
    (note,) = document.not_run
    assert note.text == "NOT RUN: prune-smollm2: code 3. Left out for it: pruning."
    assert list(verdicts(document)) == ["arithmetic"]


@pytest.mark.parametrize("entry", ["rule", "says", "needs", "model"])
def test_a_row_that_was_edited_by_hand_in_claims_toml_is_noticed(monkeypatch, entry):
    edited = tuple(
        replace(claim, **{entry: f"{getattr(claim, entry)} Edited."}) if claim.id == "code" else claim
        for claim in CLAIMS
    )
    monkeypatch.setattr(command, "read_claims", lambda: edited)
    assert agree(show()).found == f"1 differ: code: other words under {entry}"


def test_a_published_figure_that_was_corrected_is_noticed(monkeypatch):
    def corrected(claim):
        first, *others = claim.figures
        return replace(claim, figures=(replace(first, name="another name"), *others))

    edited = tuple(corrected(claim) if claim.id == "setup" else claim for claim in CLAIMS)
    monkeypatch.setattr(command, "read_claims", lambda: edited)
    assert agree(show()).found == "1 differ: setup: other words under figures"


def test_results_of_other_code_are_named_and_fail_nothing(monkeypatch):
    monkeypatch.setattr("validation.reproduction.shipped.code_digest", lambda: "this")
    document = show(Chosen(ids=("arithmetic",)))
    (note,) = (part for part in document.parts if part.key == "other_code")
    assert note.text.startswith("Made by other code than this: 1 of 1 shipped result (validate);")
    assert not document.failed
    (run,) = choose_runs(["validate"])
    made_by = read_kept(run, SHIPPED).stamp["code"]
    monkeypatch.setattr("validation.reproduction.shipped.code_digest", lambda: made_by)
    assert "other_code" not in [part.key for part in show(Chosen(ids=("arithmetic",))).parts]


def test_a_missing_result_is_said_with_how_to_make_it(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "load_result", lambda name, _: load_result(name, tmp_path))
    document = show(Chosen(ids=("arithmetic", "code")))
    (note,) = document.not_run
    assert note.text.startswith("NOT RUN: validate: the result of validate: expected validate.json")
    assert note.text.endswith("Left out for it: arithmetic.")
    assert list(verdicts(document)) == ["code"]
    assert agree(document).ok


def test_commands_are_shown_as_a_reader_calls_them():
    shown = read_commands()
    assert shown["collapse-demo"] == "sinkscope collapse --demo"
    assert not any("{" in words for words in shown.values())


def rows_with_commands():
    shown = read_commands()
    return [
        (claim.id, words) for claim in CLAIMS for words in ([shown[n] for n in claim.runs] or [claim.command])
    ]


@pytest.mark.parametrize(("claim", "words"), rows_with_commands())
def test_every_row_has_a_command_that_there_is_with_options_that_it_has(claim, words):
    program, name, *arguments = shlex.split(words)
    assert program == "sinkscope"
    group = typer.main.get_command(app)
    called = group.commands[name]
    context = called.make_context(name, arguments)  # a usage error for an option that it does not have
    assert context.info_name == name


def test_the_command_line(capsys):
    assert main(["claims", "--detail", "arithmetic"]) == 0
    shown = capsys.readouterr().out
    assert "Claim arithmetic" in shown
    assert "91.9%" in shown
    assert main(["claims", "--verdict", "confirmed"]) == 2
    assert "--verdict" in capsys.readouterr().err


def test_json_has_the_whole_ledger(capsys):
    assert main(["claims", "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    (ledger,) = (part for part in data["parts"] if part["key"] == "ledger")
    assert len(ledger["rows"]) == len(CLAIMS)
    assert all(row["rule"] and row["commands"] and row["found"] and row["verdict"] for row in ledger["rows"])


def test_no_library_for_models_is_loaded_to_show_the_ledger():
    code = (
        "import sys; from validation.cli import main; main(['claims', '--json', '-']);"
        "print([n for n in ('torch', 'transformers', 'tokenizers') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("[]")
