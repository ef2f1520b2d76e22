"""Passes side by side: the same as alone, and none that is done is lost, whatever stops the rest."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pruning_models import tiny_llama

from oracle import forward
from validation.studies.kept_lines import KeptLines
from validation.studies.pruning import evaluating
from validation.studies.pruning.evaluating import evaluate
from validation.studies.pruning.ledger import Ledger, identity

MODEL = tiny_llama()
HEADS = MODEL.config.n_layers * MODEL.config.n_heads
IDS = [np.arange(count) % MODEL.config.vocab_size for count in (17, 23)]
TRACES = [forward(MODEL, ids, sink="first", keep=("hidden_states",)) for ids in IDS]
WANTED = [(text, tuple(range(count))) for count in range(10) for text in (0, 1)]


def ledger(path: Path) -> Ledger:
    return Ledger(path, identity(MODEL, IDS, 0), HEADS)


def stopping(function: Callable[..., Any], at: int, stop: Callable[[], Any]) -> Callable[..., Any]:
    """`function`, but for its call number `at`, in which `stop` comes first."""
    calls = itertools.count(1)

    def call(*given: Any) -> Any:
        if next(calls) == at:
            stop()
        return function(*given)

    return call


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def no_memory() -> None:
    raise MemoryError("no room for logits")


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each pass that was done."""
    done: list[int] = []
    whole = evaluating.log_likelihood

    def counted(*given: Any) -> Any:
        found = whole(*given)
        done.append(1)
        return found

    monkeypatch.setattr(evaluating, "log_likelihood", counted)
    return done


def test_a_pass_is_the_same_alone_and_beside_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at_once in (1, 4):
        monkeypatch.setattr(evaluating, "_AT_ONCE", at_once)
        monkeypatch.setattr(evaluating, "usable_cpus", lambda: 8)
        kept = ledger(tmp_path / f"{at_once}.jsonl")
        evaluate(MODEL, TRACES, WANTED, kept)
        assert set(kept.found) == set(WANTED)
        found.append(kept.found)
    assert found[0] == found[1]


@pytest.mark.parametrize("at", [1, 2, 7, len(WANTED)])
def test_an_interrupt_between_passes_keeps_what_is_done(at: int, tmp_path: Path, passes: list[int]) -> None:
    path = tmp_path / "ledger.jsonl"
    progress = stopping(lambda *given: None, at, interrupt)
    with pytest.raises(KeyboardInterrupt, match="are kept: the same command goes on there") as caught:
        evaluate(MODEL, TRACES, WANTED, ledger(path), progress)
    said = re.match(r"interrupted; (\d+) of 20 ", str(caught.value))
    assert said
    assert int(said[1]) == len(passes) == path.read_bytes().count(b"\n") == len(ledger(path).found)
    assert at - 1 <= len(passes)


def test_an_interrupt_in_the_middle_of_the_file_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[int]
) -> None:
    path = tmp_path / "ledger.jsonl"
    monkeypatch.setattr(KeptLines, "add", stopping(KeptLines.add, 6, interrupt))
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        evaluate(MODEL, TRACES, WANTED, ledger(path))
    assert len(ledger(path).found) == len(passes) >= 6


def test_a_pass_that_fails_does_not_take_its_neighbours_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[int]
) -> None:
    path = tmp_path / "ledger.jsonl"
    failing = stopping(evaluating.logits_without_heads, 6, no_memory)
    monkeypatch.setattr(evaluating, "logits_without_heads", failing)
    with pytest.raises(MemoryError, match="no room"):
        evaluate(MODEL, TRACES, WANTED, ledger(path))
    assert len(ledger(path).found) == len(passes) >= 5
    evaluate(MODEL, TRACES, WANTED, ledger(path))
    assert len(passes) == len(WANTED)
