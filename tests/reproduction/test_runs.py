"""The list of runs: every one can be called, and the list says what it should."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer

from oracle import InputError
from validation.cli import app
from validation.reproduction.kept import SHIPPED, read_kept
from validation.reproduction.runs import choose_runs, read_runs
from validation.reproduction.shipped import usual_seconds
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


def test_timings_come_last():
    assert RUNS[-1].name == "bench"


def test_minutes_are_estimated_only_where_no_result_says_them():
    estimated = {run.name for run in RUNS if run.minutes is not None}
    assert estimated >= {run.name for run in RUNS if read_kept(run, SHIPPED) is None}
    assert estimated <= {"bench"}


def test_all_of_it_takes_no_longer_than_the_readme_says():
    (minutes,) = re.findall(
        r"reproduce  .*# everything, up to (\d+) minutes", (ROOT / "README.md").read_text()
    )
    assert sum(usual_seconds(run) for run in RUNS) <= 60 * int(minutes)


def test_runs_are_chosen_by_name_in_the_order_of_the_list():
    assert [run.name for run in choose_runs(["bench", "validate"])] == ["validate", "bench"]
    assert choose_runs([]) == RUNS
    with pytest.raises(InputError, match=r"NAME: expected some of validate, .*; found 'audits'"):
        choose_runs(["audits", "bench"])


ENTRIES = 'name = "a"\ncommand = ["b"]\nabout = "c"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[run]]\nname = 'a'\ncommand = ['b']", "no about in a"),
        (f"[[run]]\n{ENTRIES}minutes = 'long'", "minutes = 'long' in a"),
        (f"[[run]]\n{ENTRIES}minutes = true", "minutes = True in a"),
        (f"[[run]]\n{ENTRIES}varies = 'x'", "varies = 'x' in a"),
        (f"[[run]]\n{ENTRIES}needs = [1]", r"needs = \[1\] in a"),
        (f"[[run]]\n{ENTRIES}reads_results = 1", "reads_results = 1 in a"),
        ("[[run]]\nname = 1\ncommand = ['b']\nabout = 'c'", "name = 1 in 1"),
        ("run = ['a']", "'a'"),
        ("run = 1", "run at the top"),
        ("[[runs]]\n", "runs at the top"),
        ("", "nothing at the top"),
        ("[[run", "Expected"),
        (f"[[run]]\n{ENTRIES}minutes = 1\nvary = []", "vary in a"),
        (f"[[run]]\n{ENTRIES}minutes = 1\n" * 2, "a twice"),
    ],
)
def test_a_list_that_is_wrong_is_refused(tmp_path, text, words):
    file = tmp_path / "runs.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=f"runs.toml: expected runs, each .*; found {words}"):
        read_runs(file)


def test_a_list_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"runs.toml: expected runs, .*; found No such file"):
        read_runs(tmp_path / "runs.toml")
    (tmp_path / "runs.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"runs.toml: expected runs, .*; found 'utf-8' codec"):
        read_runs(tmp_path / "runs.toml")


def test_a_list_that_is_right_is_read(tmp_path):
    file = tmp_path / "runs.toml"
    file.write_text(f"[[run]]\n{ENTRIES}minutes = 1\nvaries = ['d']")
    (run,) = read_runs(file)
    assert (run.name, run.command, run.varies) == ("a", ("b",), ("d",))


def test_the_ledger_alone_is_made_from_the_results_of_the_others():
    assert [run.name for run in RUNS if run.reads_results] == ["claims"]
    assert "results" in stamp_of(next(run for run in RUNS if run.reads_results))
    assert "results" not in stamp_of(RUNS[0])
