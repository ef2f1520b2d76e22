from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from text_models import small_model

import oracle
import oracle.attention
from oracle import Model, Trace, Unavailable
from validation import reference
from validation.mutants import (
    MUTANTS,
    Mutant,
    Outcome,
    Subjects,
    Trial,
    put_to,
    random_model,
    report_outcomes,
    run_mutants,
)
from validation.mutants.causal_trials import judged
from validation.mutants.controls import positive_controls
from validation.mutants.kinds import Verdict, instead, patched
from validation.mutants.subjects import token_ids
from validation.mutants.trials import TRIALS
from validation.properties import Finding, Implementation
from validation.report.document import Check, Document, Note, Part, Table

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


@pytest.fixture(scope="module")
def subjects() -> Subjects:
    return Subjects(random_model(3))


def table(parts: tuple[Part, ...], key: str) -> list[dict[str, object]]:
    return next(part for part in parts if isinstance(part, Table) and part.key == key).records()


def check(parts: tuple[Part, ...], key: str) -> Check:
    return next(part for part in parts if isinstance(part, Check) and part.key == key)


@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS)
def test_true_implementation_passes_by_a_wide_margin(trial: Trial, subjects: Subjects) -> None:
    finding = trial.run(Implementation(), subjects)
    assert finding.ok, finding
    assert finding.error <= finding.bound / 4


@pytest.mark.parametrize("mutant", MUTANTS, ids=BY_NAME)
def test_mutant_is_killed_by_its_trial_alone(mutant: Mutant, subjects: Subjects) -> None:
    outcome = put_to(TRIALS[mutant.trial], mutant, subjects)
    assert outcome.verdict == Verdict.KILLED, outcome
    assert outcome.found is not None
    assert outcome.found.error >= 100 * outcome.found.bound


def test_there_are_enough_mutants_with_names_of_their_own() -> None:
    assert len(BY_NAME) == len(MUTANTS)
    for family in ("measure", "distance", "forward"):
        assert sum(mutant.family == family for mutant in MUTANTS) >= 20


def test_every_trial_has_a_mutant_to_kill() -> None:
    assert {mutant.trial for mutant in MUTANTS} == set(TRIALS)


def test_random_models_have_sharp_rows(subjects: Subjects) -> None:
    judged = subjects.judged
    small = oracle.forward(subjects.small, subjects.ids).attention
    second = judged.stages["attention"][..., judged.mask, :]
    for rows in (small, second):
        assert (rows.max(axis=-1).mean(axis=(1, 2)) > 0.5).all()


# The harness itself can fail: survivors, blind trials and missing libraries are never kills.


def no_change(implementation: Implementation) -> Implementation:
    return implementation


@pytest.mark.parametrize("trial", ["shares by loops", "PyTorch: rows"])
def test_a_mutant_that_changes_nothing_survives_and_fails(trial: str, subjects: Subjects) -> None:
    family = "forward" if "PyTorch" in trial else "measure"
    killed = put_to(TRIALS["‖v‖ by loops"], replace(BY_NAME["norm of [CLS] 0"], family=family), subjects)
    survivor = put_to(TRIALS[trial], Mutant("nothing changed", family, trial, no_change), subjects)
    assert survivor.verdict == Verdict.SURVIVED
    parts = report_outcomes([killed, survivor])
    found = check(parts, f"mutants_{family}_killed")
    assert not found.ok
    assert found.found == "1 of 2 killed; survived: nothing changed"
    assert Document("validate", parts=parts).failed == (found,)


def test_a_trial_that_fails_the_true_code_kills_nothing(subjects: Subjects) -> None:
    blind = Trial("always fails", lambda implementation, given: Finding("no", 1.0, 0.0))
    outcome = put_to(blind, BY_NAME["norms squared"], subjects)
    assert outcome.verdict == Verdict.BLIND
    found = check(report_outcomes([outcome]), "mutants_measure_killed")
    assert not found.ok
    assert found.found == "0 of 1 killed; check fails the true code: norms squared"


def test_a_mutant_that_raises_is_no_kill(subjects: Subjects) -> None:
    def crash(true: object, *arguments: object) -> None:
        raise ZeroDivisionError

    mutant = Mutant("crash", "measure", "shares by loops", instead("sink_share", crash))
    with pytest.raises(ZeroDivisionError):
        put_to(TRIALS[mutant.trial], mutant, subjects)


def test_without_pytorch_forward_mutants_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **named: object) -> None:
        raise Unavailable("torch is not here.")

    for name in ("random_bert", "random_network"):
        monkeypatch.setattr(reference, name, missing)
    judged.cache_clear()
    parts = run_mutants(random_model(3))
    rows = table(parts, "mutants_forward")
    unrun = [row for row in rows if row["verdict"] == "not run"]
    assert {row["check"] for row in unrun} == {name for name in TRIALS if name.startswith("PyTorch")}
    assert {row["mutant_error"] for row in unrun} == {None}
    assert {row["verdict"] for row in rows} == {"killed", "not run"}
    note = next(part for part in parts if isinstance(part, Note))
    assert note.key == "not_run"
    assert note.text.startswith(f"NOT RUN: {len(unrun)} of {len(rows)} mutants of the forward pass")
    assert note.text.endswith("torch is not here.")
    assert not any(isinstance(part, Check) and part.key == "mutants_forward_killed" for part in parts)
    assert check(parts, "mutants_measure_killed").ok


def test_a_survivor_fails_even_beside_mutants_not_run() -> None:
    finding = Finding("law", 0.0, 0.0)
    mutant = BY_NAME["mask ignored"]
    outcomes = [
        Outcome(mutant, Verdict.NOT_RUN, why="no torch"),
        Outcome(mutant, Verdict.SURVIVED, finding, finding),
    ]
    parts = report_outcomes(outcomes)
    assert not check(parts, "mutants_forward_killed").ok
    assert any(isinstance(part, Note) and part.key == "not_run" for part in parts)


def test_patched_puts_everything_back() -> None:
    before = oracle.attention.softmax
    with patched("oracle.attention", softmax=None):
        assert oracle.attention.softmax is None
    assert oracle.attention.softmax is before
    with pytest.raises(TypeError), patched("oracle.attention", softmax=None):
        oracle.forward(random_model(0), [1, 5, 2])
    assert oracle.attention.softmax is before
    with pytest.raises(AttributeError), patched("oracle.attention", softmax=None, renamed=None):
        pass
    assert oracle.attention.softmax is before
    assert not hasattr(oracle.attention, "renamed")


def test_a_dropped_key_bias_is_invisible_in_rows(subjects: Subjects) -> None:
    """Why that mutant is put to the scores: for rows it is no mutant at all."""
    wrong = BY_NAME["key bias dropped"].apply(Implementation())
    ids = subjects.ids
    true, mutant = oracle.forward(subjects.small, ids), wrong.forward(subjects.small, ids)
    np.testing.assert_allclose(mutant.attention, true.attention, rtol=0, atol=1e-12)
    assert np.abs(mutant.scores - true.scores).max() > 0.1


# The positive controls.


def traces_of(model: Model) -> list[Trace]:
    return [oracle.forward(model, token_ids(model, count, seed=count)) for count in (7, 13)]


def test_controls_give_the_numbers_of_the_measure() -> None:
    parts = positive_controls(traces_of(random_model(3)))
    rows = {row["weighting"]: row for row in table(parts, "controls")}
    assert list(rows) == [
        "attention",
        "value norm",
        "all norms 1",
        "norm of #1 0",
        "value norm, #1 taken out",
    ]
    assert {row["rows"] for row in rows.values()} == {3 * 5 * (5 + 11)}
    assert rows["all norms 1"]["median"] == rows["attention"]["median"]
    assert rows["all norms 1"]["moved"] == 0
    assert rows["value norm"]["moved"] == 240
    assert rows["norm of #1 0"]["median"] == pytest.approx(
        rows["value norm, #1 taken out"]["median"], abs=1e-14
    )
    assert rows["norm of #1 0"]["median"] < rows["value norm"]["median"]
    assert check(parts, "control_unit_norms").ok
    assert check(parts, "control_first_sink_zero").ok


def with_norm(trace: Trace, norm: np.ndarray) -> Trace:
    return replace(trace, _kept={**trace._kept, "value_norm": norm})


def test_controls_fail_where_norms_are_all_one() -> None:
    traces = [with_norm(t, np.ones_like(t.value_norm)) for t in traces_of(random_model(3))]
    assert not check(positive_controls(traces), "control_unit_norms").ok


def test_controls_fail_where_the_first_norm_is_zero_already() -> None:
    traces = [with_norm(t, t.value_norm * (np.arange(len(t.tokens)) > 0)) for t in traces_of(random_model(3))]
    assert not check(positive_controls(traces), "control_first_sink_zero").ok


def test_controls_need_content() -> None:
    model = random_model(3)
    only_specials = oracle.forward(model, [1, 2])
    with pytest.raises(oracle.InputError, match="a text with content"):
        positive_controls([only_specials])
    rows = table(positive_controls([only_specials, *traces_of(model)]), "controls")
    assert rows[0]["rows"] == 240


def test_a_model_that_names_no_sinks_is_measured_on_its_first_token() -> None:
    model = random_model(3)
    nameless = replace(model, config=replace(model.config, sink_ids=()))
    traces = Subjects(nameless).traces
    assert [trace.sink_mask.nonzero()[0].tolist() for trace in traces] == [[0]] * 3


def test_run_on_the_bundled_model(minilm: Model) -> None:
    calls: list[tuple[int, int]] = []
    parts = run_mutants(minilm, lambda what, done, total: calls.append((done, total)))
    assert Document("validate", parts=parts).failed == ()
    assert [done for done, _ in calls] == list(range(len(MUTANTS) + 1))
    assert {total for _, total in calls} == {len(MUTANTS)}
    rows = {row["weighting"]: row for row in table(parts, "controls")}
    assert (
        rows["attention"]["median"] > 0.3 > rows["value norm"]["median"] > rows["norm of [CLS] 0"]["median"]
    )


def test_texts_without_a_sink_are_no_fault_of_the_code() -> None:
    model = random_model(3)
    ids = [[5, 9, 7, 11, 4], [8, 6, 3, 12]]
    parts = run_mutants(model, texts=ids)
    assert Document("validate", parts=parts).failed == ()
    said = [part.text for part in parts if isinstance(part, Note) and part.key == "not_run"]
    assert any("positive controls. There is no sink in these texts" in text for text in said)
    assert any("mutants of the measure" in text and "no sink in these texts" in text for text in said)


def test_bundled_sentences_that_do_not_fit_are_named_and_not_run() -> None:
    small = small_model(max_positions=5)
    parts = run_mutants(small)
    assert Document("validate", parts=parts).failed == ()
    said = [part.text for part in parts if isinstance(part, Note) and part.key == "not_run"]
    assert any("The bundled sentences do not suit small: text: expected at most 5 tokens" in t for t in said)
    with pytest.raises(oracle.InputError, match="at most 5 tokens"):
        run_mutants(small, texts=["a doctor saw the nurse ."])
    wordless = replace(small, tokenizer=None)
    assert {len(trace.tokens) for trace in Subjects(wordless).traces} == {5}
