"""Streams that are closed or full, outputs that would replace an input, folders that are gone."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oracle import InputError
from oracle.loading import bundled_models
from validation.cli import main
from validation.report.as_json import check_target

ROOT = Path(__file__).parents[1]
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")


def shell(arguments, redirected="", **others):
    """`sinkscope` with its streams redirected by a shell."""
    line = f"{shlex.quote(sys.executable)} -m validation {arguments} {redirected}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120, **others
    )


@pytest.fixture
def rows(tmp_path):
    np.savez(tmp_path / "rows.npz", attention=np.full((1, 1, 4, 4), 0.25))
    return tmp_path / "rows.npz"


@pytest.mark.parametrize("redirected", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_output(rows, tmp_path, redirected):
    target = tmp_path / "out.json"
    ended = shell(f"measure --attention {rows} --sink 0 --json {target}", redirected)
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    assert json.loads(target.read_text())["command"] == "measure"


@full
@pytest.mark.parametrize(
    ("arguments", "redirected", "code"),
    [
        ("--version", ">/dev/full", 2),
        ("-h", ">/dev/full", 2),
        ("measure --layout x", "2>/dev/full", 2),
        ("--version", "2>/dev/full", 0),
    ],
)
def test_a_full_stream_does_not_change_the_kind_of_end(arguments, redirected, code):
    ended = shell(arguments, redirected)
    assert ended.returncode == code
    if redirected.startswith(">"):
        assert ended.stderr.count("\n") == 1
        assert "standard output" in ended.stderr
        assert "No space left" in ended.stderr


def test_no_output_replaces_an_input(rows, tmp_path, capsys):
    text, folder = tmp_path / "own.txt", tmp_path / "model"
    text.write_text("She paid and left.\n")
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (tmp_path / "link.txt").symlink_to(text)
    before = {path: path.read_bytes() for path in (text, rows, folder / "config.json")}
    for arguments in (
        ["measure", "--file", text, "--json", text],
        ["measure", "--file", text, "--json", tmp_path / "link.txt"],
        ["validate", "--file", text, "--json", text],
        ["diff", "oracle-float32", "oracle-float64", "--file", text, "--json", text],
        ["measure", "--attention", rows, "--sink", "0", "--json", rows],
        ["measure", "--model", folder, "--json", folder / "config.json"],
    ):
        assert main([str(argument) for argument in arguments]) == 2
        said = capsys.readouterr().err
        assert said.startswith("sinkscope: --json: expected ")
        assert "(a file that is read)" in said
    assert {path: path.read_bytes() for path in before} == before
    check_target(str(folder / "new.json"), [folder])


def test_a_read_only_file_is_not_replaced(tmp_path):
    target = tmp_path / "kept.json"
    target.write_text("kept")
    target.chmod(0o444)
    with pytest.raises(InputError, match="must not be written"):
        check_target(str(target))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["measure", "--attention", "ROWS", "--encoding", "cp1252"], "--attention and --encoding"),
        (["models", "--json", "x.json", "fetch", "minilm-l6"], "--json: expected it after `fetch`"),
    ],
)
def test_an_option_that_would_be_lost_is_refused(rows, capsys, arguments, said):
    assert main([str(rows) if argument == "ROWS" else argument for argument in arguments]) == 2
    assert capsys.readouterr().err.startswith(f"sinkscope: {said}")


@pytest.mark.parametrize("encoding", ["undefined", "no-such", "nul\0"])
def test_an_encoding_that_is_none(tmp_path, capsys, encoding):
    (tmp_path / "own.txt").write_text("She paid and left.\n")
    assert main(["measure", "--file", str(tmp_path / "own.txt"), "--encoding", encoding]) == 2
    assert capsys.readouterr().err.startswith("sinkscope: encoding: expected a text encoding")


def test_a_cache_that_cannot_be_read_is_said_in_one_line(capsys, monkeypatch):
    def denied(path, pattern):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "rglob", denied)
    assert main(["models"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("sinkscope: The cache cannot be read at ")
    assert said.count("\n") == 1
    monkeypatch.undo()
    assert bundled_models()


def test_a_current_folder_that_is_gone_is_said_in_one_line(tmp_path):
    for arguments in ("models", "measure --text Hello --model model"):
        gone = tmp_path / "gone"
        gone.mkdir()
        line = f"rmdir {gone}; {shlex.quote(sys.executable)} -m validation {arguments}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SINKSCOPE_CACHE": "cache"}
        ended = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, cwd=gone, env=environment, timeout=120
        )
        assert ended.returncode in (2, 3)
        assert ended.stderr.count("\n") == 1, ended.stderr


def test_a_library_that_asks_for_the_folder_that_is_gone(tmp_path):
    code = "import os, sys; from validation.running import guarded; os.rmdir(os.getcwd()); "
    ended = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(guarded(os.getcwd))"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert ended.returncode == 2
    assert ended.stderr == "sinkscope: the current folder has been deleted. Go to one that is there.\n"
