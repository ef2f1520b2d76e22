"""What `sinkscope audit` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import PurePath
from typing import Any, NamedTuple

from validation.audit.auditing import Audit, audit, audit_arrays
from validation.audit.figure_files import check_figures, draw_figures
from validation.audit.passages import load_passages
from validation.audit.saving import check_save, save_distances
from validation.command_parts import Texts, describe_rows, document, here, load, read_rows
from validation.progress import Progress
from validation.report.as_json import as_data
from validation.report.document import Document, Note, Part
from validation.report.live import announce_compiling

__all__ = ["Wanted", "audit_file", "audit_texts", "bundled_passages"]

_TRIED = 3  # texts whose scores the invariances are tried on; each takes a third of a second


class Wanted(NamedTuple):
    """Files to write beside the report: the distances as .npz, and figures of a format into a folder."""

    save: str | None = None
    figures: str | None = None
    format: str = "png"

    def check(self, inputs: Iterable[str | PathLike[str]]) -> None:
        """Refuse what could not be written, before any work; `inputs` are never replaced."""
        if self.save is not None:
            check_save(self.save, inputs)
        if self.figures is not None:
            check_figures(self.figures, self.format)


def bundled_passages() -> Texts:
    """The texts of an audit that is given none."""
    return Texts("the bundled passages", load_passages())


def audit_texts(
    model_name: str,
    texts: Texts,
    *,
    sink: str,
    layers: str | None,
    min_content_keys: int,
    cluster: str | None,
    truncate: bool,
    invariances: Callable[..., tuple[Part, ...]] | None = None,
    engine: str,
    verify: int | None,
    verify_seed: int | None,
    seed: int,
    wanted: Wanted,
    progress: Progress,
) -> Document:
    """Audit a model on texts; `wanted` names the files to write, `invariances` makes its section."""
    model = load(model_name, progress)
    found = audit(
        model,
        texts.texts,
        sink=sink,
        layers=layers,
        min_content_keys=min_content_keys,
        cluster=cluster,
        truncate=truncate,
        engine=engine,
        verify=verify,
        verify_seed=verify_seed,
        seed=seed,
        on_compile=announce_compiling,
        progress=progress,
    )
    stated = _stated(sink, layers, "from the scores", engine, seed)
    parts = found.parts
    if invariances is not None:
        some = texts.texts[:_TRIED]
        parts = (
            *parts,
            Note("section", "What leaves a distance as it is"),
            *invariances(model, some, progress),
        )
    made = document("audit", model, texts, parts, truncate=truncate, **stated)
    return _finish(made, found, wanted, model.name)


def audit_file(
    path: str,
    *,
    sink: str,
    layers: str | None,
    layout: str | None,
    zeros: str,
    min_content_keys: int,
    cluster: str | None,
    engine: str,
    verify: int | None,
    verify_seed: int | None,
    seed: int,
    wanted: Wanted,
    progress: Progress,
) -> Document:
    """Audit attention rows that the caller has; no model and no other library is loaded."""
    arrays = read_rows(path, sink, layout)
    found = audit_arrays(
        arrays,
        sink=sink,
        layers=layers,
        zeros=zeros,
        min_content_keys=min_content_keys,
        cluster=cluster,
        engine=engine,
        verify=verify,
        verify_seed=verify_seed,
        seed=seed,
        subject=PurePath(path).name,
        on_compile=announce_compiling,
        progress=progress,
    )
    stated = _stated(sink, layers, zeros, engine, seed)
    T = [part.values for part in found.parts if isinstance(part, Note) and part.key == "T"]
    about = {**describe_rows(path, arrays), "T": list(T[0]), **stated, **here()}
    return _finish(Document("audit", about, found.parts), found, wanted, PurePath(path).name)


def _stated(sink: str, layers: str | None, zeros: str, engine: str, seed: int) -> dict[str, Any]:
    """The choices that every figure of an audit depends on."""
    return {
        "sink": sink,
        "convention": "keep against drop",
        "queries": "content",
        "layers": layers or "all",
        "zeros": zeros,
        "engine": engine,
        "seed": seed,
    }


def _finish(made: Document, found: Audit, wanted: Wanted, subject: str) -> Document:
    """`made` with the files written that were asked for, and a note on each."""
    notes = []
    if wanted.save is not None:
        about: Mapping[str, Any] = as_data(made)["provenance"]
        save_distances(found.distances, wanted.save, {**about, "rows": found.context.words})
        notes.append(Note("saved", f"The distances between heads are in {PurePath(wanted.save).name}."))
    if wanted.figures is not None:
        drawn = draw_figures(found, wanted.figures, subject, wanted.format)
        names = ", ".join(path.name for path in drawn)
        notes.append(Note("figures", f"Figures in {PurePath(wanted.figures).name}: {names}."))
    return Document(made.command, made.provenance, (*made.parts, *notes))
