"""What the commands share: their texts and rows, the model, the Document, and calls that are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from oracle._checks import InputError, Unavailable, reject
from validation.progress import Progress, silent
from validation.provenance import describe_model, describe_texts, file_sha256, machine, versions
from validation.report.document import Document, Note, Part
from validation.wording import counted

if TYPE_CHECKING:
    from oracle.model import Model
    from validation.arrays_file import ReadArrays

__all__ = [
    "DEFAULT_MODEL",
    "Texts",
    "choose_texts",
    "describe_rows",
    "document",
    "exit_code",
    "here",
    "inputs",
    "load",
    "measured_lengths",
    "progress_lines",
    "read_lengths",
    "read_rows",
    "refuse_alone",
    "refuse_before",
    "refuse_both",
]

DEFAULT_MODEL = "minilm-l6"
_OPTIONS = (
    ("layout=.", "--layout."),
    ("layout= ", "--layout "),
    ("layout=", "--layout "),
    ("visible=", "the array `visible`"),
)


class Texts(NamedTuple):
    """The texts of a command and where they come from, in words."""

    source: str
    texts: Sequence[str]
    notes: tuple[Note, ...] = ()


def choose_texts(
    text: Sequence[str] | None, file: str | None, encoding: str = "utf-8", bundled: Texts | None = None
) -> Texts:
    """The texts that the caller wrote, those of a file (one a line), or the `bundled` ones: the sentences."""
    from validation.texts import SENTENCES, read_texts

    if text and file is not None:
        refuse_both("--text", "--file")
    if text:
        return Texts("the command line", list(text))
    if file is None:
        return bundled or Texts("the bundled sentences", SENTENCES)
    lines = read_texts(file, encoding)
    blank = counted(lines.blank_lines, "blank line")
    skipped = (Note("blank_lines", f"Skipped: {blank} of the file."),)
    return Texts(PurePath(file).name, lines, skipped if lines.blank_lines else ())


def read_rows(path: str, sink: str, layout: str | None) -> ReadArrays:
    """The arrays of an .npz file; what is wrong is worded for somebody who has options, not arguments."""
    from validation.arrays_file import read_arrays

    if not path:
        reject("--attention", expected="the path of an .npz file", found="''", todo="Name the file.")
    try:
        arrays = read_arrays(path, sink=sink, layout=layout)
    except InputError as error:
        said = str(error).removeprefix(path)  # a name stays as it is
        start = path if len(said) < len(str(error)) else ""
        raise InputError(start + _as_options(said)) from None
    return arrays._replace(warnings=tuple(map(_as_options, arrays.warnings)))


def _as_options(said: str) -> str:
    """A message about arguments as one about options."""
    for argument, option in _OPTIONS:
        said = said.replace(argument, option)
    return said


def inputs(model_name: str, *paths: str | None) -> list[str | PurePath]:
    """The files and the model directory that a command reads, which its output must not replace."""
    from oracle.loading import bundled_models

    try:
        models = {model.name: model.path for model in bundled_models()}
    except Unavailable:  # said where the model is needed
        models = {}
    return [models.get(model_name, os.path.expanduser(model_name)), *filter(None, paths)]


def read_lengths(tokens: str, option: str = "--tokens") -> list[int]:
    """Text lengths as they are written on the command line: "128,512"."""
    try:
        lengths = [int(part) for part in tokens.split(",")]
    except ValueError:
        lengths = []
    if not lengths or min(lengths) < 1:
        reject(option, expected="positive numbers like 128,512", found=repr(tokens), todo="Write some.")
    return lengths


def measured_lengths(parts: Iterable[Part]) -> list[int]:
    """T of every text that was measured, as the parts themselves say."""
    return next((list(part.values) for part in parts if isinstance(part, Note) and part.key == "T"), [])


def load(name: str, progress: Progress) -> Model:
    """The model of that name or directory, fetched with progress shown if it has to be."""
    from oracle.loading import load_model

    return load_model(name, progress=progress_lines(progress))


def describe_rows(path: str, arrays: ReadArrays) -> dict[str, Any]:
    """Where rows come from: the file's name and hash, and how its axes were read."""
    return {
        "attention": PurePath(path).name,
        "attention_sha256": file_sha256(path),
        "layout": arrays.layout,
    }


def document(
    command: str,
    model: Model,
    texts: Texts,
    parts: Iterable[Part],
    *,
    truncate: bool | None = None,
    **stated: Any,
) -> Document:
    """The result of a command on a model and texts, with where it comes from; `stated` are its choices."""
    parts = tuple(parts)
    about = {
        **describe_model(model),
        **describe_texts(*texts[:2]),
        "T": measured_lengths(parts),
    }
    if truncate is not None:
        about["truncate"] = truncate
    return Document(command, {**about, **stated, **here()}, (*texts.notes, *parts))


def here() -> dict[str, Any]:
    """The versions and the machine."""
    return {"versions": versions(), "machine": machine()}


def exit_code(document: Document) -> int:
    """0: every check held; 1: one failed; 3: none failed, but something could not be run."""
    if document.failed:
        return 1
    return 3 if document.not_run else 0


def refuse_alone(option: str, needed: str) -> NoReturn:
    """Raise InputError about an option that means something only beside another one."""
    reject(option, expected=f"{needed} beside it", found="none", todo=f"Add {needed}, or leave {option} out.")


def refuse_before(option: str, command: str) -> NoReturn:
    """Raise InputError about an option of a command that stands before the command's name."""
    reject(
        option, expected=f"it after `{command}`", found="it before", todo=f"Write: {command} ... {option}."
    )


def refuse_both(first: str, second: str) -> NoReturn:
    """Raise InputError about two options that exclude each other."""
    reject(f"{first} and {second}", expected="one of the two", found="both", todo="Leave one out.")


def progress_lines(progress: Progress) -> Callable[[str], None] | None:
    """What tells lines while a model is fetched; None (one line on standard error) without a terminal."""
    return None if progress is silent else lambda line: progress(line, 0, 0)
