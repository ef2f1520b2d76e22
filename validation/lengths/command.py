"""What `sinkscope measure --lengths` does, without a command line around it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from validation.audit.drawing import Subject
from validation.audit.figures import write_figures
from validation.command_parts import Texts, document, load
from validation.lengths.chart import length_chart
from validation.lengths.measuring import measure_lengths
from validation.lengths.passages import long_passages
from validation.lengths.tables import length_parts
from validation.progress import Progress
from validation.report.document import Document, Note, Part
from validation.report.live import announce_compiling
from validation.sink_report import as_read

__all__ = ["lengths_document"]


def lengths_document(
    model_name: str,
    texts: Texts | None,
    lengths: Sequence[int],
    *,
    sink: str,
    weightings: str,
    layers: str | None,
    engine: str,
    figures: str | None,
    figure_format: str,
    progress: Progress,
) -> Document:
    """Sink shares of a model by layer and by length; without texts, of the bundled ones, joined.

    `figures` is a folder for a chart, or None; it was checked before.
    """
    model = load(model_name, progress)
    given = long_passages() if texts is None else texts
    found = measure_lengths(
        model,
        given.texts,
        lengths,
        sink=sink,
        weightings=weightings,
        layers=layers,
        engine=engine,
        on_compile=announce_compiling,
        progress=progress,
    )
    parts: tuple[Part, ...] = (Note("source", f"Texts: {given.source}."), *length_parts(found))
    if figures is not None:
        said = found.sinks.note().text.partition(". ")[0].removeprefix("Sink set ")
        T = f"T {', '.join(map(str, found.tables))}"
        subject = Subject(model.name, len(found.whole), said, f"{T}; content queries, all heads of a layer")
        (path,) = write_figures(
            figures, {"lengths": length_chart(found, subject, format=figure_format)}, figure_format
        )
        parts = (*parts, Note("figures", f"Figures in {PurePath(figures).name}: {path.name}."))
    stated: dict[str, Any] = {
        "sink": as_read(sink, model.config.causal),
        "convention": "keep",
        "weighting": weightings,
        "layers": layers or "all",
        "queries": "content",
        "lengths": list(found.tables),
        "engine": engine,
    }
    return document("measure", model, given, parts, **stated)
