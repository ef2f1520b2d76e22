from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oracle import InputError, load_model
from validation.bench import Paired, blas_threads, forward_ratios, machine, paired


def test_paired_takes_turns_and_swaps_the_order_of_every_second_pair() -> None:
    calls: list[str] = []
    times = paired(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3, warmup=2)
    assert "".join(calls) == "abba" + "abbaab"
    assert times.first.shape == times.second.shape == (3,)
    assert (times.first > 0).all()


@pytest.mark.timing
def test_paired_tells_a_slow_call_from_a_fast_one() -> None:
    times = paired(lambda: time.sleep(0.02), lambda: time.sleep(0.001), repeats=5, warmup=0)
    assert times.median > 2
    assert times.quartiles[0] <= times.median <= times.quartiles[1]


def test_ratios_are_taken_pair_by_pair() -> None:
    times = Paired(np.array([2.0, 20.0, 3.0]), np.array([1.0, 10.0, 1.0]))
    assert times.ratios.tolist() == [2, 2, 3]
    assert times.median == 2
    assert times.quartiles == (2, 2.5)


def test_no_repeats_are_refused() -> None:
    with pytest.raises(InputError, match="repeats: expected one or more pairs; found 0"):
        paired(list, list, repeats=0)


def test_the_machine_is_stamped() -> None:
    stamp = machine()
    assert stamp["cpus"] >= 1
    assert stamp["numpy"] == np.__version__
    assert stamp["processor"]
    assert "blas" in stamp["blas"].lower()


def test_threads_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert blas_threads() == 3
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    assert blas_threads() == 5
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert blas_threads() >= 1


def test_forward_ratios_time_what_agrees_and_nothing_else(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason='the reference needs pip install "sinkscope[reference]"')
    pytest.importorskip("transformers", reason='the reference needs pip install "sinkscope[reference]"')
    from validation.reference import random_bert

    threads = torch.get_num_threads()
    model = load_model(random_bert(tmp_path, 3, num_hidden_layers=1))
    table = forward_ratios(model, (5, 7), repeats=2)
    rows = table.records()
    assert [(row["tokens"], row["kept"]) for row in rows] == [
        (length, kept) for length in (5, 7) for kept in ("all", "rows alone")
    ]
    assert all(row["error"] < 1e-5 and row["ratio"] > 0 and row["pairs"] == 2 for row in rows)
    assert any("load average" in note for note in table.notes)
    wrong = replace(model, config=replace(model.config, norm_epsilon=0.5))
    rows = forward_ratios(wrong, (5,), repeats=2).records()
    assert all(row["ratio"] is None and row["pairs"] == 0 and row["error"] > 1e-5 for row in rows)
    assert torch.get_num_threads() == threads
    with pytest.raises(InputError, match="expected at most 67 tokens"):
        forward_ratios(model, (68,))
