"""The pruning study: does it matter which heads are cut, or only in which layers they stand?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oracle import Model, forward
from oracle._checks import reject
from oracle.beginnings import beginning_notes
from oracle.inputs import read_tokens
from oracle.language_model import check_language_model
from validation.engines import load_engine
from validation.progress import Progress, silent
from validation.report.document import Note, Part
from validation.studies.pruning.choosing import head_counts
from validation.studies.pruning.criteria import KEPT, head_statistics
from validation.studies.pruning.evaluating import evaluate, plan
from validation.studies.pruning.ledger import Ledger, default_path, identity
from validation.studies.pruning.passages import load_passages
from validation.studies.pruning.results import Results
from validation.studies.pruning.rule import rule
from validation.studies.pruning.sizes import BUDGETS, DRAWS, TOKENS
from validation.studies.pruning.tables import tables, text_table
from validation.studies.pruning.verdicts import verdicts

__all__ = ["run"]


def run(
    model: Model,
    *,
    budgets: Sequence[float] = BUDGETS,
    draws: int = DRAWS,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    engine: str = "fastpath",
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> tuple[Part, ...]:
    """Measure heads on one text, cut them in every way of the study, and take perplexities of two others.

    Every forward pass is kept in `out` (by default a file in the user's cache) as soon as it is done: a run
    that was stopped goes on from there and ends with the same parts, and a note where it had been killed in
    the middle of a line. Raises InputError for a model without a
    language-model head, for texts too short for it, for an `out` that is no such file, and as `rule` does.
    """
    stated = rule()
    check_language_model(model)
    if draws < 1 or seed < 0:
        reject(
            "--draws and --seed",
            expected="at least one draw, and a seed that is not negative",
            found=f"{draws} and {seed}",
            todo=f"Leave them out for {DRAWS} and 0.",
        )
    config, passages = model.config, load_passages()
    counts = head_counts(budgets, config.n_layers * config.n_heads)
    ids, notes = zip(
        *(_tokens(model, text) for text in (passages.statistics, *passages.evaluation)), strict=True
    )
    about = identity(model, list(ids), seed)
    path = default_path(model, about) if out is None else out
    ledger = Ledger(path, about, config.n_layers * config.n_heads)
    layer = load_engine(engine, on_compile)
    progress("the whole model on three texts", 0, 0)
    measured = forward(model, ids[0], sink="first", keep=KEPT)
    statistics, check = head_statistics(model, measured, layer, seed, progress)
    traces = [forward(model, text, sink="first", keep=("hidden_states",)) for text in ids[1:]]
    trials = plan(statistics, counts, len(traces), draws, seed)
    wanted = [(text, ()) for text in range(len(traces))]
    evaluate(model, traces, [*wanted, *((trial.text, trial.heads) for trial in trials)], ledger, progress)
    results = Results(
        (config.n_layers, config.n_heads), counts, statistics, tuple(trials), ledger.found, len(traces)
    )
    return (
        Note("T", f"T {len(ids[0])} of the text for the heads, {len(ids[1])} and {len(ids[2])} of the others "
             f"(the first {TOKENS} tokens, or as many as the model takes).",
             tuple(len(text) for text in ids)),
        Note("sink", "The sink is position 0, as in every causal model; rows count from 8 content keys on."),
        *dict.fromkeys(Note("beginning", note) for found in notes for note in found),
        *ledger.notes(),
        *(Note("rule", sentence) for sentence in stated),
        check,
        text_table([measured, *traces], results),
        *tables(results),
        *verdicts(results),
    )  # fmt: skip


def _tokens(model: Model, text: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The first tokens of a text, as many as the study takes, and what is said of how they begin."""
    read = read_tokens(model, text, truncate=False)
    ids = read.ids[: min(TOKENS, model.config.max_positions)]
    return ids, (*read.notes, *beginning_notes(model, read, np.ones(len(read.ids), bool)))
