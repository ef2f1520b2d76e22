"""The list of runs: every one can be called, and the list says what it should."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import typer

from oracle import InputError
from validation.cli import app
from validation.reproduction.runs import choose_runs, read_runs
from validation.reproduction.stamp import stamp_of

ROOT = Path(__file__).parents[2]
RUNS = read_runs()


def parse(command):
    """Let the command line read a call without doing it; what it dislikes is raised."""
    group = typer.main.get_command(app)
    first, *rest = command
    found = group.get_command(None, first)
    if found is None:
        raise LookupError(first)
    found.make_context(first, [*rest, "--json", "x.json"])


@pytest.mark.parametrize("run", RUNS, ids=[run.name for run in RUNS])
def test_every_command_is_one(run):
    parse(run.command)
    assert "--json" not in run.command


@pytest.mark.parametrize("command", [["audits"], ["audit", "--clusters", "jsd"], ["diff", "oracle"]])
def test_a_command_that_is_none_is_noticed(command):
    with pytest.raises(Exception, match=r"audits|No such option|Missing"):
        parse(command)


def test_needs_are_extras_of_the_package():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert {need for run in RUNS for need in run.needs} <= set(extras)


def test_timings_come_last_and_all_of_it_fits_into_an_hour():
    assert RUNS[-1].name == "bench"
    assert sum(run.minutes for run in RUNS) < 60


def test_runs_are_chosen_by_name_in_the_order_of_the_list():
    assert [run.name for run in choose_runs(["bench", "validate"])] == ["validate", "bench"]
    assert choose_runs([]) == RUNS
    with pytest.raises(InputError, match=r"NAME: expected some of validate, .*; found 'audits'"):
        choose_runs(["audits", "bench"])


ENTRIES = 'name = "a"\ncommand = ["b"]\nabout = "c"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"[[run]]\n{ENTRIES}", "no minutes in a"),
        (f"[[run]]\n{ENTRIES}minutes = 1\nvary = []", "vary in a"),
        (f"[[run]]\n{ENTRIES}minutes = 1\n" * 2, "a twice"),
    ],
)
def test_a_list_that_is_wrong_is_refused(tmp_path, text, words):
    file = tmp_path / "runs.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=f"runs.toml: expected runs, each .*; found {words}"):
        read_runs(file)


def test_a_list_that_is_right_is_read(tmp_path):
    file = tmp_path / "runs.toml"
    file.write_text(f"[[run]]\n{ENTRIES}minutes = 1\nvaries = ['d']")
    (run,) = read_runs(file)
    assert (run.name, run.command, run.varies) == ("a", ("b",), ("d",))


def test_the_ledger_alone_is_made_from_the_results_of_the_others():
    assert [run.name for run in RUNS if run.reads_results] == ["claims"]
    assert "results" in stamp_of(next(run for run in RUNS if run.reads_results))
    assert "results" not in stamp_of(RUNS[0])
