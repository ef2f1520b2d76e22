"""The study as a whole: what it computes, that it goes on where it was stopped, and what it refuses."""

from __future__ import annotations

import inspect
import itertools
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle_models import letter_tokenizer, random_model
from pruning_models import tiny_llama
from text_models import by_key
from wording import refused

from oracle import Model, forward, perplexity
from oracle.model import Linear
from validation.cli import main
from validation.report.as_json import as_data
from validation.report.document import Document
from validation.studies.pruning import command, evaluating, study
from validation.studies.pruning.passages import Passages, load_passages
from validation.studies.pruning.rule import RULE_VERSION
from validation.studies.pruning.sizes import BUDGETS, TOKENS
from validation.studies.pruning.sizes import DRAWS as DRAWS_OF_RECORD
from validation.studies.pruning.study import run

ROOT = Path(__file__).parents[3]
DRAWS = 3
HIGHEST_SHARE = "highest_sink_share"


def parts_of(model: Model, out: Path, **named: Any) -> Any:
    return as_data(
        Document("prune", {}, run(model, out=out, **({"engine": "oracle", "draws": DRAWS} | named)))
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    path = tmp_path_factory.mktemp("prune") / "ledger.jsonl"
    return parts_of(tiny_llama(), path), path


def test_the_passages_are_three_and_long_enough() -> None:
    passages = load_passages()
    texts = (passages.statistics, *passages.evaluation)
    assert len(set(texts)) == 3
    assert min(len(text.split()) for text in texts) >= 500
    assert all(text.isascii() for text in texts)


def test_ratios_are_those_of_models_without_the_slices(tmp_path: Path) -> None:
    model = tiny_llama()
    parts = by_key(run(model, out=tmp_path / "ledger.jsonl", engine="oracle", draws=2, budgets=(0.3,)))
    ids = [np.frombuffer(text.encode()[:43], np.uint8) for text in load_passages().evaluation]
    letters = model.tokenizer.get_vocab()
    ids = [np.array([letters[model.tokenizer.encode(chr(byte)).tokens[0]] for byte in text]) for text in ids]
    trials = parts["trials"].records()
    assert len(trials) == 9 * 2 + 2 * 2 + 9 * 2
    assert all(len(trial["heads"].split()) == 6 for trial in trials)
    for trial in trials[::3]:
        layers = list(model.layers)
        for layer, head in (map(int, place.split(".")) for place in trial["heads"].split()):
            weight = layers[layer].output.weight.copy()
            weight[6 * head : 6 * head + 6] = 0
            layers[layer] = replace(layers[layer], output=Linear(weight))
        text = ids[trial["text"] - 1]
        whole, cut = perplexity(model, text), perplexity(replace(model, layers=tuple(layers)), text)
        assert trial["ratio"] == pytest.approx(cut / whole, rel=1e-12)
    assert {trial["text"] for trial in trials} == {1, 2}
    assert parts["T"].values == (43, 43, 43)
    assert [row["T"] for row in parts["texts"].records()] == [43, 43, 43]


def row_means(model: Model, text: str) -> np.ndarray:
    """The mean share of position 0 in the rows that see 8 content keys, (layer, head)."""
    found = forward(model, text, sink="first", keep=("attention",), truncate=True)
    return found.attention[..., 8:, 0].mean(axis=-1)


@pytest.mark.parametrize("moved", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1)], ids=str)
def test_heads_are_measured_on_the_first_text_and_perplexities_taken_of_the_others(
    moved: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, passages = tiny_llama(), load_passages()
    bundled = (passages.statistics, *passages.evaluation)
    first, *others = (bundled[place] for place in moved)
    monkeypatch.setattr(study, "load_passages", lambda: Passages(first, (others[0], others[1])))
    parts = by_key(run(model, out=tmp_path / "ledger.jsonl", engine="oracle", draws=1, budgets=(0.3,)))
    shares = row_means(model, first)
    heads = parts["heads"].records()
    assert [row["sink_share"] for row in heads] == pytest.approx(shares.ravel(), rel=1e-6)
    assert min(abs(row_means(model, text) - shares).max() for text in others) > 1e-3
    cut = {
        tuple(trial["heads"].split())
        for trial in parts["trials"].records()
        if trial["choice"] == HIGHEST_SHARE
    }
    most = sorted(np.argsort(-shares.ravel())[:6])
    assert tuple(f"{head // 4}.{head % 4}" for head in most) in cut
    rows = parts["texts"].records()
    assert [row["text"] for row in rows] == ["statistics of the heads", "evaluation 1", "evaluation 2"]
    found = [perplexity(model, text, truncate=True) for text in others]
    assert [row["perplexity"] for row in rows[1:]] == pytest.approx(found, rel=1e-6)


def test_the_sizes_are_those_of_the_result_of_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A change of one needs another RULE_VERSION, and the shipped result made anew."""
    assert (RULE_VERSION, BUDGETS, DRAWS_OF_RECORD, TOKENS) == (1, (0.05, 0.1, 0.2), 10, 512)
    shipped = json.loads((ROOT / "validation" / "results" / "prune-smollm2.json").read_text())
    about = shipped["report"]["provenance"]
    assert (tuple(about["budgets"]), about["draws"], about["T"]) == (BUDGETS, DRAWS_OF_RECORD, [TOKENS] * 3)
    given: list[Any] = []
    monkeypatch.setattr(command, "load", lambda name, progress: tiny_llama())
    monkeypatch.setattr(command, "run", lambda model, **named: given.append(named) or ())
    assert main(["prune"]) == 0
    assert (given[0]["budgets"], given[0]["draws"]) == (BUDGETS, DRAWS_OF_RECORD)
    defaults = inspect.signature(run).parameters
    assert (defaults["budgets"].default, defaults["draws"].default) == (BUDGETS, DRAWS_OF_RECORD)
    long = tiny_llama(max_positions=530)
    parts = by_key(run(long, out=tmp_path / "long.jsonl", engine="oracle", draws=1, budgets=(0.05,)))
    assert parts["T"].values == (512, 512, 512)
    assert "the first 512 tokens" in parts["T"].text


def test_both_engines_choose_the_same_heads(undisturbed: tuple[Any, Path], tmp_path: Path) -> None:
    fast = parts_of(tiny_llama(), tmp_path / "ledger.jsonl", engine="fastpath")
    trials = [
        next(part["rows"] for part in found["parts"] if part.get("key") == "trials")
        for found in (undisturbed[0], fast)
    ]
    assert trials[0] == trials[1]


def test_a_second_run_computes_nothing_and_says_the_same(
    undisturbed: tuple[Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, path = undisturbed
    before = path.read_bytes()
    monkeypatch.setattr(evaluating, "logits_without_heads", None)
    assert parts_of(tiny_llama(), path) == expected
    assert path.read_bytes() == before
    with pytest.raises(TypeError):
        parts_of(tiny_llama(), path, seed=1)
    with pytest.raises(TypeError):
        parts_of(tiny_llama(seed=1), path)
    with pytest.raises(TypeError):
        parts_of(tiny_llama(max_positions=41), path)


CODE = """
import sys
sys.path.insert(0, "tests")
from pruning_models import tiny_llama
from validation.studies.pruning.study import run
run(tiny_llama(), out=sys.argv[1], engine="oracle", draws=int(sys.argv[2]), seed=int(sys.argv[3]))
"""


def started(out: Path, draws: int, seed: int = 0) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, str(out), str(draws), str(seed)], cwd=ROOT, stderr=subprocess.PIPE
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_run_goes_on_and_equals_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, draws = tmp_path / "killed.jsonl", 40
    child = started(path, draws)
    try:
        deadline = time.monotonic() + 60
        while not path.exists() or path.read_bytes().count(b"\n") < 25:
            assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        child.kill()
        child.communicate()
    path.write_bytes(path.read_bytes()[:-7])  # as if the last line had been cut, wherever the kill came
    done = path.read_bytes().count(b"\n")
    computed = []
    whole = evaluating.logits_without_heads
    monkeypatch.setattr(
        evaluating, "logits_without_heads", lambda *given: (computed.append(1), whole(*given))[1]
    )
    found = parts_of(tiny_llama(), path, draws=draws)
    after = len(computed)
    expected = parts_of(tiny_llama(), tmp_path / "other.jsonl", draws=draws)
    (note,) = [part for part in found["parts"] if part["key"] == "unreadable"]
    assert note["text"].startswith("1 line of killed.jsonl cannot be read")
    found["parts"].remove(note)
    assert found == expected
    assert 25 <= done + 1 < len(computed) - after
    assert after == len(computed) - after - done


def test_two_at_once_in_one_file(undisturbed: tuple[Any, Path], tmp_path: Path) -> None:
    path = tmp_path / "shared.jsonl"
    children = [started(path, DRAWS, seed) for seed in (0, 0, 1)]
    assert [(child.communicate()[1], child.returncode) for child in children] == [(b"", 0)] * 3
    assert parts_of(tiny_llama(), path) == undisturbed[0]
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert {line["seed"] for line in lines} == {0, 1}
    assert parts_of(tiny_llama(), path, seed=1) == parts_of(tiny_llama(), tmp_path / "alone.jsonl", seed=1)


def test_an_interrupted_run_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    whole, calls, done = evaluating.logits_without_heads, itertools.count(1), []

    def interrupted(*given: Any) -> Any:
        if next(calls) == 6:
            raise KeyboardInterrupt
        found = whole(*given)
        done.append(1)
        return found

    monkeypatch.setattr(evaluating, "logits_without_heads", interrupted)
    monkeypatch.setattr(command, "load", lambda name, progress: tiny_llama())
    out = tmp_path / "ledger.jsonl"
    assert main(["prune", "--draws", "2", "--out", str(out)]) == 130
    assert out.read_bytes().count(b"\n") == len(done) >= 5
    shown = capsys.readouterr().err
    assert f"sinkscope: interrupted; {len(done)} of 87 " in shown
    assert "are kept: the same command goes on there." in shown


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(command, "load", lambda name, progress: replace(tiny_llama(), name=name))
    written = tmp_path / "found.json"
    assert (
        main(["prune", "--model", "a/tiny", "--draws", "1", "--budget", "0.1", "--json", str(written)]) == 0
    )
    shown = capsys.readouterr().out
    for words in (
        "sinkscope prune",
        "T",
        "sink",
        "Where they stand, 10% of the heads",
        "Verdict, more than a hundredfold",
    ):
        assert words in shown
    found = json.loads(written.read_text())
    assert found["provenance"]["T"] == [43, 43, 43]
    assert found["provenance"]["budgets"] == [0.1]
    assert found["provenance"]["sink"] == "first"
    (ledger,) = (tmp_path / "cache" / "pruning").iterdir()
    assert ledger.name.startswith("tiny-")
    assert str(tmp_path) not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budget", "2"], "--budget: expected shares"),
        (["--draws", "0"], "'--draws'"),
        (["--seed", "-1"], "'--seed'"),
        (["--out", "x.jsonl", "--json", "./x.jsonl"], "--json: expected another file than --out"),
        (["--out", "{here}"], "--out: expected a file of earlier results"),
        (["--model", "{here}"], "{here}"),
    ],
    ids=str,
)
def test_wrong_calls(arguments: list[str], words: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    if "--model" not in arguments:
        monkeypatch.setattr(command, "load", lambda name, progress: tiny_llama())
    given = [part.replace("{here}", str(tmp_path)) for part in arguments]
    assert main(["prune", *given]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words.replace("{here}", str(tmp_path)) in shown.err
    assert shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_models_without_a_language_model_head_are_refused(tmp_path: Path) -> None:
    bert = random_model(tokenizer=letter_tokenizer())
    with refused("model", "a causal model with its language-model head", "another kind"):
        run(bert, out=tmp_path / "ledger.jsonl")
    trunk = tiny_llama(tied_head=False)
    with refused("model", "saved without one"):
        run(trunk, out=tmp_path / "ledger.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_too_few_positions_is_refused(tmp_path: Path) -> None:
    with refused("text", "8 content keys"):
        run(tiny_llama(max_positions=8), out=tmp_path / "ledger.jsonl", engine="oracle")
