"""The embedded series: what is trained, where it stands, and whether it stands there already."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from oracle._checks import reject
from validation.cache import results_folder
from validation.progress import Progress, silent
from validation.provenance import describe_texts, file_sha256, versions
from validation.studies.collapse.demo_texts import Backcopy, Source, read_source, tokenizer_files
from validation.training import Recipe, doubling_steps, train

__all__ = ["SEEDS", "STEPS", "WIDTHS", "Embedded", "default_folder", "make", "plan"]

WIDTHS = (16, 64, 128)
SEEDS = (0, 1, 2)

STEPS = 2048  # of a bigram series

_CONTEXT, _TEXTS = 32, 64
_SOURCE: dict[str, Any] = {"width": 64, "layers": 2, "heads": 2, "context": 128, "batch": 16}
_SOURCE_STEPS, _SOURCE_TEXTS = 1024, 24
_MANIFEST, _TEXT_FILE = "series.json", "texts.txt"


class Embedded(NamedTuple):
    """A series of checkpoints to be: its name, "backcopy" or "source", and the recipe."""

    name: str
    kind: str
    recipe: Recipe

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps with a checkpoint."""
        return doubling_steps(self.recipe.steps)


def plan(
    widths: Sequence[int] = WIDTHS, seeds: Sequence[int] = SEEDS, steps: int = STEPS, contrast: bool = True
) -> tuple[Embedded, ...]:
    """The series in the order in which they are trained; the contrast, where it is wanted, comes last."""
    backcopy = Backcopy.make()
    vocabulary = len(backcopy.characters) + 1
    found = [
        Embedded(
            f"backcopy-width{width}-seed{seed}",
            "backcopy",
            Recipe(width, 1, 1, _CONTEXT, vocabulary, 0, steps, seed),
        )
        for width in widths
        for seed in seeds
    ]
    if contrast:
        characters = ord("~") - ord(" ") + 1
        recipe = Recipe(**_SOURCE, vocabulary=characters, bos=None, steps=min(steps, _SOURCE_STEPS), seed=0)
        found.append(Embedded("source-width64-seed0", "source", recipe))
    return tuple(found)


def default_folder() -> Path:
    """The place of the series in the user's cache; raises Unavailable where there is no cache."""
    return results_folder("series")


def _texts_of(series: Embedded, data: Backcopy | Source) -> tuple[str, ...]:
    """The texts that a series is measured at, none of which it was trained on."""
    return data.held_out(_TEXTS if series.kind == "backcopy" else _SOURCE_TEXTS, series.recipe.context)


def _data_of(series: Embedded) -> Backcopy | Source:
    """What a series is trained on; Unavailable where this Python has no source text."""
    return Backcopy.make() if series.kind == "backcopy" else read_source()


def make(series: Embedded, folder: Path, progress: Progress = silent) -> tuple[list[Path], tuple[str, ...]]:
    """The checkpoints of a series and its texts, trained now unless they stand in `folder` already.

    A series is put there as a whole: directories step0, step1 and so on, texts.txt with one text a line, and
    series.json with the recipe and the SHA-256 of every checkpoint's weights, by which a whole one is known.
    A run that was stopped begins the series that it was at again. Raises InputError for a folder that cannot
    be written to, Unavailable without the reference extra where something has to be trained.
    """
    data = _data_of(series)
    texts = _texts_of(series, data)
    wanted = {"recipe": {**series.recipe._asdict(), "kind": series.kind}, **_trained_on(data)}
    place = folder / series.name
    if not _is_whole(place, wanted):
        if place.exists() and not (place / _MANIFEST).is_file():
            reject(
                "--out",
                expected="a folder for series",
                found=f"{series.name}, no series",
                todo="Name another.",
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            workshop = Path(tempfile.mkdtemp(prefix=".making-", dir=folder))
        except OSError as error:
            _refuse(folder, error)
        try:
            made = workshop / series.name
            _train(series, data, made, progress)
            (made / _TEXT_FILE).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
            hashes = {f"step{step}": _weights(made / f"step{step}") for step in series.steps}
            manifest = {**wanted, "checkpoints": hashes, "versions": versions()}
            (made / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            if place.exists():  # of another recipe, or damaged
                place.rename(workshop / "old")
            made.rename(place)
        except OSError as error:
            _refuse(folder, error)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    return [place / f"step{step}" for step in series.steps], texts


def _train(series: Embedded, data: Backcopy | Source, made: Path, progress: Progress) -> None:
    recipe = series.recipe
    files = tokenizer_files(data.characters, recipe.bos is not None)
    train(
        recipe,
        lambda rng: data.draw(rng, recipe.batch, recipe.context),
        made,
        files,
        at=series.steps,
        progress=progress,
    )


def _trained_on(data: Backcopy | Source) -> dict[str, str]:
    """The hash of what fixes the texts: another Python has another source."""
    text = data.trained_on if isinstance(data, Source) else repr(data.chances.tobytes())
    return {"data_sha256": describe_texts("", [data.characters, text])["texts_sha256"]}


def _is_whole(place: Path, wanted: dict[str, Any]) -> bool:
    try:
        manifest = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
        hashes = manifest["checkpoints"]
        return all(manifest[key] == value for key, value in wanted.items()) and all(
            _weights(place / name) == found for name, found in hashes.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _weights(checkpoint: Path) -> str:
    return file_sha256(checkpoint / "model.safetensors")


def _refuse(folder: Path, error: OSError) -> NoReturn:
    reject(
        "--out",
        expected="a folder that can be written to",
        found=f"{folder.name!r} ({error.strerror or error})",
        todo="Name another one, or make room.",
    )
