"""`sinkscope reproduce` as it is called: calls that are refused, an interrupt, a report as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from validation.cli import main

ROOT = Path(__file__).parents[2]


def test_a_page_without_blocks_is_no_page_to_check(tmp_path, capsys):
    (tmp_path / "a.md").write_text("# Title\n")
    assert main(["reproduce", "--check", "--readme", str(tmp_path / "a.md")]) == 2
    assert "--readme: expected a page with blocks; found none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audits"], "NAME: expected some of validate"),
        (["--list", "--check"], "--list and --check: expected one of the two"),
        (["--check", "--fresh"], "--check and --fresh: expected one of the two"),
        (["--check", "bench"], "--check and NAME: expected one of the two"),
        (["--render", "--out", "x"], "--render and --out: expected one of the two"),
        (["--readme", "x"], "--readme: expected --publish, --render or --check beside it"),
        (["--check", "--readme", "nowhere.md"], "--readme: expected a page of text in UTF-8"),
        (["bench", "--out", ""], "--out: expected the path of a folder"),
        (["bench", "--out", "pyproject.toml"], "the folder of results: expected one that can be written to"),
    ],
)
def test_a_wrong_call_ends_with_two(arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_interrupt_ends_with_130_and_says_what_is_kept(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "validation", "reproduce", "diff-layers", "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".diff-layers-*/log")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; the results of 0 runs of 1 are kept" in said
    assert list(tmp_path.glob("*.json")) == []
    assert list(tmp_path.glob(".diff-layers-*")) == []


def test_a_report_of_it_is_a_report(program, tmp_path, capsys):
    program.offer(one=["say", "first"])
    assert main(["reproduce", "--out", str(tmp_path), "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["parts"][0]["rows"][0]["run"] == "one"
