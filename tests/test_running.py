"""How commands end: every way out has its exit code and its one line."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer

from oracle import InputError, Unavailable
from oracle._checks import InputTypeError
from validation.cli import main
from validation.progress import Interrupted
from validation.report import files
from validation.report.document import Check, Document, Note
from validation.running import BUG, guarded, run

ROOT = Path(__file__).parents[1]
HELD = Document("models", {}, (Check("a", "x", "x", True),))


def raising(error):
    def call():
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("text: expected a; found b. Do c."), 2, "text: expected a; found b. Do c."),
        (InputTypeError("two\nlines \x1b[31m"), 2, "two lines \\x1b[31m"),
        (Unavailable("torch is not here."), 3, "torch is not here."),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written."),
        (Interrupted("3 of 4 are kept."), 130, "3 of 4 are kept."),
        (typer.Abort(), 130, "interrupted; nothing was written."),
        (MemoryError("8 GiB"), 3, "not enough memory (8 GiB). Take fewer layers, or shorter texts."),
        (typer.BadParameter("no such thing."), 2, "Invalid value: no such thing. Try 'sinkscope --help'."),
    ],
)
def test_what_the_caller_can_mend_is_one_line(capsys, error, code, line):
    assert guarded(raising(error)) == code
    assert capsys.readouterr() == ("", f"sinkscope: {line}\n")


def test_what_was_written_before_an_interruption_is_named(capsys, tmp_path):
    place = str(tmp_path / "d.npz")

    def stopped(_):
        files.write_whole(place, b"distances", option="--save")
        raise KeyboardInterrupt

    assert guarded(lambda: run(None, stopped)) == 130
    assert capsys.readouterr().err == f"sinkscope: interrupted; {place} was written.\n"
    assert guarded(lambda: run(None, raising_in_work)) == 130
    assert capsys.readouterr().err == "sinkscope: interrupted; nothing was written.\n"


def raising_in_work(_):
    raise KeyboardInterrupt


def test_an_error_of_ours_keeps_its_traceback_and_is_no_failed_check(capsys):
    secret = "a local value"  # noqa: F841 - it must not show
    assert guarded(raising(ZeroDivisionError("oops"))) == BUG
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("ZeroDivisionError: oops\n")
    assert "a local value" not in shown


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        (SystemExit(), 0, ""),
        (SystemExit(0), 0, ""),
        (SystemExit(1), 1, ""),
        (SystemExit(2), 2, ""),
        (SystemExit("some words"), 1, "sinkscope: some words\n"),
    ],
)
def test_the_code_of_an_exit_is_handed_on(capsys, ending, code, said):
    assert guarded(raising(ending)) == code
    assert capsys.readouterr() == ("", said)


def test_a_pipe_that_breaks_during_the_work_is_an_error_of_ours(capsys):
    assert guarded(raising(BrokenPipeError())) == BUG
    assert capsys.readouterr().err.startswith("Traceback")
    application = typer.Typer()
    application.command()(lambda: run(None, lambda tell: raising(BrokenPipeError())()))
    command = typer.main.get_command(application)
    assert guarded(lambda: command.main(args=[], standalone_mode=False)) == BUG
    assert "a pipe broke during the work" in capsys.readouterr().err


def test_help_for_a_reader_who_has_left_is_no_error(tmp_path, monkeypatch):
    with open(tmp_path / "stdout", "w") as file:
        monkeypatch.setattr(sys, "stdout", Failing(BrokenPipeError(errno.EPIPE, "gone"), file.fileno()))
        assert main(["--help"]) == 0
        monkeypatch.undo()


@pytest.mark.parametrize(("result", "code"), [(0, 0), (1, 1), (3, 3), (None, 0)])
def test_the_code_of_a_command_is_handed_on(result, code):
    assert guarded(lambda: result) == code


def test_warnings_of_libraries_are_not_shown_unless_asked_for(monkeypatch, recwarn):
    monkeypatch.setattr(sys, "warnoptions", [])
    guarded(lambda: warnings.warn("noise", stacklevel=1))
    assert not recwarn.list
    monkeypatch.setattr(sys, "warnoptions", ["default"])
    with pytest.warns(UserWarning, match="noise"):
        guarded(lambda: warnings.warn("noise", stacklevel=1))


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ((), 0),
        ((Check("a", "x", "x", True),), 0),
        ((Check("a", "x", "y", False), Check("b", "x", "x", True)), 1),
        ((Check("a", "x", "x", True), Note("not_run", "no torch")), 3),
        ((Check("a", "x", "y", False), Note("not_run", "no torch")), 1),
    ],
)
def test_the_code_tells_held_failed_and_not_run(capsys, parts, code):
    assert run(None, lambda tell: Document("validate", {}, parts)) == code
    assert capsys.readouterr().out.startswith("sinkscope validate\n")


def test_json_goes_to_a_file_beside_the_tables_or_alone_to_standard_output(tmp_path, capsys):
    target = tmp_path / "out.json"
    assert run(str(target), lambda tell: HELD) == 0
    shown = capsys.readouterr()
    assert "1 of 1 checks held." in shown.out
    assert run("-", lambda tell: HELD) == 0
    assert capsys.readouterr().out == target.read_text()
    assert json.loads(target.read_text())["checks"] == {"held": 1, "failed": 0, "not_run": 0}


def test_an_impossible_file_is_refused_before_the_work(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        run(str(tmp_path / "missing" / "out.json"), raising(AssertionError("worked in vain")))


class Failing(io.StringIO):
    """Standard output whose reader has gone, or whose disk is full; its descriptor is a file of our own."""

    def __init__(self, error, descriptor):
        super().__init__()
        self.error, self.descriptor = error, descriptor

    def write(self, text):
        raise self.error

    def fileno(self):
        return self.descriptor


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BrokenPipeError(), 0, ""),
        (OSError(28, "No space left"), 2, "standard output: .* found No space left. Free some space, .*"),
    ],
)
def test_an_output_that_fails_loses_no_file(tmp_path, monkeypatch, capsys, error, code, line):
    target = tmp_path / "out.json"
    with open(tmp_path / "stdout", "w") as file:
        monkeypatch.setattr(sys, "stdout", Failing(error, file.fileno()))
        assert guarded(lambda: run(str(target), lambda tell: HELD)) == code
        assert os.path.samestat(os.fstat(file.fileno()), os.stat(os.devnull))
    assert json.loads(target.read_text())["command"] == "models"
    assert re.fullmatch(f"sinkscope: {line}\n" if line else "", capsys.readouterr().err)


def python(code, *, stdout=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


LONG = """
import sys
from validation.report.document import Document, Note
from validation.running import guarded, run
document = Document("measure", {}, (Note("n", "word " * 100_000),))
sys.exit(guarded(lambda: run(TARGET, lambda tell: document)))
"""


def test_a_broken_pipe_ends_quietly_and_the_file_is_written_all_the_same(tmp_path):
    target = tmp_path / "out.json"
    with python(LONG.replace("TARGET", repr(str(target)))) as process:
        assert process.stdout.readline() == "sinkscope measure\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
    assert json.loads(target.read_text())["command"] == "measure"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_said_in_one_line():
    with open("/dev/full", "w") as full, python(LONG.replace("TARGET", "None"), stdout=full) as process:
        error = process.stderr.read()
    assert process.returncode == 2
    assert error.count("\n") == 1
    assert "No space left on device" in error


def test_a_terminal_that_lacks_a_character_is_no_error():
    code = LONG.replace("TARGET", "None").replace("word ", "‖v‖ ").replace("100_000", "2")
    run_ = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert "\\u2016v\\u2016" in run_.stdout


@pytest.mark.parametrize(
    ("given", "handed_on"), [({}, ["None", "None"]), ({"OMP_WAIT_POLICY": "ACTIVE"}, ["ACTIVE", "None"])]
)
def test_what_a_process_sets_for_itself_alone_is_not_handed_on(given, handed_on):
    names = ("OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS")
    code = (
        "import os; from validation import running as r; r.calm_threads(); r.one_blas_thread(); "
        f"print(*map(os.environ.get, {names}), *map(r.own_environment().get, {names}))"
    )
    bare = {name: value for name, value in os.environ.items() if "THREADS" not in name and "OMP" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**bare, **given}, cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.split() == [given.get("OMP_WAIT_POLICY", "PASSIVE"), "1", *handed_on]
