"""What each command does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oracle._checks import Unavailable, reject
from validation.command_parts import (
    DEFAULT_MODEL,
    Texts,
    choose_texts,
    describe_rows,
    document,
    exit_code,
    here,
    inputs,
    load,
    progress_lines,
    read_rows,
    refuse_alone,
)
from validation.progress import Progress
from validation.provenance import versions
from validation.report.document import Column, Document, Note, Part, Table
from validation.sink_report import as_read
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
    "remove",
    "validate",
]

Section = Callable[[], Sequence[Part]]


def validate(
    model_name: str,
    texts: Texts,
    progress: Progress,
    *,
    layers: str | None = None,
    punctuation: str = "neither",
    truncate: bool = False,
) -> Document:
    """Forward checks against PyTorch, mutants, the study and the rollout; what cannot be run is said.

    `layers` and `punctuation` are the study's alone; `truncate` cuts the texts of the forward checks too.
    """
    from validation.forward_checks import validate_forward
    from validation.mutants import run_mutants
    from validation.studies.norm_weighting import run
    from validation.studies.rollout import run as run_rollout

    model = load(model_name, progress)
    _refuse_without_content(model, texts.texts, truncate)
    sections: dict[str, Section] = {
        "The forward pass against PyTorch": lambda: validate_forward(
            model, texts.texts, progress, truncate=truncate
        ),
        "Mutants": lambda: run_mutants(model, progress),
        "The norm-weighting study": lambda: run(
            model, texts.texts, progress, layers=layers, truncate=truncate, punctuation=punctuation
        ),
        "Attention rollout": lambda: run_rollout(model, texts.texts, progress, truncate),
    }
    parts: list[Part] = []
    for name, section in sections.items():
        parts.append(Note("section", name))
        try:
            parts += section()
        except Unavailable as error:
            parts.append(Note("not_run", f"NOT RUN: {error}"))
    stated = {**_stated("special", "all", layers), "punctuation": punctuation}
    return document("validate", model, texts, parts, truncate=truncate, **stated)


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
    model = load(model_name, progress)
    return document(
        "diff", model, texts, compare(model, first, second, texts.texts, progress), first=first, second=second
    )


def diff_layers(first: str, second: str, progress: Progress) -> Document:
    """The measures of two layers, compared over the cases of the registry."""
    from validation.diffing_measures import diff_measures
    from validation.report.live import announce_compiling

    parts = diff_measures(first, second, progress, on_compile=announce_compiling)
    return Document("diff", {"first": first, "second": second, **here()}, parts)


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

    model = load(model_name, progress)
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
    asked = as_read(sink, model.config.causal)
    stated = {**_stated(asked, weightings, layers), "engine": engine}
    return document("measure", model, texts, parts, truncate=truncate, **stated)


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
    from validation.choices import parse_weightings
    from validation.measuring import measure_arrays
    from validation.report.live import announce_compiling

    arrays = read_rows(path, sink, layout)
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
        **describe_rows(path, arrays),
        **_stated(sink, ", ".join(parse_weightings(weightings, ("attention", *arrays.norms))), layers),
        "engine": engine,
        **here(),
    }
    return Document("measure", about, tuple(parts))


def bench(
    model_name: str,
    lengths: Sequence[int] | None,
    progress: Progress,
    *,
    quick: bool = False,
    only: str | None = None,
) -> Document:
    """Time of the fast path, and of the oracle's forward pass, over that of what people use instead."""
    from validation import bench as benchmark

    sections = benchmark.read_sections(only, quick)
    sizes = benchmark.QUICK if quick else benchmark.WHOLE
    if lengths is not None:
        sizes = sizes._replace(forward=tuple(lengths))
    for option, given in (("--tokens", lengths is not None), ("--model", model_name != DEFAULT_MODEL)):
        if given and "forward" not in sections:
            refuse_alone(option, "the section forward")
    before = benchmark.load_average()
    named = {"model": model_name} if "forward" in sections else {}
    with benchmark.equal_threads():
        parts = benchmark.run_bench(lambda: load(model_name, progress), sizes, sections, progress)
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
    return Document("bench", about, (*parts, benchmark.summary(parts, about)))


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
    return Document("models", here(), tuple(tables))


def fetch(name: str, progress: Progress) -> Document:
    """Put a model into the cache, if it is not there."""
    from oracle.loading import fetch_model

    path = fetch_model(name, progress=progress_lines(progress))
    return Document("models fetch", here(), (Note("fetched", f"{name} is in the cache: {path}"),))


def remove(name: str) -> Document:
    """Take a model out of the cache."""
    from oracle.loading import remove_model

    found = "removed from the cache" if remove_model(name) else "not in the cache: nothing to remove"
    return Document("models remove", here(), (Note("removed", f"{name}: {found}."),))


def _refuse_without_content(model: Model, texts: Sequence[str], truncate: bool) -> None:
    """Raise InputError, before any work, where no text leaves the study a row, or the first is not finite."""
    from oracle.inputs import read_tokens
    from validation.gathering import run_text

    for text in texts:
        read = read_tokens(model, text, truncate)
        if not read.empty and not set(read.ids.tolist()) <= set(model.config.sink_ids):
            run_text(model, read, "none", keep=("attention", "value_norm"))
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
