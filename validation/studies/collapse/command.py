"""What `sinkscope collapse` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from oracle._checks import reject
from validation.audit.drawing import Subject
from validation.audit.figure_files import check_figures
from validation.audit.passages import load_passages
from validation.command_parts import Texts, here, progress_lines
from validation.progress import Progress
from validation.provenance import describe_model, describe_texts
from validation.report.document import Document, Note
from validation.report.files import note_written
from validation.report.live import announce_compiling
from validation.studies.collapse.demo import demo
from validation.studies.collapse.embedded import SEEDS, WIDTHS, Embedded, plan
from validation.studies.collapse.figure import collapse_chart
from validation.studies.collapse.store import check_results
from validation.studies.collapse.study import Series, collapse
from validation.studies.collapse.tables import report

__all__ = ["Wanted", "bundled_passages", "collapse_checkpoints", "collapse_demo", "plan_demo", "read_steps"]


class Wanted(NamedTuple):
    """Figures to draw beside the report: into which folder, and in which format."""

    figures: str | None = None
    format: str = "png"

    def check(self) -> None:
        """Refuse what could not be written, before any work."""
        if self.figures is not None:
            check_figures(self.figures, self.format)


def bundled_passages() -> Texts:
    """The texts of a study that is given none."""
    return Texts("the bundled passages", load_passages())


def read_steps(steps: str | None) -> list[int] | None:
    """Training steps as they are written on the command line: "0,128,1024"."""
    return None if steps is None else _numbers("--steps", steps, least=0)


def plan_demo(widths: str | None, seeds: str | None) -> tuple[Embedded, ...]:
    """The series of --demo. Widths are even and the contrast belongs to the whole of it only."""
    chosen = WIDTHS if widths is None else _numbers("--widths", widths, least=2)
    if any(width % 2 for width in chosen):
        reject("--widths", expected="even numbers", found=repr(widths), todo="Rotary positions turn pairs.")
    drawn = SEEDS if seeds is None else _numbers("--seeds", seeds, least=0)
    return plan(chosen, drawn, contrast=widths is None)


def collapse_checkpoints(
    places: Sequence[str],
    texts: Texts,
    *,
    steps: Sequence[int] | None,
    sink: str,
    layers: str | None,
    min_content_keys: int,
    truncate: bool,
    engine: str,
    results: str | None,
    wanted: Wanted,
    progress: Progress,
) -> Document:
    """Split the entropy drop over the checkpoints at `places`."""
    from oracle.loading import load_model

    if results is not None:
        check_results(results)
    series = collapse(
        places,
        texts.texts,
        steps=steps,
        sink=sink,
        layers=layers,
        min_content_keys=min_content_keys,
        truncate=truncate,
        engine=engine,
        results=results,
        load=lambda place: load_model(place, progress=progress_lines(progress)),
        on_compile=announce_compiling,
        progress=progress,
    )
    about = {
        "checkpoints": len(series.visits),
        "steps": list(series.steps),
        "model_sizes": describe_model(series.model)["model_sizes"],
        **describe_texts(*texts[:2]),
        "T": list(series.visits[0].measured.lengths),
        "truncate": truncate,
        **_stated(sink, layers, min_content_keys, engine),
        **here(),
    }
    notes = _draw(wanted, {"collapse": series}, f"steps {series.steps[0]:,} to {series.steps[-1]:,}")
    return Document("collapse", about, (*texts.notes, *report(series), *notes))


def collapse_demo(
    planned: Sequence[Embedded],
    *,
    out: str | None,
    engine: str,
    results: str | None,
    wanted: Wanted,
    progress: Progress,
) -> Document:
    """Train the embedded series, unless they stand there already, and split the entropy drop of each."""
    if results is not None:
        check_results(results)
    shown, parts = demo(
        planned,
        folder=None if out is None else Path(out).expanduser(),
        engine=engine,
        results=results,
        on_compile=announce_compiling,
        progress=progress,
    )
    about = {
        "series": len(shown),
        "steps": max((one.embedded.recipe.steps for one in shown), default=0),
        "training_threads": 1,
        "texts": "held out, drawn or cut with each series",
        "T": sorted({length for one in shown for length in one.series.visits[0].measured.lengths}),
        **_stated("special", None, shown[0].series.setting.min_content_keys if shown else 0, engine),
        **here(),
    }
    notes = _draw(wanted, {one.embedded.name: one.series for one in shown})
    return Document("collapse", about, (*parts, *notes))


def _stated(sink: str, layers: str | None, min_content_keys: int, engine: str) -> dict[str, Any]:
    """The choices that every figure of the study depends on."""
    return {
        "sink": sink,
        "convention": "keep",
        "queries": "content",
        "min_content_keys": min_content_keys,
        "layers": layers or "all",
        "engine": engine,
    }


def _draw(wanted: Wanted, series: dict[str, Series], title: str | None = None) -> list[Note]:
    """Write a figure for each of the series, by its name, and say so; `title` stands in it instead."""
    if wanted.figures is None:
        return []
    folder, names = Path(wanted.figures), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, one in series.items():
            first = one.visits[0].measured
            subject = Subject(title or name, len(first.lengths), _sink_words(one))
            names.append(f"{name}.{wanted.format}")
            (folder / names[-1]).write_bytes(collapse_chart(one, subject, format=wanted.format))
            note_written(folder / names[-1])
    except OSError as error:
        said = error.strerror or str(error)
        reject(
            "--figures",
            expected="a folder for figures",
            found=f"{folder.name!r} ({said})",
            todo="Name another.",
        )
    return [Note("figures", f"Figures in {PurePath(wanted.figures).name}: {', '.join(names)}.")]


def _sink_words(series: Series) -> str:
    return series.setting.sink if isinstance(series.setting.sink, str) else "given positions"


def _numbers(option: str, text: str, *, least: int) -> list[int]:
    """Whole numbers with commas between them, none below `least` and none twice."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < least or len(set(numbers)) < len(numbers):
        reject(
            option,
            expected=f"different numbers from {least} on, like 16,64",
            found=repr(text),
            todo="Write some, with commas between them.",
        )
    return numbers
