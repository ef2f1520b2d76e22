"""What commands do, with the functions that do the work replaced by fakes that record their arguments."""

from __future__ import annotations

import sys
import types

import gguf_files
import pytest

from oracle import InputError, Unavailable
from validation import commands
from validation.bench import QUICK, SECTIONS, WHOLE
from validation.command_parts import Texts, choose_texts, exit_code, load, read_lengths
from validation.progress import silent
from validation.report.document import Check, Column, Note, Table
from validation.report.live import announce_compiling
from validation.texts import SENTENCES

TWO = Texts("a test", ("one", "two words"))


@pytest.fixture
def work(monkeypatch, minilm):
    """Fakes of the modules that do the work; `calls` holds what they were given."""
    calls = []

    def fake(name, *parts):
        def call(model, *args, **kwargs):
            calls.append((name, args, kwargs))
            return parts

        return call

    def module(name, **members):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**members))

    check = Check("rows", "1", "1", True)
    lengths = Note("T", "T: 3 and 4.", (3, 4))
    table = Table("ratio", "Ratio", (Column("t", "T"),), ((1,),))
    module("validation.diffing", diff=fake("diff", check, lengths))
    module("validation.stages", IMPLEMENTATIONS=("ours", "theirs"))
    module("validation.forward_checks", validate_forward=fake("forward", check))
    module("validation.mutants", run_mutants=fake("mutants", check))
    module("validation.studies.norm_weighting", run=fake("study", lengths, Note("verdict", "collapsed")))
    module("validation.studies.rollout", run=fake("rollout", table))
    module("validation.measuring", measure=fake("measure", table))
    monkeypatch.setattr(commands, "load", lambda name, progress: minilm)
    return calls


def test_validate_runs_four_sections_and_states_where_numbers_come_from(work):
    document = commands.validate("minilm-l6", TWO, silent)
    assert [name for name, _, _ in work] == ["forward", "mutants", "study", "rollout"]
    given = [given for _, given, _ in work]
    assert given == [(TWO.texts, silent), (silent,), (TWO.texts, silent), (TWO.texts, silent, False)]
    assert work[0][2] == {"truncate": False}
    assert work[2][2] == {"layers": None, "truncate": False, "punctuation": "neither"}
    assert [part.key for part in document.parts] == [
        "section",
        "rows",
        "section",
        "rows",
        "section",
        "T",
        "verdict",
        "section",
        "ratio",
    ]
    about = document.provenance
    assert about["model"] == "minilm-l6"
    assert len(about["model_sha256"]) == 64
    assert about["T"] == [3, 4]
    assert (about["sink"], about["convention"]) == ("special", "keep")
    assert "numpy" in about["versions"]
    assert exit_code(document) == 0


def test_validate_hands_the_choices_of_the_study_on(work):
    choice = {"layers": "0,3-5", "punctuation": "word", "truncate": True}
    document = commands.validate("minilm-l6", TWO, silent, **choice)
    assert work[0][2] == {"truncate": True}
    assert work[2][2] == choice
    assert choice.items() <= document.provenance.items()


def test_the_T_of_a_document_is_that_of_the_texts_that_were_measured(minilm, monkeypatch):
    monkeypatch.setattr(commands, "load", lambda name, progress: minilm)
    texts = Texts("a test", ("", "two words", " ", "one"))
    choice = {"sink": "special", "weightings": "attention", "layers": "0", "truncate": False}
    choice |= {"engine": "oracle", "verify": None}
    assert commands.measure("minilm-l6", texts, progress=silent, **choice).provenance["T"] == [4, 3]
    document = commands.diff("minilm-l6", "oracle-float32", "oracle-float64", texts, silent)
    assert document.provenance["T"] == [4, 3]


def test_validate_without_the_reference_shows_the_rest_and_says_what_is_missing(work, monkeypatch):
    def missing(*_, **__):
        raise Unavailable("torch is not installed. Install sinkscope[reference].")

    monkeypatch.setattr(sys.modules["validation.forward_checks"], "validate_forward", missing)
    document = commands.validate("minilm-l6", TWO, silent)
    assert [part.key for part in document.parts if part.key != "section"] == [
        *("not_run", "rows", "T", "verdict", "ratio")
    ]
    assert document.parts[0].text == "The forward pass against PyTorch"
    assert document.parts[1].text == "NOT RUN: torch is not installed. Install sinkscope[reference]."
    assert exit_code(document) == 3


def test_diff_names_both_implementations_and_refuses_others(work):
    document = commands.diff("minilm-l6", "ours", "theirs", TWO, silent)
    assert work == [("diff", ("ours", "theirs", TWO.texts, silent), {})]
    assert (document.provenance["first"], document.provenance["second"]) == ("ours", "theirs")
    with pytest.raises(
        InputError, match="expected one of ours, theirs, or oracle beside fastpath; found 'torch'"
    ):
        commands.diff("minilm-l6", "ours", "torch", TWO, silent)


def test_measure_hands_every_choice_on(work):
    choice = {"sink": "0,7", "weightings": "value_norm", "layers": "0,3-5", "truncate": True}
    choice |= {"engine": "fastpath", "verify": 7, "verify_seed": 2}
    document = commands.measure("minilm-l6", TWO, progress=silent, **choice)
    told = {"progress": silent, "on_compile": announce_compiling}
    assert work == [("measure", (TWO.texts,), choice | told)]
    stated = {"sink": "0,7", "weighting": "value_norm", "layers": "0,3-5", "convention": "keep"}
    stated |= {"engine": "fastpath"}
    assert stated.items() <= document.provenance.items()


@pytest.fixture
def benchmark(monkeypatch):
    """What the benchmark was asked for; it finds one table, and one check that fails on request."""
    calls = []

    def run(model, sizes, sections, progress):
        calls.append((sizes, sections))
        return [Table("ratio", "Ratio", (Column("t", "T"),), ((1,),))]

    monkeypatch.setattr("validation.bench.run_bench", run)
    return calls


def test_bench_hands_its_choices_on(benchmark):
    document = commands.bench("minilm-l6", None, silent)
    assert benchmark.pop() == (WHOLE, SECTIONS)
    assert document.provenance["sizes"] == "whole"
    assert document.provenance["model"] == "minilm-l6"
    assert len(document.provenance["machine"]["load_before"]) in (0, 3)
    document = commands.bench("minilm-l6", [3, 5], silent, quick=True, only="forward")
    assert benchmark.pop() == (QUICK._replace(forward=(3, 5)), ("forward",))
    assert document.provenance["sizes"] == "quick"
    assert "model" not in commands.bench("minilm-l6", None, silent, only="rows").provenance


def test_bench_says_that_the_machine_was_busy(benchmark, monkeypatch):
    monkeypatch.setattr("validation.bench.busy", lambda *_: "Busy.")
    *_, busy, summary = commands.bench("minilm-l6", None, silent, only="rows").parts
    assert busy == Note("busy", "Busy.")
    assert summary.notes[0].endswith("Busy.")
    monkeypatch.setattr("validation.bench.busy", lambda *_: "")
    assert commands.bench("minilm-l6", None, silent, only="rows").parts[-2].key == "ratio"


def test_bench_ends_with_its_summary_for_a_page(benchmark):
    last = commands.bench("minilm-l6", None, silent).parts[-1]
    assert (last.key, last.shown) == ("summary", False)
    assert "CPUs; threads: blas" in last.notes[0]


def test_texts_come_from_the_caller_a_file_or_the_project(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("one\n\ntwo\n")
    assert choose_texts(["a", ""], None) == Texts("the command line", ["a", ""])
    assert choose_texts(None, None).texts == SENTENCES
    found = choose_texts([], str(file))
    assert (found.source, list(found.texts)) == ("texts.txt", ["one", "two"])
    assert found.notes[0].text == "Skipped: 1 blank line of the file."
    with pytest.raises(InputError, match="expected one of the two; found both"):
        choose_texts(["a"], str(file))


def test_an_empty_text_is_a_text():
    assert choose_texts([""], None).texts == [""]


def test_lengths_are_read_or_refused():
    assert read_lengths("128, 512") == [128, 512]
    for wrong in ("", "a", "1,,2", "0", "-3"):
        with pytest.raises(InputError, match="positive numbers like 128,512"):
            read_lengths(wrong)


def test_a_fetch_tells_its_lines_to_the_progress(monkeypatch):
    told = []

    def fetch_model(name, *, progress):
        progress(f"fetching {name}")
        return "somewhere"

    monkeypatch.setattr("oracle.loading.fetch_model", fetch_model)
    document = commands.fetch("minilm-l6", lambda *step: told.append(step))
    assert told == [("fetching minilm-l6", 0, 0)]
    assert document.parts[0].text == "minilm-l6 is in the cache: somewhere"


@pytest.mark.parametrize(("found", "said"), [(True, "removed"), (False, "nothing to remove")])
def test_removing_says_what_happened(monkeypatch, found, said):
    monkeypatch.setattr("oracle.loading.remove_model", lambda name: found)
    assert said in commands.remove("minilm-l6").parts[0].text


def test_a_load_without_a_terminal_leaves_its_line_to_the_loader(monkeypatch):
    seen = []
    monkeypatch.setattr("oracle.loading.load_model", lambda name, progress: seen.append((name, progress)))
    load("some", silent)
    assert seen == [("some", None)]


@pytest.mark.parametrize("text", ["\u200d", "[CLS] [SEP]"])
def test_validate_refuses_texts_without_content_before_any_work(work, text):
    with pytest.raises(InputError, match="texts: expected a text with a token beside the special ones"):
        commands.validate("minilm-l6", Texts("a test", (text,)), silent)
    assert not work


def test_the_models_table_says_what_dequantised_copies_take(tmp_path, monkeypatch):
    from oracle.loading._gguf import dequantise

    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    assert [part.key for part in commands.list_models().parts] == ["models"]
    path = gguf_files.write_gguf(tmp_path / "small.gguf", gguf_files.weights())
    folder, _ = dequantise(path, None, lambda line: None)
    table = commands.list_models().parts[1]
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    assert table.rows == ((folder.name, "cached", size, "small.gguf"),)
    assert "removed from the cache" in commands.remove(folder.name).parts[0].text
    assert [part.key for part in commands.list_models().parts] == ["models"]
