"""What `sinkscope prune` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Sequence

from oracle.loading import load_model
from validation.progress import Interrupted, Progress, silent
from validation.provenance import describe_model, describe_texts, machine, versions
from validation.report.document import Document, Note
from validation.report.live import announce_compiling
from validation.studies.pruning.passages import load_passages
from validation.studies.pruning.study import run

__all__ = ["prune"]


def prune(
    model_name: str, *, budgets: Sequence[float], draws: int, seed: int, out: str | None, progress: Progress
) -> Document:
    """The pruning study on a model, with where it comes from."""
    model = load_model(model_name, progress=None if progress is silent else lambda line: progress(line, 0, 0))
    try:
        parts = run(
            model,
            budgets=budgets,
            draws=draws,
            seed=seed,
            out=out,
            on_compile=announce_compiling,
            progress=progress,
        )
    except KeyboardInterrupt as stop:
        if stop.args:
            raise Interrupted(str(stop)) from None
        raise
    passages = load_passages()
    texts = (passages.statistics, *passages.evaluation)
    T = [part.values for part in parts if isinstance(part, Note) and part.key == "T"]
    about = {
        **describe_model(model),
        **describe_texts("the bundled prose, cut to T tokens", texts),
        "T": list(T[0]),
        "sink": "first",
        "queries": "content",
        "weighting": "attention, value_norm",
        "budgets": list(budgets),
        "draws": draws,
        "seed": seed,
        "versions": versions(),
        "machine": machine(),
    }
    return Document("prune", about, parts)
