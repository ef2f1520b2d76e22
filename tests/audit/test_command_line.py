"""`sinkscope audit` as it is called: options, files, messages and exit codes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from audit_rows import sink_and_content_apart
from text_models import small_model

from validation import command_parts
from validation.audit import checking, command
from validation.cli import main

ROOT = Path(__file__).parents[2]
COMPILING = "sinkscope: compiling the fast path (first use) ...\n"


@pytest.fixture
def call(capsys):
    """Runs the command in this process; (exit code, standard output, standard error)."""

    def run(*arguments):
        code = main(["audit", *(str(argument) for argument in arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err.replace(COMPILING, "")

    return run


@pytest.fixture
def rows(tmp_path):
    """Writes an .npz file of two texts, layer 1 alone, with some weights set to zero; its path."""

    def write(*zeros, name="rows.npz", **others):
        attention = sink_and_content_apart(texts=2)[:, 1:]
        for place in zeros:
            attention[place] = 0
        attention /= attention.sum(axis=-1, keepdims=True)
        np.savez(tmp_path / name, attention=attention, **others)
        return tmp_path / name

    return write


LAYOUT = ("--layout", "batch layer head query key", "--sink", "0")


def notes(document, key):
    return [part["text"] for part in document["parts"] if part["key"] == key]


def test_rows_are_audited_without_a_model(call, rows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "load", lambda *_: pytest.fail("a model was loaded"))
    out = tmp_path / "audit.json"
    code, shown, err = call("--attention", rows(), *LAYOUT, "--json", out, "--seed", "3")
    assert (code, err) == (0, "")
    document = json.loads(out.read_text())
    about = document["provenance"]
    assert about["attention"] == "rows.npz"
    assert len(about["attention_sha256"]) == 64
    assert (about["sink"], about["convention"], about["seed"]) == ("0", "keep against drop", 3)
    assert (about["queries"], about["zeros"], about["T"]) == ("content", "refuse", [7, 7])
    assert "numpy" in about["versions"]
    tables = {part["key"]: part for part in document["parts"] if part["kind"] == "table"}
    assert {"verdicts", "verdicts_within", "safety", "between", "distances", "anchors"} <= set(tables)
    assert tables["verdicts"]["rows"][1]["metric"] == "JSD"
    assert 0 < tables["verdicts"]["rows"][1]["flips"] < 1
    closing = notes(document, "closing")
    assert len(closing) == 7
    assert all("of rows.npz is nearer" in said and "2 texts, T 7" in said for said in closing)
    assert all(" ".join(said.split()[:6]) in " ".join(shown.split()) for said in closing)


def test_zeros_are_refused_unless_something_is_chosen(call, rows):
    file = rows((1, 0, 2, 3, 4))
    code, shown, _ = call("--attention", file, *LAYOUT)
    assert code == 0
    assert "1 zero, the first at text 2, layer 0, head 2, query 3, key 4; choose --zeros" in " ".join(
        shown.split()
    )
    code, shown, _ = call("--attention", file, *LAYOUT, "--zeros", "replace:1e-6")
    assert code == 0
    assert "Aitchison's distance by what replaces zeros" in shown
    code, shown, _ = call("--attention", file, *LAYOUT, "--zeros", "common-support")
    assert code == 0
    assert "not computed" not in shown


def test_the_distances_are_saved(call, rows, tmp_path):
    place = tmp_path / "d.npz"
    code, shown, _ = call("--attention", rows(), *LAYOUT, "--save", place)
    assert code == 0
    assert "The distances between heads are in d.npz." in shown
    with np.load(place) as file:
        assert file["hellinger_drop"].shape == (8, 8)
        about = json.loads(str(file["metadata"]))
    assert about["sink"] == "0"
    assert "2 texts, T 7, 12 rows of each of 8 heads" in about["rows"]


def test_one_file_cannot_be_both_the_report_and_the_distances(call, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "read_rows", lambda *_: pytest.fail("work was done"))
    monkeypatch.chdir(tmp_path)
    code, _, err = call(
        "--attention", rows(), *LAYOUT, "--save", "out", "--json", tmp_path / "no" / ".." / "out"
    )
    assert code == 2
    assert "--save and --json: expected two files; found the same" in err


@pytest.mark.parametrize("heads", [1, 2])
def test_of_few_heads_the_figures_are_drawn_that_can_be(call, tmp_path, heads):
    np.savez(tmp_path / "few.npz", attention=sink_and_content_apart(texts=2)[:, :1, :heads])
    code, shown, err = call("--attention", tmp_path / "few.npz", *LAYOUT, "--figures", tmp_path)
    assert (code, err) == (0, "")
    assert f"No clusters and no map by JSD: {heads} head" in " ".join(shown.split())
    assert (tmp_path / "flips.png").exists()
    assert not (tmp_path / "map-jsd.png").exists()


def test_figures_are_drawn(call, rows, tmp_path):
    code, shown, _ = call("--attention", rows(), *LAYOUT, "--figures", tmp_path / "new" / "figures")
    assert code == 0
    assert "Figures in figures: map-jsd.png, flips.png." in " ".join(shown.split())
    assert "Clusters by JSD" in shown
    assert {path.name for path in (tmp_path / "new" / "figures").iterdir()} == {"map-jsd.png", "flips.png"}
    options = ("--cluster", "l1", "--figures", tmp_path, "--figure-format", "svg")
    assert call("--attention", rows(), *LAYOUT, *options)[0] == 0
    assert "rows.npz, 2 texts, sink set position 0" in (tmp_path / "flips.svg").read_text()
    assert (tmp_path / "map-l1.svg").exists()


def test_verified_pairs_are_a_check(call, rows):
    code, shown, _ = call("--attention", rows(), *LAYOUT, "--verify", "3")
    assert code == 0
    assert "1 of 1 checks held." in shown


def test_a_wrong_pair_fails_the_command(call, rows, monkeypatch):
    of_two_heads = checking._of_two_heads
    monkeypatch.setattr(checking, "_of_two_heads", lambda given, _: of_two_heads(given, (0, 1)))
    code, shown, _ = call("--attention", rows(), *LAYOUT, "--verify", "3")
    assert code == 1
    assert "FAILED" in shown


def test_a_model_is_audited_on_texts(call, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "load", lambda *_: small_model())
    file = tmp_path / "texts.txt"
    file.write_text("The doctor saw the nurse.\n\nA donkey sleeps!\n")
    code, shown, err = call("--file", file, "--cluster", "jsd,clark2019")
    assert (code, err) == (0, "")
    assert "2 from texts.txt" in shown
    assert "Skipped: 1 blank line of the file." in shown
    assert "from the scores" in shown
    assert "Clusters by JSD: keep against drop" in shown
    assert "Clark et al. 2019" in shown


def test_invariances_are_shown_where_they_are_asked_for(call, monkeypatch):
    monkeypatch.setattr(command, "load", lambda *_: small_model())
    texts = ("--text", "The doctor saw the nurse.", "--text", "A donkey sleeps!")
    code, shown, _ = call(*texts, "--invariances")
    assert code == 0
    assert "What each distance is blind to" in shown
    assert "ok      invariance_offset" in shown
    assert "What each distance is blind to" not in call(*texts)[1]
    long = ("--text", " ".join(["doctor"] * 40))
    assert call(*long, "--truncate", "--invariances")[0] == 0
    monkeypatch.setattr(command, "audit", lambda *_, **__: pytest.fail("the audit came first"))
    code, _, err = call("--text", "nurse", "--invariances")
    assert code == 2
    assert "texts: expected a text with two content tokens" in err


def test_without_texts_the_passages_are_taken(call, monkeypatch):
    seen = []

    def audit_texts(name, texts, **_):
        seen.append((name, texts))
        raise SystemExit(0)

    monkeypatch.setattr(command, "audit_texts", audit_texts)
    assert call()[0] == 0
    ((name, texts),) = seen
    assert name == command_parts.DEFAULT_MODEL
    assert texts.source == "the bundled passages"
    assert len(texts.texts) == 20


@pytest.mark.timing
def test_minilm_is_audited_on_the_passages_within_a_minute_and_two_gigabytes(minilm):
    pytest.importorskip("resource", reason="peak memory is asked of POSIX")
    code = (
        "import sys; from validation.bench.child import peak_memory; from validation.cli import main; "
        "code = main(['audit']); print(peak_memory(), file=sys.stderr); sys.exit(code)"
    )
    start = time.perf_counter()
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    seconds = time.perf_counter() - start
    peak = int(child.stderr.split()[-1])
    assert child.returncode == 0
    assert "20 texts" in child.stdout
    assert seconds < 60
    assert peak < 2e9


def test_without_scipy_clusters_are_not_run_and_nothing_else_is(call, rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.cluster", None)
    code, shown, err = call("--attention", rows(), *LAYOUT, "--cluster", "jsd")
    assert (code, shown) == (3, "")
    assert 'pip install "sinkscope[clustering]"' in err
    assert call("--attention", rows(), *LAYOUT)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attention", "rows.npz", "--model", "m"), "--attention and --model: expected one of the two"),
        (("--attention", "rows.npz", "--truncate"), "--attention and --truncate"),
        (("--attention", "rows.npz", "--invariances"), "--attention and --invariances"),
        (("--zeros", "refuse"), "--zeros: expected --attention beside it"),
        (("--layout", "head query key"), "--layout: expected --attention beside it"),
        (("--attention", "none.npz"), "no such file"),
        (("--attention", "rows.npz"), "special, but no token names"),
        (
            ("--attention", "rows.npz", *LAYOUT, "--zeros", "epsilon"),
            "zeros: expected refuse, common-support",
        ),
        (("--attention", "rows.npz", *LAYOUT, "--layers", "1"), "layers: expected layers from 0 to 0"),
        (("--attention", "rows.npz", *LAYOUT, "--verify", "0"), "verify: expected at least one pair"),
        (
            ("--attention", "rows.npz", *LAYOUT, "--verify-seed", "0"),
            "verify_seed: expected verify beside it",
        ),
        (("--attention", "rows.npz", *LAYOUT, "--cluster", "kl"), "cluster: expected names from cosine"),
        (("--attention", "rows.npz", *LAYOUT, "--save", "no/d.npz"), "--save: expected a file"),
        (("--attention", "rows.npz", *LAYOUT, "--save", "rows.npz"), "a file that is read"),
        (("--attention", "rows.npz", *LAYOUT, "--figures", "rows.npz"), "--figures: expected a folder"),
        (("--attention", "rows.npz", *LAYOUT, "--figures", "rows.npz/a"), "--figures: expected a folder"),
        (("--figures", "f", "--figure-format", "gif"), "format: expected png or svg"),
        (("--figure-format", "svg"), "--figure-format: expected --figures beside it"),
        (("--text", "a", "--file", "b"), "--text and --file: expected one of the two"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_two(call, rows, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    rows()
    code, shown, err = call(*arguments)
    assert (code, shown) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_another_engine_is_refused(call, rows):
    code, _, err = call("--attention", rows(), *LAYOUT, "--engine", "torch")
    assert code == 2
    assert "engine: expected oracle or fastpath" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--min-content-keys", "-3"), "--min-content-keys: expected at least 1 content key; found -3"),
        (("--min-content-keys", "0"), "--min-content-keys: expected at least 1 content key; found 0"),
        (("--cluster", ""), "cluster: expected names from "),
    ],
)
def test_numbers_and_names_that_say_nothing_are_refused(call, rows, given, said):
    code, shown, err = call("--attention", rows(), *LAYOUT, *given)
    assert (code, shown) == (2, "")
    assert said in err


def test_zeros_and_rows_without_content_are_counted_in_words(call, rows):
    one = call("--attention", rows((0, 0, 1, 5, 3)), *LAYOUT)[1]
    assert "Zeros: 1 part of the rows that count, the first at" in " ".join(one.split())
    empty = " ".join(call("--attention", rows((0, 0, 1, 5, slice(1, None))), *LAYOUT)[1].split())
    assert "Not looked at: 1 row with no weight on any content key, undefined whatever is chosen." in empty


def test_what_the_figures_are_of_stands_once_in_a_section(call, rows):
    shown = call("--attention", rows(), *LAYOUT)[1]
    verdicts = shown[shown.index("Verdicts: which") : shown.index("Where each convention is safe")]
    assert " ".join(verdicts.split()).count("content queries, sink set") == 1
