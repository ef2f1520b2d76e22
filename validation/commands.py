"""What each command does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from oracle._checks import InputError, Unavailable, reject
from validation.progress import Progress, silent
from validation.provenance import describe_model, describe_texts, file_sha256, machine, versions
from validation.report.document import Column, Document, Note, Part, Table
from validation.wording import counted

if TYPE_CHECKING:
    from oracle.model import Model

__all__ = [
    "DEFAULT_MODEL",
    "Texts",
    "bench",
    "choose_texts",
    "diff",
    "diff_layers",
    "exit_code",
    "fetch",
    "inputs",
    "list_models",
    "measure",
    "measure_file",
    "read_lengths",
    "refuse_alone",
    "refuse_before",
    "refuse_both",
    "remove",
    "validate",
]

DEFAULT_MODEL = "minilm-l6"

Section = Callable[[], Sequence[Part]]


class Texts(NamedTuple):
    """The texts of a command and where they come from, in words."""

    source: str
    texts: Sequence[str]
    notes: tuple[Note, ...] = ()


def choose_texts(text: Sequence[str] | None, file: str | None, encoding: str = "utf-8") -> Texts:
    """The texts that the caller wrote, those of a file (one a line), or the bundled sentences."""
    from validation.texts import SENTENCES, read_texts

    if text and file is not None:
        refuse_both("--text", "--file")
    if text:
        return Texts("the command line", list(text))
    if file is None:
        return Texts("the bundled sentences", SENTENCES)
    lines = read_texts(file, encoding)
    blank = counted(lines.blank_lines, "blank line")
    skipped = (Note("blank_lines", f"Skipped: {blank} of the file."),)
    return Texts(PurePath(file).name, lines, skipped if lines.blank_lines else ())


def validate(
    model_name: str,
    texts: Texts,
    progress: Progress,
    *,
    layers: str | None = None,
    punctuation: str = "neither",
    truncate: bool = False,
) -> Document:
    """Forward checks against PyTorch, mutants and the study; what cannot be run is said.

    `layers` and `punctuation` are the study's alone; `truncate` cuts the texts of the forward checks too.
    """
    from validation.forward_checks import validate_forward
    from validation.mutants import run_mutants
    from validation.studies.norm_weighting import run

    model = _load(model_name, progress)
    _refuse_without_content(model, texts.texts, truncate)
    sections: dict[str, Section] = {
        "The forward pass against PyTorch": lambda: validate_forward(
            model, texts.texts, progress, truncate=truncate
        ),
        "Mutants": lambda: run_mutants(model, progress),
        "The norm-weighting study": lambda: run(
            model, texts.texts, progress, layers=layers, truncate=truncate, punctuation=punctuation
        ),
    }
    parts: list[Part] = []
    for name, section in sections.items():
        parts.append(Note("section", name))
        try:
            parts += section()
        except Unavailable as error:
            parts.append(Note("not_run", f"NOT RUN: {error}"))
    stated = {**_stated("special", "all", layers), "punctuation": punctuation}
    return _document("validate", model, texts, parts, truncate=truncate, **stated)


def diff(model_name: str, first: str, second: str, texts: Texts, progress: Progress) -> Document:
    """Two implementations of one forward pass, compared stage by stage."""
    from validation.diffing import diff as compare
    from validation.stages import IMPLEMENTATIONS

    for name in (first, second):
        if name not in IMPLEMENTATIONS:
            reject(
                "implementation",
                expected=f"one of {', '.join(IMPLEMENTATIONS)}, or oracle beside fastpath",
                found=repr(name),
                todo="Name two of these.",
            )
    model = _load(model_name, progress)
    return _document(
        "diff", model, texts, compare(model, first, second, texts.texts, progress), first=first, second=second
    )


def diff_layers(first: str, second: str, progress: Progress) -> Document:
    """The measures of two layers, compared over the cases of the registry."""
    from validation.diffing_measures import diff_measures
    from validation.report.live import announce_compiling

    parts = diff_measures(first, second, progress, on_compile=announce_compiling)
    return Document("diff", {"first": first, "second": second, **_here()}, parts)


def measure(
    model_name: str,
    texts: Texts,
    *,
    sink: str,
    weightings: str,
    layers: str | None,
    truncate: bool,
    engine: str = "fastpath",
    verify: int | None = None,
    verify_seed: int | None = None,
    progress: Progress,
) -> Document:
    """Sink shares of texts under a model."""
    from validation.measuring import measure as report
    from validation.report.live import announce_compiling

    model = _load(model_name, progress)
    parts = report(
        model,
        texts.texts,
        sink=sink,
        weightings=weightings,
        layers=layers,
        truncate=truncate,
        engine=engine,
        verify=verify,
        verify_seed=verify_seed,
        on_compile=announce_compiling,
        progress=progress,
    )
    stated = {**_stated(sink, weightings, layers), "engine": engine}
    return _document("measure", model, texts, parts, truncate=truncate, **stated)


def measure_file(
    path: str,
    *,
    sink: str,
    weightings: str,
    layers: str | None,
    layout: str | None,
    engine: str = "fastpath",
    verify: int | None = None,
    verify_seed: int | None = None,
    progress: Progress,
) -> Document:
    """Sink shares of attention rows that the caller has; no model and no other library is loaded."""
    from validation.arrays_file import read_arrays
    from validation.choices import parse_weightings
    from validation.measuring import measure_arrays
    from validation.report.live import announce_compiling

    try:
        arrays = read_arrays(path, sink=sink, layout=layout)
    except InputError as error:  # as somebody says it who has options and a file, not arguments
        said = str(error).replace("layout=", "--layout ").replace("visible=", "the array `visible`")
        raise InputError(" ".join(said.replace(" .", ".").split())) from None
    parts = measure_arrays(
        arrays,
        sink=sink,
        weightings=weightings,
        layers=layers,
        layout=layout,
        engine=engine,
        verify=verify,
        verify_seed=verify_seed,
        on_compile=announce_compiling,
        progress=progress,
    )
    about = {
        "attention": PurePath(path).name,
        "attention_sha256": file_sha256(path),
        "layout": arrays.layout,
        **_stated(sink, ", ".join(parse_weightings(weightings, ("attention", *arrays.norms))), layers),
        "engine": engine,
        **_here(),
    }
    return Document("measure", about, tuple(parts))


def bench(
    model_name: str,
    lengths: Sequence[int] | None,
    progress: Progress,
    *,
    quick: bool = False,
    only: str | None = None,
    readme: str | None = None,
) -> Document:
    """Time of the fast path, and of the oracle's forward pass, over that of what people use instead.

    A README gets its table from a whole run only.
    """
    if readme is not None and (quick or only is not None):
        refuse_both("--readme", "--quick" if quick else "--only")
    from validation import bench as benchmark

    sections = benchmark.read_sections(only, quick)
    sizes = benchmark.QUICK if quick else benchmark.WHOLE
    if lengths is not None:
        sizes = sizes._replace(forward=tuple(lengths))
    if readme is not None:
        benchmark.check_marks(readme)
    for option, given in (("--tokens", lengths is not None), ("--model", model_name != DEFAULT_MODEL)):
        if given and "forward" not in sections:
            refuse_alone(option, "the section forward")
    before = benchmark.load_average()
    named = {"model": model_name} if "forward" in sections else {}
    with benchmark.equal_threads():
        if readme is not None and (differ := benchmark.unequal(benchmark.thread_counts())):
            raise InputError(f"--readme: {differ}")
        parts = benchmark.run_bench(lambda: _load(model_name, progress), sizes, sections, progress)
        stamp = benchmark.machine()
    about = {
        **named,
        "sections": ", ".join(sections),
        "sizes": "quick" if quick else "whole",
        "machine": {
            "processor": stamp["processor"],
            "cpus": stamp["cpus"],
            "threads": {name: stamp[f"{name}_threads"] for name in ("blas", "numba", "torch")},
            "blas": stamp["blas"],
            "load_before": before,
            "load_after": stamp["load_average"],
        },
        "versions": versions(),
    }
    warning = benchmark.busy(before, stamp["load_average"], stamp["cpus"] or 1)
    parts += [Note("busy", warning)] if warning else []
    document = Document("bench", about, tuple(parts))
    if readme is not None:
        benchmark.write_readme(document, readme)
    return document


def list_models() -> Document:
    """The models that can be had by name, and what stands in the cache."""
    from oracle.loading import bundled_models, dequantised_copies

    columns = (
        Column("name", "name"),
        Column("state", "state"),
        Column("megabytes", "MB to fetch", ".0f"),
        Column("package", "package"),
        Column("about", "what it is"),
    )
    rows = tuple(
        (model.name, model.state, model.wheel_size / 1e6, f"{model.package} {model.version}", model.about)
        for model in bundled_models()
    )
    tables = [Table("models", "Models by name", columns, rows)]
    copies = tuple((copy.name, copy.state, copy.size / 1e6, copy.file) for copy in dequantised_copies())
    if copies:
        title = "Dequantised copies of GGUF files in the cache, made at their first use"
        size, made_from = Column("megabytes", "MB on disk", ".0f"), Column("file", "made from")
        tables.append(Table("dequantised", title, (*columns[:2], size, made_from), copies))
    return Document("models", _here(), tuple(tables))


def fetch(name: str, progress: Progress) -> Document:
    """Put a model into the cache, if it is not there."""
    from oracle.loading import fetch_model

    path = fetch_model(name, progress=_lines(progress))
    return Document("models fetch", _here(), (Note("fetched", f"{name} is in the cache: {path}"),))


def remove(name: str) -> Document:
    """Take a model out of the cache."""
    from oracle.loading import remove_model

    found = "removed from the cache" if remove_model(name) else "not in the cache: nothing to remove"
    return Document("models remove", _here(), (Note("removed", f"{name}: {found}."),))


def inputs(model_name: str, *paths: str | None) -> list[str | PurePath]:
    """The files and the model directory that a command reads, which its output must not replace."""
    from oracle.loading import bundled_models

    try:
        models = {model.name: model.path for model in bundled_models()}
    except Unavailable:  # said where the model is needed
        models = {}
    return [models.get(model_name, os.path.expanduser(model_name)), *filter(None, paths)]


def read_lengths(tokens: str) -> list[int]:
    """Text lengths as they are written on the command line: "128,512"."""
    try:
        lengths = [int(part) for part in tokens.split(",")]
    except ValueError:
        lengths = []
    if not lengths or min(lengths) < 1:
        reject("--tokens", expected="positive numbers like 128,512", found=repr(tokens), todo="Write some.")
    return lengths


def refuse_both(first: str, second: str) -> NoReturn:
    """Raise InputError about two options that exclude each other."""
    reject(f"{first} and {second}", expected="one of the two", found="both", todo="Leave one out.")


def refuse_alone(option: str, needed: str) -> NoReturn:
    """Raise InputError about an option that means something only beside another one."""
    reject(option, expected=f"{needed} beside it", found="none", todo=f"Add {needed}, or leave {option} out.")


def refuse_before(option: str, command: str) -> NoReturn:
    """Raise InputError about an option of a command that stands before the command's name."""
    reject(
        option, expected=f"it after `{command}`", found="it before", todo=f"Write: {command} ... {option}."
    )


def exit_code(document: Document) -> int:
    """0: every check held; 1: one failed; 3: none failed, but something could not be run."""
    if document.failed:
        return 1
    return 3 if document.not_run else 0


def _document(
    command: str,
    model: Model,
    texts: Texts,
    parts: Iterable[Part],
    *,
    truncate: bool | None = None,
    **stated: Any,
) -> Document:
    parts = tuple(parts)
    about = {
        **describe_model(model),
        **describe_texts(*texts[:2]),
        "T": _lengths(parts),
    }
    if truncate is not None:
        about["truncate"] = truncate
    return Document(command, {**about, **stated, **_here()}, (*texts.notes, *parts))


def _refuse_without_content(model: Model, texts: Sequence[str], truncate: bool) -> None:
    """Raise InputError, before any work, where no text leaves the study a row."""
    from oracle.inputs import read_tokens

    for text in texts:
        read = read_tokens(model, text, truncate)
        if not read.empty and not set(read.ids.tolist()) <= set(model.config.sink_ids):
            return
    reject(
        "texts",
        expected="a text with a token beside the special ones",
        found=f"none in {counted(len(texts), 'text')}",
        todo="Give a text with words.",
    )


def _stated(sink: str, weightings: str, layers: str | None) -> dict[str, Any]:
    """The choices that every sink share depends on. Shares are of whole rows: the sink is kept."""
    return {"sink": sink, "convention": "keep", "weighting": weightings, "layers": layers or "all"}


def _lengths(parts: Iterable[Part]) -> list[int]:
    """T of every text that was measured, as the parts themselves say."""
    return next((list(part.values) for part in parts if isinstance(part, Note) and part.key == "T"), [])


def _here() -> dict[str, Any]:
    return {"versions": versions(), "machine": machine()}


def _load(name: str, progress: Progress) -> Model:
    from oracle.loading import load_model

    return load_model(name, progress=_lines(progress))


def _lines(progress: Progress) -> Callable[[str], None] | None:
    """What tells lines while a model is fetched; None (one line on standard error) without a terminal."""
    return None if progress is silent else lambda line: progress(line, 0, 0)
