"""What `sinkscope audit` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import PurePath
from typing import Any, NamedTuple, TypedDict, Unpack

from oracle._checks import reject
from oracle.inputs import read_tokens
from oracle.model import Model
from validation.audit.auditing import Audit, audit, audit_arrays
from validation.audit.figure_files import check_figures, draw_figures
from validation.audit.joint import ModelMap, joint_parts, map_model
from validation.audit.passages import load_passages
from validation.audit.saving import check_save, save_distances
from validation.command_parts import Texts, describe_rows, document, here, load, read_rows
from validation.progress import Progress, silent
from validation.provenance import describe_texts
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
        **_of_model(choices, model),
    )
    return _finish(made, found, wanted, model.name)


def audit_models(names: Sequence[str], texts: Texts, **choices: Unpack[Choices]) -> Document:
    """Audit one model after the other on the same texts, then hold them beside each other."""
    if len(set(names)) < len(names):
        twice = ", ".join(dict.fromkeys(name for name in names if names.count(name) > 1))
        reject("--model", expected="every model once", found=f"{twice} twice", todo="Leave one out.")
    maps: list[ModelMap] = []
    about: dict[str, Any] = {}
    parts: list[Part] = []
    for name in names:
        telling = _naming(choices["progress"], name)
        model, found, study = _audited(name, texts, {**choices, "progress": telling})
        called = model.name if model.name not in [one.name for one in maps] else name
        made = document("audit", model, texts, (*found.parts, *study), truncate=choices["truncate"])
        facts = made.provenance
        about[f"model_{len(maps) + 1}"] = {
            "name": called,
            "sha256": facts["model_sha256"],
            **facts["model_sizes"],
            "sink": as_read(choices["sink"], model.config.causal),
            "T": facts["T"],
        }
        parts += [Note("section", f"Model {called}"), *made.parts[len(texts.notes) :]]
        maps.append(map_model(found, called))
    about = {
        **about,
        **describe_texts(*texts[:2]),
        "truncate": choices["truncate"],
        **_of_model(choices, model),
        "sink": choices["sink"],
        **here(),
    }
    return Document("audit", about, (*texts.notes, *parts, *joint_parts(maps)))


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


def _of_model(choices: Choices, model: Model) -> dict[str, Any]:
    """What is stated of an audit of texts, with the sink as this model reads it."""
    asked = (
        as_read(choices["sink"], model.config.causal),
        choices["layers"],
        "from the scores",
        choices["engine"],
        choices["seed"],
    )
    return _stated(*asked)


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
