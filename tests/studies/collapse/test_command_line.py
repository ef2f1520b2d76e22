"""`sinkscope collapse` as it is called: options, files, messages and exit codes."""

import json
import shutil

import pytest
from checkpoint_series import TEXTS, write_series

from validation.cli import main
from validation.studies.collapse import demo, embedded

COMPILING = "sinkscope: compiling the fast path (first use) ...\n"


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Runs the command in this process; (exit code, standard output, standard error)."""
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))

    def run(*arguments):
        code = main(["collapse", *(str(argument) for argument in arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err.replace(COMPILING, "")

    return run


@pytest.fixture
def places(tmp_path):
    return write_series(tmp_path / "run", (0, 8, 128))


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    return ("--file", tmp_path / "texts.txt")


def test_a_series_is_reported_and_written_as_json(call, places, texts, tmp_path):
    out = tmp_path / "collapse.json"
    code, shown, err = call(*places[::-1], *texts, "--json", out)
    assert (code, err) == (0, "")
    assert "From step 0 (highest mean entropy) to step 128" in " ".join(shown.split())
    assert "1 of 1 checks held." in shown
    document = json.loads(out.read_text())
    about = document["provenance"]
    assert (about["checkpoints"], about["steps"], about["T"]) == (3, [0, 8, 128], [17, 15, 21])
    assert (about["sink"], about["convention"], about["queries"]) == ("special", "keep", "content")
    assert about["model_sizes"]["family"] == "llama"
    assert about["texts"] == "3 from texts.txt"
    assert "numpy" in about["versions"]
    assert str(tmp_path) not in out.read_text()
    keys = [part["key"] for part in document["parts"]]
    assert {"checkpoints", "channels", "shares", "controls", "collapse", "sorted"} <= set(keys)
    files = next(part for part in document["parts"] if part["key"] == "checkpoint_files")
    assert all(len(row["weights_sha256"]) == 64 for row in files["rows"])


def test_a_second_run_takes_what_was_measured(call, places, texts, tmp_path):
    first = call(*places, *texts, "--results", tmp_path / "found.jsonl")
    second = call(*places, *texts, "--results", tmp_path / "found.jsonl")
    said = "Measured by an earlier run and taken from its file: 3 checkpoints."
    assert said not in first[1]
    assert said in second[1]
    assert second[1].replace(f"{said}\n", "").split() == first[1].split()
    assert len((tmp_path / "found.jsonl").read_text().splitlines()) == 3


def test_a_file_of_the_user_is_refused_and_a_cut_one_is_said_to_be(call, places, texts, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes\n")
    code, shown, err = call(*places, *texts, "--results", notes)
    assert (code, shown) == (2, "")
    assert err == (
        "sinkscope: --results: expected a file of earlier results, or a new one, that can be added to; found "
        f"{str(notes)!r} (a file of another kind, it begins b'my notes\\n'). Name another file.\n"
    )
    assert notes.read_text() == "my notes\n"
    found = tmp_path / "found.jsonl"
    call(*places, *texts, "--results", found)
    found.write_bytes(found.read_bytes()[:300])
    code, shown, _ = call(*places, *texts, "--results", found)
    assert code == 0
    assert "1 line of found.jsonl cannot be read" in shown
    code, shown, _ = call(*places, *texts, "--results", found)
    assert "taken from its file: 3 checkpoints." in shown


def test_the_demonstration_refuses_a_file_of_the_user_before_it_trains(call, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("my notes\n")
    monkeypatch.setattr(demo, "make", lambda *_: pytest.fail("it trained"))
    code, _, err = call("--demo", "--results", tmp_path / "notes.txt")
    assert code == 2
    assert "sinkscope: --results: expected" in err


def test_what_is_left_out_means_that_not_all_was_run(call, places, texts):
    shutil.rmtree(places[1])
    code, shown, _ = call(*places, *texts)
    assert code == 3
    assert "NOT RUN: step 8 (step8) is left out." in shown
    code, _, err = call(*places[:2], *texts)
    assert code == 2
    assert err.startswith(
        "sinkscope: DIR: expected at least two checkpoints that can be loaded; found 1 of 2"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "DIR: expected at least two checkpoints"),
        (["step1"], "found 1."),
        (["step1", "last"], "a name that tells its step; found 'last'"),
        (["a", "b", "--steps", "1,x"], "--steps: expected different numbers from 0 on"),
        (["a", "b", "--steps", "4,1"], "--steps: expected steps that rise; found 4,1"),
        (["step1", "step2", "--out", "x"], "--out: expected --demo beside it"),
        (["step1", "step2", "--widths", "8"], "--widths: expected --demo beside it"),
        (["step1", "--figure-format", "svg"], "--figure-format: expected --figures beside it"),
        (["--demo", "step1"], "--demo and DIR: expected one of the two"),
        (["--demo", "--layers", "0"], "--demo and --layers"),
        (["--demo", "--sink", "first"], "--demo and --sink"),
        (["--demo", "--widths", "9"], "--widths: expected even numbers"),
        (["--demo", "--widths", "8,8"], "--widths: expected different numbers from 2 on"),
        (["--demo", "--seeds", "-1"], "--seeds: expected different numbers from 0 on"),
        (["--demo", "--figures", "f", "--figure-format", "gif"], "png or svg"),
    ],
)
def test_wrong_calls_are_one_line(call, arguments, said):
    code, shown, err = call(*arguments)
    assert (code, shown) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_figures_are_drawn_into_a_folder(call, places, texts, tmp_path):
    code, shown, _ = call(*places, *texts, "--figures", tmp_path / "new" / "figures")
    assert code == 0
    assert "Figures in figures: collapse.png." in shown
    assert (tmp_path / "new" / "figures" / "collapse.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "file").write_text("")
    code, _, err = call(*places, *texts, "--figures", tmp_path / "file")
    assert code == 2
    assert "--figures: expected a folder for figures" in err


def test_what_is_read_is_never_overwritten(call, places, texts, tmp_path):
    code, _, err = call(*places, *texts, "--json", tmp_path / "run" / "step8" / "config.json")
    assert code == 2
    assert "a file that is read" in err


def test_the_demonstration_runs_and_stands_in_the_folder(call, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs the reference extra")
    monkeypatch.setattr(embedded.plan, "__defaults__", (*embedded.plan.__defaults__[:2], 2, True))
    code, shown, err = call("--demo", "--widths", "4", "--seeds", "0", "--out", tmp_path / "series")
    assert (code, err) == (0, "")
    assert demo.LABELS["backcopy"][:40] in shown
    assert "backcopy-width4-seed0" in shown
    assert "source" not in {path.name for path in (tmp_path / "series").iterdir()}
    assert (tmp_path / "series" / "backcopy-width4-seed0" / "step2" / "config.json").is_file()
    code, shown, _ = call(
        *(tmp_path / "series" / "backcopy-width4-seed0" / f"step{step}" for step in (0, 1, 2)),
        *("--file", tmp_path / "series" / "backcopy-width4-seed0" / "texts.txt"),
    )
    assert code == 0
