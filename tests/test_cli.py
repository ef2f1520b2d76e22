"""The command line as it is used: options, messages, exit codes, what is loaded and how long it takes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fastpath
from validation import commands
from validation.cli import main
from validation.report.document import Document, Note

ROOT = Path(__file__).parents[1]
COMPILING = "sinkscope: compiling the fast path (first use) ...\n"
COMMANDS = [
    "",
    "validate",
    "diff",
    "measure",
    "audit",
    "predict",
    "prune",
    "claims",
    "bench",
    "reproduce",
    "models",
    "models list",
    "models fetch",
    "models remove",
]


@pytest.fixture
def call(capsys):
    """Runs the command line in this process; (exit code, standard output, standard error)."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err.replace(COMPILING, "")  # only where nothing is in the cache

    return run


def process(*arguments, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "validation", *arguments], capture_output=True, text=True, cwd=ROOT, **kwargs
    )


@pytest.fixture
def rows(tmp_path):
    """Writes an .npz file of uniform rows with one weight changed; its path."""

    def write(name="rows.npz", *, at=(0, 0, 1, 2), weight=0.25, scale=1.0, **others):
        attention = np.full((2, 1, 4, 4), 0.25) * scale
        attention[at] = weight * scale
        np.savez(tmp_path / name, attention=attention, **others)
        return tmp_path / name

    return write


# Help, version, calls


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_fits_eighty_columns(call, command):
    code, out, err = call(*command.split(), "--help")
    assert (code, err) == (0, "")
    examples = [line.strip() for line in out[out.index("Examples:\n") :].splitlines()[1:]]
    assert examples[0].startswith(f"sinkscope {command}".strip())
    assert max(map(len, out.splitlines())) <= 80


def test_the_help_of_diff_names_every_implementation(call):
    from validation.stages import IMPLEMENTATIONS

    words = call("diff", "--help")[1].replace(",", " ").replace(";", " ").split()
    assert [word for word in words if word.startswith(("oracle-", "torch-"))][: len(IMPLEMENTATIONS)] == list(
        IMPLEMENTATIONS
    )


def test_without_arguments_help_is_shown(call):
    assert call() == (0, call("--help")[1], "")


def test_the_module_does_what_the_command_does(call):
    shown = process("--help")
    assert (shown.returncode, shown.stdout, shown.stderr) == call("--help")


def test_the_module_ends_with_the_code_of_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["validation", "bogus"])
    with pytest.raises(SystemExit) as ending:
        runpy.run_module("validation", run_name="__main__")
    assert ending.value.code == 2
    assert "No such command" in capsys.readouterr().err


def test_the_version_is_shown(call):
    code, out, _ = call("--version")
    assert code == 0
    assert out.startswith("sinkscope ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bogus"], "No such option"),
        (["bogus"], "No such command 'bogus'"),
        (["diff", "one"], "Missing argument 'B'"),
        (["measure", "extra"], "unexpected extra argument"),
        (["measure", "--sink"], "requires an argument"),
        (["models", "bogus"], "No such command 'bogus'"),
        (
            ["models", "fetch", "nowhere"],
            "expected a bundled model (minilm-l6 or smollm2-135m); found 'nowhere'",
        ),
        (
            ["models", "remove", "nowhere"],
            "expected a bundled model (minilm-l6 or smollm2-135m); found 'nowhere'",
        ),
        (["diff", "one", "two"], "implementation: expected one of"),
        (["diff", "oracle", "torch-float32"], "or oracle beside fastpath; found 'oracle'"),
        (
            ["diff", "oracle", "fastpath", "--text", "a"],
            "oracle fastpath and --text: expected one of the two",
        ),
        (["diff", "oracle", "fastpath", "--model", "a"], "oracle fastpath and --model: expected one of the"),
        (
            ["measure", "--text", "a", "--engine", "torch"],
            "engine: expected oracle or fastpath; found 'torch'",
        ),
        (["measure", "--text", "a", "--verify", "0"], "verify: expected at least one row; found 0"),
        (["bench", "--tokens", "many"], "--tokens: expected positive numbers"),
        (["bench", "--only", "everything"], "--only: expected some of rows,streaming"),
        (["bench", "--only", "memory", "--tokens", "7"], "--tokens: expected the section forward beside it"),
        (["bench", "--only", "memory", "--model", "nonsense"], "--model: expected the section forward"),
        (["diff", "fastpath", "fastpath"], "fastpath twice"),
        (["measure", "--verify-seed", "1"], "verify_seed: expected verify beside it"),
        (["measure", "--text", "a", "--file", "b"], "--text and --file: expected one of the two; found both"),
        (["measure", "--attention", "a", "--model", "b"], "--attention and --model: expected one of the two"),
        (["measure", "--attention", "a", "--text", "b"], "--attention and --text: expected one of the two"),
        (["measure", "--attention", "a", "--file", "b"], "--attention and --file: expected one of the two"),
        (
            ["measure", "--attention", "a", "--truncate"],
            "--attention and --truncate: expected one of the two",
        ),
        (["measure", "--layout", "head query key"], "--layout: expected --attention beside it"),
        (["measure", "--model", "nowhere"], "model: expected a bundled name"),
        (["measure", "--sink", "banana"], "sink: expected special, first, none"),
        (["measure", "--sink", "400"], "sink: expected positions from 0"),
        (["measure", "--sink", "token:zebra"], "no token spelled 'zebra'"),
        (["measure", "--layers", "9"], "layers: expected layers from 0 to 5"),
        (["measure", "--weighting", "size"], "weighting: expected names from attention"),
        (["measure", "--json", "missing/out.json"], "--json: expected a file"),
        (["measure", "--json", "."], "--json: expected a file"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_two(call, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("sinkscope: ")
    assert err.count("\n") == 1
    assert os.listdir(tmp_path) == []


# Texts and files of CASES.md


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("missing.txt", None, "expected a readable text file; found no such file"),
        ("cp1252.txt", "Ein Stück\n".encode("cp1252"), "expected text in utf-8; found byte 0xfc"),
        ("empty.txt", b"", "found an empty file"),
        ("blank.txt", b" \n\n", "found only blank lines"),
        ("line_of_100000_words.txt", b"word " * 100_000, "expected at most 512 tokens"),
        ("binary.txt", b"a\0b", "found a NUL character"),
    ],
)
def test_a_file_that_cannot_be_measured_is_one_line(call, tmp_path, name, data, message):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    code, out, err = call("measure", "--file", tmp_path / name)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_in_cp1252_is_read_when_its_encoding_is_named(call, tmp_path):
    (tmp_path / "old.txt").write_bytes("Ein Stück\n".encode("cp1252"))
    code, out, err = call("measure", "--file", tmp_path / "old.txt", "--encoding", "cp1252")
    assert (code, err) == (0, "")
    assert "1 from old.txt" in out
    assert str(tmp_path) not in out


def test_a_line_of_100000_words_is_cut_only_on_request(call, tmp_path):
    (tmp_path / "long.txt").write_text("word " * 100_000)
    code, out, _ = call("measure", "--file", tmp_path / "long.txt", "--truncate", "--layers", "0")
    assert code == 0
    assert "T             512" in out


@pytest.mark.parametrize("text", ["", "   "])
def test_a_text_without_words_alone_leaves_nothing_to_measure(call, text):
    code, out, err = call("measure", "--text", text)
    assert (code, out) == (2, "")
    assert "expected at least one text with tokens" in err
    assert err.count("\n") == 1


def test_a_text_without_words_among_others_is_skipped_and_counted(call):
    code, out, _ = call("measure", "--text", "", "--text", "Two words.")
    assert code == 0
    assert "1 measured, 1 without tokens skipped" in out


@pytest.mark.parametrize(
    "text",
    [
        "...!!!",
        "a" * 130,
        "emoji \N{GRINNING FACE}",
        "日本語",
        "e\u0301a\u0300",
        "wo\u200drd \N{WOMAN}\u200d\N{GIRL}",
        "[SEP]",
        "a [SEP] b <s>",
    ],
)
def test_an_odd_text_is_measured_within_eighty_columns(call, text):
    code, out, err = call("measure", "--text", text)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out


def test_a_literal_sep_is_said(call):
    _, out, _ = call("measure", "--text", "a [SEP] b")
    assert "the text itself contains [SEP]" in out


def test_text_that_is_no_unicode_is_one_line():
    shown = process("measure", "--text", b"\xff")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "expected valid Unicode" in shown.stderr
    assert shown.stderr.count("\n") == 1


# Attention arrays of CASES.md


def test_rows_are_measured_without_a_model(call, rows, monkeypatch):
    monkeypatch.setattr(commands, "load", lambda *_: pytest.fail("a model was loaded"))
    path = rows(tokens=["[CLS]", "a", "b", "[SEP]"])
    code, out, err = call("measure", "--attention", path, "--sink", "0")
    assert (code, err) == (0, "")
    assert "25.0%" in out
    assert call("measure", "--attention", path)[0] == 0  # [CLS] and [SEP] by their spelling
    assert call("measure", "--attention", rows(), "--sink", "first", "--layers", "1")[0] == 0


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"scale": 0.945}, ["--sink", "0"], "found a sum of 0.945 at text 0, layer 0, head 0, query 0"),
        ({"weight": -0.1}, ["--sink", "0"], "found -0.1 at text 0, layer 0, head 0, query 1"),
        ({"weight": np.nan}, ["--sink", "0"], "found nan at text 0, layer 0, head 0, query 1"),
        ({"weight": np.inf}, ["--sink", "0"], "found inf at text 0, layer 0, head 0, query 1"),
        ({}, [], "found special, but no token names"),
        ({}, ["--sink", "9"], "expected positions from 0 to 3"),
        ({}, ["--sink", "0", "--weighting", "value_norm"], "expected names from attention"),
        ({}, ["--sink", "0", "--layers", "2"], "expected layers from 0 to 1"),
        ({}, ["--sink", "0", "--layout", "rows"], "attention: expected 3 to 5 axes, or a layout"),
        ({"tokens": ["a"]}, ["--sink", "0"], "found tokens has 1 key, attention 4"),
    ],
)
def test_rows_that_cannot_be_measured_are_one_line(call, rows, given, options, message):
    code, out, err = call("measure", "--attention", rows(**given), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_pickled_objects_are_never_loaded(call, tmp_path):
    np.savez(tmp_path / "objects.npz", attention=np.array([[{}]], object))
    code, out, err = call("measure", "--attention", tmp_path / "objects.npz", "--sink", "0")
    assert (code, out) == (2, "")
    assert "pickled data, which is never loaded" in err
    assert err.count("\n") == 1


def test_the_engines_show_the_same_and_random_rows_are_verified(call, rows):
    options = ("measure", "--attention", rows(), "--sink", "0")
    fast, slow = (call(*options, "--engine", engine) for engine in ("fastpath", "oracle"))
    assert fast[0] == slow[0] == 0
    assert fast[1].split("Sink share")[1] == slow[1].split("Sink share")[1]
    code, shown, _ = call(*options, "--verify", "4", "--verify-seed", "3")
    words = " ".join(shown.split())
    assert code == 0
    assert "ok verify: expected 4 of 6 rows, drawn with seed 3" in words
    assert "largest deviation" in words


def test_waiting_threads_sleep_unless_the_user_says_otherwise(call, rows, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert call("measure", "--attention", rows(), "--sink", "0")[0] == 0
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    monkeypatch.delenv("OMP_WAIT_POLICY")
    assert call("measure", "--attention", rows(), "--sink", "0")[0] == 0
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_a_row_that_is_wrong_fails_the_command(call, rows, monkeypatch):
    right = fastpath.row_measures

    def wrong(*given):
        return right(*given)._replace(shares={"attention": np.full((1, 3), 0.26)})

    monkeypatch.setattr(fastpath, "row_measures", wrong)
    code, out, _ = call("measure", "--attention", rows(), "--sink", "0", "--verify", "4")
    assert code == 1
    assert "4 rows outside their bound" in " ".join(out.split())


def test_the_layers_are_compared_measure_by_measure(call):
    code, out, err = call("diff", "oracle", "fastpath")
    assert (code, err) == (0, "")
    assert "fastpath against oracle, by measure" in out
    assert out.endswith("1 of 1 checks held.\n")
    assert max(map(len, out.splitlines())) <= 80


# Results


def test_json_holds_what_the_terminal_shows(call, tmp_path):
    target = tmp_path / "out.json"
    arguments = ["measure", "--text", "A short text.", "--layers", "0,3-5", "--sink", "token:."]
    code, shown, err = call(*arguments, "--json", target)
    assert (code, err) == (0, "")
    data = json.loads(target.read_text())
    about = data["provenance"]
    assert (about["model"], about["sink"], about["layers"]) == ("minilm-l6", "token:.", "0,3-5")
    assert (about["convention"], about["T"], len(about["model_sha256"])) == ("keep", [6], 64)
    assert {"sinkscope", "python", "numpy"} <= set(about["versions"])
    tables = [part for part in data["parts"] if part["kind"] == "table"]
    assert tables
    seen = [table["title"].split(",")[0] in shown for table in tables]
    assert [table["key"] for table, there in zip(tables, seen, strict=True) if not there] == ["heads"]
    (heads,) = [table["rows"] for table in tables if table["key"] == "heads"]
    assert [(row["layer"], row["head"]) for row in heads] == [
        (at, head) for at in (0, 3, 4, 5) for head in range(12)
    ]
    assert about["truncate"] is False
    assert [row["layer"] for row in tables[1]["rows"]] == [0, 3, 4, 5]
    assert call(*arguments, "--json", "-")[1] == target.read_text()


def test_an_attention_file_is_fully_named(call, rows, tmp_path):
    path = rows(value_norm=np.ones((2, 1, 4)))
    code, out, err = call("measure", "--attention", path, "--sink", "0", "--json", tmp_path / "out.json")
    assert (code, err) == (0, "")
    about = json.loads((tmp_path / "out.json").read_text())["provenance"]
    assert about["attention_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert about["layout"] == "layer head query key"
    assert about["weighting"] == "attention, value_norm"
    assert "layout            layer head query key" in out
    assert str(tmp_path) not in out


def test_messages_about_a_file_name_options_and_arrays(call, rows):
    _, _, err = call("measure", "--attention", rows(), "--sink", "0", "--layout", "rows")
    assert "Name the axes with --layout." in err
    _, _, err = call("measure", "--attention", rows(weight=np.nan), "--sink", "0")
    assert "mark padding with the array `visible`." in err


def test_a_wrong_norm_is_named_with_its_layer_head_and_key(call, tmp_path):
    norm = np.ones((3, 2, 9))
    norm[0, 0, 0] = norm[2, 1, 7] = -1
    file = tmp_path / "rows.npz"
    np.savez(file, attention=np.full((3, 2, 9, 9), 1 / 9), value_norm=norm)
    words = "value_norm: expected finite norms of at least zero; found -1.0 at "
    for layers, place in ("1,2", "layer 2, head 1, key 7"), ("0-2", "layer 0, head 0, key 0"):
        for engine in ("oracle", "fastpath"):
            options = ("--sink", "0", "--layers", layers, "--engine", engine)
            code, _, err = call("measure", "--attention", str(file), *options)
            assert (code, err.count("\n")) == (2, 1)
            assert words + place in err
    np.savez(file, attention=np.full((3, 2, 2, 9, 9), 1 / 9), value_norm=np.stack([norm + 1, norm], axis=1))
    _, _, err = call("measure", "--attention", str(file), "--sink", "0")
    assert words + "layer 0, head 0, key 0" in err
    assert "(text 1)" in err


def test_names_of_files_stay_as_they_are(call, tmp_path):
    name = str(tmp_path / "a .layout=b .npz")
    code, _, err = call("measure", "--attention", name)
    assert code == 2
    assert err.startswith(f"sinkscope: {name}: expected an .npz file with an array")
    code, _, err = call("measure", "--attention", "")
    assert (code, err.split(";")[0]) == (2, "sinkscope: --attention: expected the path of an .npz file")


def test_longdouble_rows_are_sent_to_the_engine_that_takes_them(call, tmp_path):
    file = str(tmp_path / "rows.npz")
    np.savez(file, attention=np.full((1, 1, 9, 9), 1 / 9, np.longdouble) + np.longdouble(0))
    code, _, err = call("measure", "--attention", file, "--sink", "0")
    assert code == 2
    assert "--engine oracle" in err
    assert call("measure", "--attention", file, "--sink", "0", "--engine", "oracle")[0] == 0


def test_causal_rows_that_are_all_too_short_are_refused(call, tmp_path):
    attention = np.broadcast_to(np.tri(6) / np.tri(6).sum(axis=1, keepdims=True), (1, 2, 6, 6))
    np.savez(tmp_path / "short.npz", attention=attention)
    code, out, err = call("measure", "--attention", tmp_path / "short.npz", "--sink", "first")
    assert (code, out) == (2, "")
    assert "at least 8 content keys; found at most 5 in the longest text" in err
    assert err.count("\n") == 1


def test_models_list_is_models(call, minilm):
    assert call("models", "list") == call("models")


def test_the_list_of_models_says_which_are_cached(call, minilm):
    code, out, _ = call("models")
    assert code == 0
    assert re.search(r"minilm-l6 +cached", out)


def test_fetching_what_is_cached_is_quick_and_says_so(call, minilm):
    code, out, err = call("models", "fetch", "minilm-l6")
    assert (code, err) == (0, "")
    assert "minilm-l6 is in the cache" in out


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["validate"], "validate"),
        (["diff", "a", "b"], "diff"),
        (["diff", "oracle", "fastpath"], "diff_layers"),
        (["measure"], "measure"),
        (["measure", "--attention", "rows.npz"], "measure_file"),
        (["bench"], "bench"),
        (["models"], "list_models"),
        (["models", "fetch", "x"], "fetch"),
        (["models", "remove", "x"], "remove"),
    ],
)
def test_every_command_ends_with_the_code_of_its_result(call, monkeypatch, command, name):
    for parts, code in (((), 0), ((Note("not_run", "NOT RUN: all of it."),), 3)):
        document = Document(name, {}, parts)
        monkeypatch.setattr(commands, name, lambda *_, document=document, **__: document)
        ended, out, _ = call(*command)
        assert ended == code
        assert out.startswith(f"sinkscope {name}\n")


# Processes


def timed(*arguments, runs=1):
    """Runs the command line in a new process: seconds (the best of `runs`), output, loaded modules.

    With the threads that a user has who said nothing about them.
    """
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = f"import sys; from validation.cli import main; main({list(arguments)})"
    code = f"{command}; print(*sys.modules, file=sys.stderr)"
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        shown = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
            env=environment,
        )
        seconds.append(time.perf_counter() - start)
    return min(seconds), shown.stdout, set(shown.stderr.split())


def test_help_loads_nothing_heavy():
    _, _, loaded = timed("--help")
    assert not {"numpy", "numba", "torch", "transformers", "tokenizers"} & loaded


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        (["models"], {}, "1"),
        (["bench", "--tokens", "0"], {}, "None"),  # a wrong call ends before anything is timed
        (["models"], {"OPENBLAS_NUM_THREADS": "3"}, "3"),
        (["models"], {"OMP_NUM_THREADS": "3"}, "None"),  # OpenBLAS reads it where its own is not set
    ],
)
def test_blas_has_one_thread_unless_the_user_says_otherwise(command, given, expected):
    call = f"cli.main({command!r}); print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    code = f"import os; from validation import cli; {call}"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env={**environment, **given}
    )
    assert shown.stdout.splitlines()[-1] == expected


@pytest.mark.timing
@pytest.mark.parametrize(("command", "most"), [("--help", 1), ("measure", 6)])
def test_answers_come_within_seconds(minilm, command, most):
    assert timed(command, runs=3)[0] < most


def test_measuring_the_bundled_sentences_loads_no_torch(minilm):
    _, shown, loaded = timed("measure")
    assert not {"torch", "transformers"} & loaded
    assert "fastpath.measures" in loaded
    assert "Texts: 14 measured" in shown


def test_measuring_with_the_oracle_needs_no_numba(minilm):
    _, shown, loaded = timed("measure", "--engine", "oracle", "--text", "A short text.")
    assert not {"numba", "fastpath"} & loaded
    assert "engine        oracle" in shown


def test_compiling_is_said_once_and_only_where_it_happens(rows, tmp_path):
    call = ("measure", "--attention", str(rows()), "--sink", "0", "--verify", "3", "--verify-seed", "0")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (process(*call, env=environment) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0)
    assert (first.stderr, second.stderr) == (COMPILING, "")
    assert first.stdout == second.stdout


WITHOUT_TORCH = (
    "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
    "from validation.cli import main; sys.exit(main(sys.argv[1:]))"
)


def without_torch(*arguments):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments], capture_output=True, text=True, cwd=ROOT
    )


def test_without_torch_validate_shows_what_it_can_and_ends_with_three(minilm):
    shown = without_torch("validate")
    assert (shown.returncode, shown.stderr) == (3, "")
    assert "NOT RUN: The reference needs torch and transformers" in shown.stdout
    assert "Mutants of the measure" in shown.stdout
    assert "Verdict" in shown.stdout
    assert "FAILED" not in shown.stdout
    assert "NOT RUN, as said above" in shown.stdout.splitlines()[-1]


def test_without_torch_the_benchmark_of_the_forward_pass_says_so_and_ends_with_three(minilm):
    shown = without_torch("bench", "--only", "forward")
    assert (shown.returncode, shown.stderr) == (3, "")
    assert "NOT RUN: The reference needs torch and transformers" in shown.stdout


def test_without_torch_what_needs_it_is_one_line_and_three(minilm):
    shown = without_torch("diff", "oracle-float32", "torch-float32")
    assert (shown.returncode, shown.stdout) == (3, "")
    assert "The reference needs torch and transformers" in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_the_oracle_against_itself_needs_no_torch(minilm):
    shown = without_torch("diff", "oracle-float32", "oracle-float64", "--text", "A short text.")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.endswith("1 of 1 checks held.\n")


def test_diff_against_transformers_holds_and_is_quiet(minilm):
    shown = process("diff", "oracle-float32", "torch-float32", "--text", "A short text.")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "torch" in shown.stdout[: shown.stdout.index("\n\n")]  # its version is in the header
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_exit_codes_reach_the_shell(rows):
    path = str(rows())
    assert process("measure", "--attention", path, "--sink", "0").returncode == 0
    assert process("measure", "--attention", path, "--sink", "9").returncode == 2


def test_control_c_is_one_line_and_130(tmp_path):
    code = (
        "import signal, sys, time; from validation import cli, commands\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it\n"
        "def wait():\n    print('ready', flush=True)\n    time.sleep(60)\n"
        f"commands.list_models = wait\nsys.exit(cli.main(['models', '--json', {str(tmp_path / 'o.json')!r}]))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (130, "sinkscope: interrupted; nothing was written.\n")
    assert os.listdir(tmp_path) == []
