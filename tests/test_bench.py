from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import InputError, Model, Unavailable, load_model
from validation import bench, peers
from validation.bench import (
    QUICK,
    SECTIONS,
    WHOLE,
    Sizes,
    blas_threads,
    figures,
    forward_ratios,
    machine,
    run,
)
from validation.bench.child import ask, first_calls
from validation.report.document import Check, Column, Document, Note, Table
from validation.report.terminal import render

TINY = Sizes(
    rows=(2, 3, 11, 13),
    transformed=(2, 11, 3, 7),
    streaming=(2, 23, 4),
    causal=(3, 29, 8),
    distances=(13, 5, 7),
    verdicts=11,
    memory=(2, 31, 4),
    first=(2, 11, 4),
    lengths=(7, 11, 13),
    heads=(1, 2),
    distance_heads=(2, 3, 5),
    distance_lengths=(4, 5, 7),
    audit_heads=(3, 4, 12),
    audit_lengths=(9, 11, 13),
    forward=(5,),
    language_model=(5, 11),
    rounds=2,
    budget=1.0,
    judged=True,
    pause=0.0,
)


def no_model() -> Model:
    raise AssertionError("no model is needed")


def tables(parts: list[Any]) -> dict[str, Table]:
    return {part.key: part for part in parts if isinstance(part, Table)}


def test_cases_agree_and_every_goal_has_its_verdict() -> None:
    pytest.importorskip("torch", reason='the peers need pip install "sinkscope[reference]"')
    told: list[str] = []
    parts = bench.run_bench(
        no_model, TINY, ("streaming", "rows"), lambda what, done, total: told.append(what)
    )
    found = tables(parts)
    assert [*found] == [
        "rows",
        "entropies",
        "transformed",
        "accuracy",
        "transformed memory",
        "streaming",
        "causal",
    ]
    checks = [part for part in parts if isinstance(part, Check)]
    assert len(checks) == 5
    assert all(check.ok for check in checks), checks
    judged = [row for table in found.values() for row in table.records() if row.get("goal")]
    assert len(judged) == 11
    assert {row["verdict"] for row in judged} <= {"met", "missed"}
    assert any("rows: timing" in what for what in told)
    assert [part.text for part in parts if isinstance(part, Note) and part.key == "section"] == [
        "From attention rows",
        "From queries and keys",
    ]
    shown = render(Document("bench", {}, tuple(parts)))
    assert max(map(len, shown.splitlines())) <= 80
    assert all(record["verdict"] == "met" for record in found["accuracy"].records())


def test_distances_and_verdicts_agree_and_are_judged() -> None:
    pytest.importorskip("scipy", reason='the peers need pip install "sinkscope[clustering]"')
    parts = bench.run_bench(no_model, TINY, ("distances", "verdicts"))
    found = tables(parts)
    assert [*found] == [
        "distances",
        "all distances",
        "accuracy",
        "distance_growth",
        "distances_over_heads",
        "distances_over_T",
        "verdicts",
    ]
    checks = {part.key: part for part in parts if isinstance(part, Check)}
    assert [*checks] == [
        "agreement.distances",
        "agreement.all-distances",
        "agreement.distance_growth",
        "agreement.verdicts",
    ]
    assert all(check.ok for check in checks.values()), checks
    judged = [row for table in found.values() for row in table.records() if row.get("goal")]
    assert [row["contender"] for row in judged] == [
        "numpy, loop over heads",
        "scipy, pair by pair, both conventions",
        "fastpath, JSD alone",
        "fastpath",
    ]
    assert {row["verdict"] for row in judged} <= {"met", "missed"}
    assert "66 pairs of 78 timed, scaled to all" in " ".join(found["distances"].notes)
    shown = render(Document("bench", {}, tuple(parts)))
    assert max(map(len, shown.splitlines())) <= 80


def test_an_audit_grows_in_time_and_memory_and_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = bench.run_bench(no_model, TINY, ("audit",))
    found = tables(parts)
    assert [*found] == ["audit_growth", "audit_over_heads", "audit_over_T"]
    assert len(found["audit_growth"].rows) == 4
    for axis, sizes in (("heads", (3, 4, 12)), ("T", (9, 11, 13))):
        time_row, memory = found[f"audit_over_{axis}"].records()
        assert all(time_row[f"{axis}_{size}"] > 0 for size in sizes)
        assert all(memory[f"{axis}_{size}"] > 0 for size in sizes)  # so small ones need not grow
    (check,) = [part for part in parts if isinstance(part, Check)]
    assert check.ok, check
    import fastpath

    sums = fastpath.distance_sums

    def wrong_sums(*args: Any, **given: Any) -> Any:
        found = sums(*args, **given)
        return found._replace(sums={pair: table * (1 + 1e-9) for pair, table in found.sums.items()})

    monkeypatch.setattr(fastpath, "distance_sums", wrong_sums)
    parts = bench.run_bench(no_model, TINY, ("audit",))
    assert [part.ok for part in parts if isinstance(part, Check)] == [False]


def test_a_wrong_distance_or_verdict_of_ours_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import fastpath

    sums, flips = fastpath.distance_sums, fastpath.verdict_flips

    def wrong_sums(*args: Any) -> Any:
        found = sums(*args)
        return found._replace(sums={pair: table * (1 + 1e-11) for pair, table in found.sums.items()})

    def wrong_flips(*args: Any) -> Any:
        found = flips(*args)
        return found._replace(per_anchor=found.per_anchor + 1e-9)

    monkeypatch.setattr(fastpath, "distance_sums", wrong_sums)
    monkeypatch.setattr(fastpath, "verdict_flips", wrong_flips)
    parts = bench.run_bench(no_model, TINY, ("distances", "verdicts"))
    assert [part.ok for part in parts if isinstance(part, Check)] == [False] * 4
    assert all(row["ms"] is None for row in tables(parts)["verdicts"].records())


def test_without_scipy_its_rows_stay_and_are_said_not_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy", "scipy.spatial", "scipy.stats"):
        monkeypatch.setitem(sys.modules, name, None)
    parts = bench.run_bench(no_model, TINY, ("verdicts",))
    missing = [part.text for part in parts if isinstance(part, Note) and part.key == "not_run"]
    assert missing[0].startswith("NOT RUN: The SciPy peers need scipy")
    rows = {row["contender"]: row for row in tables(parts)["verdicts"].records()}
    assert rows["scipy, Kendall's tau"]["verdict"] == "not run"
    assert rows["fastpath"]["ms"] > 0


def test_the_einsum_is_given_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    from validation.bench.rows import transformed_case

    given: list[np.dtype[Any]] = []
    monkeypatch.setattr(
        peers, "torch_einsum", lambda rows, vectors, _: given.extend((rows.dtype, vectors.dtype))
    )
    transformed_case(TINY.transformed, None).contenders[1].call()
    assert given == [np.float32, np.float32]


def test_a_wrong_result_of_ours_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import fastpath

    right = fastpath.sink_share_from_query_key
    monkeypatch.setattr(fastpath, "sink_share_from_query_key", lambda *args, **kw: right(*args, **kw) + 1e-4)
    parts = bench.run_bench(no_model, TINY, ("streaming",))
    checks = [part for part in parts if isinstance(part, Check)]
    assert [check.ok for check in checks] == [False, False]
    assert all(row["ms"] is None for row in tables(parts)["causal"].records())


def test_without_torch_its_rows_stay_and_are_said_not_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    parts = bench.run_bench(no_model, TINY, ("streaming",))
    missing = [part.text for part in parts if isinstance(part, Note) and part.key == "not_run"]
    assert missing[0].startswith("NOT RUN: The PyTorch peers need torch")
    rows = {row["contender"]: row for row in tables(parts)["streaming"].records()}
    assert rows["torch, SDPA"]["verdict"] == rows["torch, rows stored"]["verdict"] == "not run"
    assert rows["matrix product alone"]["ms"] > 0
    assert all(part.ok for part in parts if isinstance(part, Check))


def test_quick_sizes_are_smaller_and_judge_no_goal() -> None:
    quick = TINY._replace(judged=False)
    parts = bench.run_bench(no_model, quick, ("streaming",))
    assert parts[0].key == "quick"
    assert {row["verdict"] for row in tables(parts)["causal"].records()} == {"", "not judged"}
    assert not [part for part in parts if isinstance(part, Note) and part.key == "goals"]
    assert WHOLE.judged
    assert not QUICK.judged
    assert np.prod(QUICK.rows) < np.prod(WHOLE.rows)


def test_growth_has_an_exponent_for_every_sweep() -> None:
    parts = bench.run_bench(no_model, TINY, ("sweep",))
    found = tables(parts)
    rows = {row["what"]: row for row in found["growth"].records()}
    assert [*rows] == [
        "rows time in T",
        "streaming time in T",
        "causal time in T",
        "streaming memory in T",
        "causal memory in T",
        "rows time in heads",
        "streaming time in heads",
    ]
    assert {row["verdict"] for name, row in rows.items() if name.endswith("T")} <= {"met", "missed"}
    assert [column.key for column in found["over_T"].columns] == ["what", "T_7", "T_11", "T_13"]
    assert [row["what"] for row in found["over_heads"].records()] == ["rows time", "streaming time"]
    assert all(value > 0 for row in found["over_T"].rows for value in row[1:])
    assert parts[-1].key == "goals"


def test_resident_memory_is_taken_in_a_process_of_its_own() -> None:
    (table,) = tables(bench.run_bench(no_model, TINY, ("memory",))).values()
    ours, rows = table.records()
    assert 0 <= ours["value"] < 64
    assert (ours["goal"], ours["verdict"]) == ("<= 64", "met")
    assert rows["value"] == 2 * 31**2 * 4 / 2**20


def test_peak_bytes_counts_what_numpy_holds() -> None:
    from validation.bench.timing import peak_bytes

    assert 8e6 <= peak_bytes(lambda: np.ones(1_000_000)) < 8.1e6


def test_a_process_that_fails_is_not_run() -> None:
    with pytest.raises(Exception, match="in a process of its own failed: KeyError") as caught:
        ask("nothing")
    assert type(caught.value).__name__ == "Unavailable"


@pytest.mark.parametrize("complaint", ["", "share off"])
def test_first_use_sets_compiling_beside_loading(monkeypatch: pytest.MonkeyPatch, complaint: str) -> None:
    asked: list[Any] = []

    def answer(what: str, *sizes: int, environment: dict[str, str]) -> dict[str, Any]:
        asked.append((what, sizes, environment))
        seconds = {"row_measures": [10.0 / len(asked), 0.01]}
        return {"import": 1.0 - 0.5 * len(asked), "seconds": seconds, "complaint": complaint}

    monkeypatch.setattr(figures, "ask", answer)
    table, check = figures.first_use((2, 11, 4))
    assert check.ok is not bool(complaint)
    rows = {row["what"]: row for row in table.records()}
    assert rows["row_measures"] == {"what": "row_measures", "compiling": 10, "loading": 5, "warm": 0.01}
    assert rows["import fastpath"]["compiling"] == 0.5
    assert asked[0] == asked[1]
    assert asked[0][:2] == ("first", (2, 11, 4))
    assert not Path(asked[0][2]["NUMBA_CACHE_DIR"]).exists()


def test_first_calls_time_two_calls_of_each() -> None:
    found = first_calls(2, 11, 4)
    assert [*found["seconds"]] == ["row_measures", "with entropies", "from query and key"]
    assert all(len(seconds) == 2 for seconds in found["seconds"].values())
    assert found["complaint"] == ""


@pytest.mark.parametrize("name", ["row_measures", "sink_share_from_query_key"])
def test_no_size_of_the_sweep_goes_unchecked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    import fastpath

    right = getattr(fastpath, name)

    def wrong(*given: Any, **named: Any) -> Any:
        found = right(*given, **named)
        if given[0].shape[-2] != 11:
            return found
        return (
            found * 1.01
            if name != "row_measures"
            else found._replace(ratios={n: r * 1.01 for n, r in found.ratios.items()})
        )

    monkeypatch.setattr(fastpath, name, wrong)
    (check,) = (part for part in bench.run_bench(no_model, TINY, ("sweep",)) if isinstance(part, Check))
    assert not check.ok
    assert "at 11: " in check.found
    assert "at 13: " not in check.found


def test_unequal_threads_are_said_and_not_published() -> None:
    assert bench.unequal({"blas": 2, "numba": 2, "torch": "not loaded"}) == ""
    assert "blas 1, numba 2" in bench.unequal({"blas": 1, "numba": 2, "torch": 2})


def test_torch_is_there_before_numba_starts_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    started: list[str] = []
    real = peers.torch_threads, numba.get_num_threads
    monkeypatch.setattr(peers, "torch_threads", lambda count: started.append("torch") or real[0](count))
    monkeypatch.setattr(numba, "get_num_threads", lambda: started.append("numba") or real[1]())
    with bench.equal_threads():
        assert started[0] == "torch"
        assert "numba" in started


def test_threads_are_equal_while_timed_and_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    before = numba.get_num_threads()
    with bench.equal_threads():
        counts = bench.thread_counts()
        assert {count for count in counts.values() if isinstance(count, int)} == {1}
    assert numba.get_num_threads() == before


def test_a_forward_pass_that_disagrees_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column("tokens", "T"), Column("pairs", "pairs"))
    table = Table("forward_ratio", "Forward", columns, ((5, 3), (7, 0)))
    monkeypatch.setattr("validation.bench.forward.forward_ratios", lambda *args, **kw: table)
    # type-ignore: no model is looked at
    parts = bench.run_bench(lambda: None, TINY, ("forward",))  # type: ignore[arg-type, return-value]
    (check,) = (part for part in parts if isinstance(part, Check))
    assert (check.ok, check.found) == (False, "7 tokens")


def test_a_language_model_is_timed_against_torch_and_its_last_rows_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason='the reference needs pip install "sinkscope[reference]"')
    pytest.importorskip("transformers", reason='the reference needs pip install "sinkscope[reference]"')
    from validation.reference import random_network

    sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 24, "vocab_size": 61}
    depth = {"num_hidden_layers": 3, "intermediate_size": 29, "max_position_embeddings": 61}
    model = load_model(random_network(tmp_path, 3, "llama", **sizes, **depth))
    asked: list[str] = []
    monkeypatch.setattr("oracle.loading.load_model", lambda name: asked.append(name) or model)
    parts = bench.run_bench(no_model, TINY, ("language-model",))
    assert asked == ["smollm2-135m"]
    assert [part.ok for part in parts if isinstance(part, Check)] == [True, True]
    for length in (5, 11):
        rows = tables(parts)[f"language model {length}"].records()
        assert [row["contender"] for row in rows] == ["oracle", "torch, eager", "oracle, rows alone"]
        assert all(0 < row["ms"] and row["error"] < 1e-5 for row in rows)
        assert rows[1]["times"] > 0
    wrong = replace(model, config=replace(model.config, norm_epsilon=0.5))
    monkeypatch.setattr("oracle.loading.load_model", lambda name: replace(model, config=wrong.config))
    rows = tables(bench.run_bench(no_model, TINY, ("language-model",)))["language model 5"].records()
    assert rows[1]["verdict"] == "disagrees"


def test_a_language_model_that_cannot_be_had_is_said_not_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Model:
        raise Unavailable(f"{name} could not be fetched: no network.")

    monkeypatch.setattr("oracle.loading.load_model", absent)
    parts = bench.run_bench(no_model, TINY, ("language-model",))
    (note,) = (part for part in parts if isinstance(part, Note) and part.key == "not_run")
    assert note.text == "NOT RUN: smollm2-135m could not be fetched: no network."
    assert not tables(parts)


def test_goals_are_counted_and_those_missed_are_named() -> None:
    columns = tuple(Column(key, key) for key in ("contender", "goal", "verdict"))
    case = Table("rows", "Rows", columns, (("a", ">= 1", "met"), ("b", ">= 2", "missed"), ("c", "", "")))
    figure = Table("growth", "G", (Column("what", "w"), *columns[1:]), (("time", "<= 1", "not run"),))
    (note,) = run.goal_note([case, Note("x", "y"), figure])
    assert isinstance(note, Note)
    assert note.text == "Goals: 1 met; 1 missed: rows against b; 1 not run: time."
    assert run.goal_note([figure]) == []


def test_sections_are_read_in_their_order() -> None:
    assert bench.read_sections(None) == SECTIONS
    assert bench.read_sections(None, quick=True) == tuple(name for name in SECTIONS if name != "compile")
    assert bench.read_sections("compile", quick=True) == ("compile",)
    assert bench.read_sections("memory, rows") == ("rows", "memory")
    with pytest.raises(InputError, match="--only: expected some of rows,streaming,"):
        bench.read_sections("rows,all")


def test_the_machine_is_stamped() -> None:
    stamp = machine()
    assert stamp["cpus"] >= 1
    assert stamp["numpy"] == np.__version__
    assert stamp["processor"]
    assert stamp["numba_threads"] >= 1
    assert len(stamp["load_average"]) in (0, 3)
    assert "blas" in stamp["blas"].lower()


def test_a_busy_machine_is_said() -> None:
    assert bench.busy([0.9, 9, 9], [3.0, 9, 9], 2) == ""
    assert bench.busy([], [], 2) == ""
    assert "load 1.1 before, 2.0 after, on 2 CPUs" in bench.busy([1.1, 0, 0], [2.0, 0, 0], 2)
    assert "busy" in bench.busy([0.0], [3.1], 2)


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
