"""Put every mutant to the one trial that must kill it, and say what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracle import Model, Unavailable
from validation.headline import length_words
from validation.mutants.controls import positive_controls
from validation.mutants.kinds import Mutant, Outcome, Verdict, put_to
from validation.mutants.of_causal import CAUSAL_MUTANTS
from validation.mutants.of_composition import COMPOSITION_MUTANTS
from validation.mutants.of_distance import DISTANCE_MUTANTS
from validation.mutants.of_forward import FORWARD_MUTANTS
from validation.mutants.of_measure import MEASURE_MUTANTS
from validation.mutants.of_norms import NORM_MUTANTS
from validation.mutants.of_silencing import SILENCING_MUTANTS
from validation.mutants.of_verdict import VERDICT_MUTANTS
from validation.mutants.subjects import Subjects
from validation.mutants.trials import TRIALS
from validation.progress import Progress, silent
from validation.report.document import Check, Column, Note, Part, Table

__all__ = ["MUTANTS", "report_outcomes", "run_mutants"]

MUTANTS: tuple[Mutant, ...] = (
    *MEASURE_MUTANTS,
    *NORM_MUTANTS,
    *COMPOSITION_MUTANTS,
    *DISTANCE_MUTANTS,
    *VERDICT_MUTANTS,
    *FORWARD_MUTANTS,
    *CAUSAL_MUTANTS,
    *SILENCING_MUTANTS,
)

_COLUMNS = (
    Column("mutant", "mutant"),
    Column("check", "killed by"),
    Column("bound", "bound", ".0e"),
    Column("true_error", "true", ".0e"),
    Column("mutant_error", "wrong", ".0e"),
    Column("verdict", "verdict"),
)
_T = Column("T", "T")  # of the forward pass the trials bring models and texts of their own
_T_NOTE = "T: visible keys of the rows that the check is run on; empty where it is run on none."
_FAMILIES = {"measure": "the measure", "distance": "distances and verdicts", "forward": "the forward pass"}
_NOTES = {
    "measure": (
        "Errors of the true code and of the wrong one by that one check; inf: NaN where a number belongs, or "
        "the other way round.",
        _T_NOTE,
    ),
    "distance": (
        "Laws of compositions, of distances under both conventions, and of verdicts; each also in loops.",
        _T_NOTE,
    ),
    "forward": (
        "A dropped key bias takes one constant from all scores of a row: scores show it, rows cannot.",
    ),
}


def run_mutants(
    model: Model, progress: Progress = silent, texts: Sequence[str | Sequence[int]] | None = None
) -> tuple[Part, ...]:
    """Break the measure and the forward pass on purpose; a mutant that its check does not notice fails.

    Returns a table and a check for each family of mutants, then the positive controls with their numbers on
    `model` and `texts` (the bundled sentences by default). Forward mutants are judged against PyTorch on
    a model drawn at random; where that is missing they are "not run", a note says so, and no check
    claims them. A mutant passes its trial ("SURVIVED") or the true code fails it ("BLIND"): the check fails.
    """
    subjects = Subjects(model, texts)
    outcomes = []
    for number, mutant in enumerate(MUTANTS):
        progress(f"mutant: {mutant.name}", number, len(MUTANTS))
        outcomes.append(put_to(TRIALS[mutant.trial], mutant, subjects))
    progress("mutants", len(MUTANTS), len(MUTANTS))
    try:
        controls = positive_controls(subjects.traces)
    except Unavailable as error:
        controls = (Note("not_run", f"NOT RUN: the positive controls. {error}"),)
    return (*report_outcomes(outcomes), *controls)


def report_outcomes(outcomes: Sequence[Outcome]) -> tuple[Part, ...]:
    """Per family the table of outcomes, the check that all are killed, and a note on those not run."""
    parts: list[Part] = []
    for family, words in _FAMILIES.items():
        own = [outcome for outcome in outcomes if outcome.mutant.family == family]
        if own:
            title, rows = f"Mutants of {words}", tuple(map(_cells, own))
            columns: tuple[Column, ...] = _COLUMNS
            if family != "forward":
                columns = (*_COLUMNS, _T)
                rows = tuple((*row, _words(one)) for row, one in zip(rows, own, strict=True))
            parts.append(Table(f"mutants_{family}", title, columns, rows, _NOTES[family]))
            parts += _verdict(family, words, own)
    return tuple(parts)


def _verdict(family: str, words: str, outcomes: Sequence[Outcome]) -> list[Part]:
    run = [outcome for outcome in outcomes if outcome.verdict != Verdict.NOT_RUN]
    alive = [outcome for outcome in run if outcome.verdict != Verdict.KILLED]
    missing = len(outcomes) - len(run)
    parts: list[Part] = []
    if alive or not missing:
        found = f"{len(run) - len(alive)} of {len(outcomes)} killed"
        for verdict, what in ((Verdict.SURVIVED, "survived"), (Verdict.BLIND, "check fails the true code")):
            names = [outcome.mutant.name for outcome in alive if outcome.verdict == verdict]
            found += f"; {what}: {', '.join(names)}" if names else ""
        expected = f"every mutant of {words} is killed by its own check"
        parts.append(Check(f"mutants_{family}_killed", expected, found, not alive))
    if missing:
        why = " ".join(dict.fromkeys(o.why for o in outcomes if o.verdict == Verdict.NOT_RUN))
        text = (
            f"NOT RUN: {missing} of {len(outcomes)} mutants of {words}, so nothing is claimed of them. {why}"
        )
        parts.append(Note("not_run", text))
    return parts


def _cells(outcome: Outcome) -> tuple[Any, ...]:
    bound = outcome.true.bound if outcome.true else None
    errors = [finding.error if finding else None for finding in (outcome.true, outcome.found)]
    return (outcome.mutant.name, outcome.mutant.trial, bound, *errors, outcome.verdict.value)


def _words(outcome: Outcome) -> str:
    return length_words(outcome.lengths).removeprefix("T ") if outcome.lengths else ""
