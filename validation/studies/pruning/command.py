"""What `sinkscope prune` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Sequence

from validation.command_parts import Texts, document, load
from validation.progress import Interrupted, Progress
from validation.report.document import Document
from validation.report.live import announce_compiling
from validation.studies.pruning.passages import load_passages
from validation.studies.pruning.study import run

__all__ = ["prune"]


def prune(
    model_name: str, *, budgets: Sequence[float], draws: int, seed: int, out: str | None, progress: Progress
) -> Document:
    """The pruning study on a model, with where it comes from.

    Stopped from the keyboard after some forward passes were kept, it raises Interrupted, which says how many.
    """
    model = load(model_name, progress)
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
    texts = Texts("the bundled prose, cut to T tokens", (passages.statistics, *passages.evaluation))
    return document(
        "prune",
        model,
        texts,
        parts,
        sink="first",
        queries="content",
        weighting="attention, value_norm",
        budgets=list(budgets),
        draws=draws,
        seed=seed,
    )
