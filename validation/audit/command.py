"""What `sinkscope audit` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import PurePath
from typing import Any, NamedTuple, TypedDict, Unpack

from oracle._checks import InputError, Unavailable, reject
from oracle.inputs import read_tokens
from oracle.model import Model, ModelConfig
from validation.audit.auditing import Audit, audit, audit_arrays
from validation.audit.figure_files import check_figures, draw_figures
from validation.audit.joint import ModelMap, joint_parts, map_model
from validation.audit.passages import load_passages
from validation.audit.places import check_windows
from validation.audit.saving import check_save, save_distances
from validation.choices import parse_layers
from validation.command_parts import (
    Texts,
    describe_rows,
    document,
    here,
    load,
    measured_lengths,
    read_rows,
)
from validation.progress import Progress, silent
from validation.provenance import describe_model, describe_texts
from validation.report.as_json import as_data
from validation.report.document import Document, Note, Part
from validation.report.files import same_target
from validation.report.live import announce_compiling
from validation.sink_report import as_read

__all__ = ["Choices", "Wanted", "audit_file", "audit_models", "audit_texts", "bundled_passages"]

_TRIED = 3  # texts whose scores the invariances are tried on; each takes a third of a second


class Wanted(NamedTuple):
    """Files to write beside the report: the distances as .npz, and figures of a format into a folder."""

    save: str | None = None
    figures: str | None = None
    format: str = "png"

    def check(self, inputs: Iterable[str | PathLike[str]], json: str | None = None) -> None:
        """Refuse what could not be written, before any work; `inputs` are never replaced, nor is `json`."""
        if self.save is not None:
            check_save(self.save, inputs)
            if json not in (None, "-") and same_target(self.save, str(json)):
                reject(
                    "--save and --json", expected="two files", found="the same", todo="Name another for one."
                )
        if self.figures is not None:
            check_figures(self.figures, self.format)


class Choices(TypedDict):
    """What is asked of an audit of texts, as `audit` takes it; `invariances` makes their section."""

    sink: str
    layers: str | None
    min_content_keys: int
    cluster: str | None
    truncate: bool
    invariances: Callable[..., tuple[Part, ...]] | None
    engine: str
    verify: int | None
    verify_seed: int | None
    seed: int
    progress: Progress


def bundled_passages() -> Texts:
    """The texts of an audit that is given none."""
    return Texts("the bundled passages", load_passages())


def audit_texts(model_name: str, texts: Texts, *, wanted: Wanted, **choices: Unpack[Choices]) -> Document:
    """Audit a model on texts; `wanted` names the files to write."""
    model, found, study = _audited(model_name, texts, choices)
    made = document(
        "audit",
        model,
        texts,
        (*found.parts, *study),
        truncate=choices["truncate"],
        **_of_texts(choices, as_read(choices["sink"], model.config.causal)),
    )
    return _finish(made, found, wanted, model.name)


def audit_models(names: Sequence[str], texts: Texts, **choices: Unpack[Choices]) -> Document:
    """Audit one model after the other on the same texts, then hold them beside each other.

    What can be refused beforehand is, for all models. Where one fails later, as its memory or a text is
    wanting, the others stand and a note says that it was not run; the first one's error is raised.
    """
    if len(set(names)) < len(names):
        twice = ", ".join(dict.fromkeys(name for name in names if names.count(name) > 1))
        reject("--model", expected="every model once", found=f"{twice} twice", todo="Leave one out.")
    called = _called(names, texts, choices)
    audited: list[_OfMany] = []
    lost: list[Note] = []
    for name in names:
        try:
            audited.append(_audit_one(name, called[name], texts, choices))
        except (InputError, Unavailable, MemoryError) as error:
            if not audited:
                raise
            lost.append(Note("not_run", f"NOT RUN: {called[name]}: {str(error) or 'not enough memory'}"))
    about = {
        **{f"model_{place}": one.about for place, one in enumerate(audited, 1)},
        **describe_texts(*texts[:2]),
        "truncate": choices["truncate"],
        **_of_texts(choices, choices["sink"]),
        **here(),
    }
    together = joint_parts([one.map for one in audited]) if len(audited) > 1 else ()
    parts = [part for one in audited for part in one.parts]
    return Document("audit", about, (*texts.notes, *parts, *lost, *together))


class _OfMany(NamedTuple):
    """What stays of one model while the next is audited."""

    map: ModelMap
    about: dict[str, Any]
    parts: tuple[Part, ...]


def _called(names: Sequence[str], texts: Texts, choices: Choices) -> dict[str, str]:
    """What each model is called: its own name, or the given one where two have the same.

    Each is loaded (its weights are mapped, not read) and refused if its layers are not those that are asked,
    or if it is one of the others under another name: from the same directory, or the same weights.
    """
    own: dict[str, str] = {}
    seen: list[tuple[str, ModelConfig, set[Any]]] = []
    for name in names:
        model = load(name, _naming(choices["progress"], name))
        try:
            chosen = parse_layers(choices["layers"], model.config.n_layers)
            check_windows(model, texts.texts, chosen, choices["truncate"])
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        marks = {mark for mark in (model.sha256, model.source and model.source.resolve()) if mark}
        for other, config, others in seen:
            if marks & others and config == model.config:
                found = f"{other} and {name}, which are the same model"
                reject("--model", expected="every model once", found=found, todo="Leave one out.")
        seen.append((name, model.config, marks))
        own[name] = model.name
    times = Counter(own.values())
    return {name: short if times[short] == 1 else name for name, short in own.items()}


def _audit_one(name: str, called: str, texts: Texts, choices: Choices) -> _OfMany:
    """One of several models. In a function of its own, so that no two models are held at a time."""
    telling = _naming(choices["progress"], name)
    model, found, study = _audited(name, texts, {**choices, "progress": telling})
    facts = describe_model(model)
    about = {
        "name": called,
        "sha256": facts["model_sha256"],
        **facts["model_sizes"],
        "sink": as_read(choices["sink"], model.config.causal),
        "T": measured_lengths(found.parts),
    }
    parts = (Note("section", f"Model {called}"), *found.parts, *study)
    return _OfMany(map_model(found, called), about, parts)


def _naming(progress: Progress, name: str) -> Progress:
    """`progress` with the model's name before every step; silence stays silence."""
    if progress is silent:
        return silent

    def tell(what: str, done: int, total: int) -> None:
        progress(f"{name}: {what}", done, total)

    return tell


def _audited(model_name: str, texts: Texts, choices: Choices) -> tuple[Model, Audit, tuple[Part, ...]]:
    """The model, its audit, and the section of its invariances if that is wanted."""
    progress, truncate = choices["progress"], choices["truncate"]
    model = load(model_name, progress)
    study: tuple[Part, ...] = ()
    invariances = choices["invariances"]
    if invariances is not None:  # first, as it takes a second and may find the model or a text wanting
        some = [text for text in texts.texts if not read_tokens(model, text, truncate).empty][:_TRIED]
        study = (
            Note("section", "What leaves a distance as it is"),
            *invariances(model, some, progress, truncate=truncate),
        )
    found = audit(
        model,
        texts.texts,
        sink=choices["sink"],
        layers=choices["layers"],
        min_content_keys=choices["min_content_keys"],
        cluster=choices["cluster"],
        truncate=truncate,
        engine=choices["engine"],
        verify=choices["verify"],
        verify_seed=choices["verify_seed"],
        seed=choices["seed"],
        on_compile=announce_compiling,
        progress=progress,
    )
    return model, found, study


def _of_texts(choices: Choices, sink: str) -> dict[str, Any]:
    """What is stated of an audit of texts; `sink` is as it was read."""
    return _stated(sink, choices["layers"], "from the scores", choices["engine"], choices["seed"])


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
    about = {**describe_rows(path, arrays), "T": measured_lengths(found.parts), **stated, **here()}
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
