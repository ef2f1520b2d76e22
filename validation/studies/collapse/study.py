"""The collapse study: checkpoints of one training run at fixed texts, and what their entropy fell through.

After a statement of Papamichalis and Ruane (arXiv 2608.14712): that entropy collapse in training is mostly
the sink growing. A share of the drop always comes out, so the same is asked of keys that are no sink.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import ModuleType
from typing import Any

from oracle._checks import InputError, reject
from oracle.loading import load_model
from oracle.model import Model
from validation.choices import parse_layers
from validation.engines import load_engine
from validation.progress import Progress, silent
from validation.report.document import Note
from validation.studies.collapse.measured import Measured, Setting, measure_checkpoint
from validation.studies.collapse.series import (
    Checkpoint,
    architecture_hash,
    check_same_kind,
    is_missing,
    order,
)
from validation.studies.collapse.store import Store, default_place
from validation.table import MIN_CONTENT_KEYS
from validation.weights import weights_hash

__all__ = ["Series", "Visit", "collapse"]

Loader = Callable[[str], Model]

_NAMED = 3  # of the checkpoints that cannot be loaded, in an error


@dataclass(frozen=True, eq=False)
class Visit:
    """One checkpoint that was measured, with the hashes of its file and of its weights.

    `same_as` is the step of the first checkpoint with these very weights, None where it is that one itself.
    """

    checkpoint: Checkpoint
    file_sha256: str | None
    weights: str
    measured: Measured
    same_as: int | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """The measured checkpoints by rising step.

    `excluded` are those that could not be loaded, with what was said; `sorted` tells that they were given in
    another order, and `from_file` how many had been measured before; `file_notes` is what is said of that
    file. `model` is one of them, for its sizes.
    """

    visits: tuple[Visit, ...]
    excluded: tuple[tuple[Checkpoint, str], ...]
    sorted: bool
    from_file: int
    setting: Setting
    model: Model
    file_notes: tuple[Note, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of the measured checkpoints."""
        return tuple(visit.checkpoint.step for visit in self.visits)


def collapse(
    places: Sequence[str],
    texts: Sequence[str],
    *,
    steps: Sequence[int] | None = None,
    sink: Any = "special",
    layers: str | Sequence[int] | None = None,
    min_content_keys: int = MIN_CONTENT_KEYS,
    truncate: bool = False,
    engine: str = "fastpath",
    results: str | None = None,
    load: Loader | None = None,
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> Series:
    """Measure the checkpoints at `places`, one loaded at a time, at the same texts and rows.

    `steps` are read from the names unless they are given (see `series.order`). `results` names the file that
    keeps what was measured; by default one in the user's cache. `sink`, `layers` and the rest are as in
    `measure`; `load` takes a place and returns its model. A checkpoint that cannot be loaded is left out and
    named. Raises InputError for checkpoints of different runs, and where fewer than two are left.
    """
    checkpoints, was_sorted = order(places, steps)
    measures = load_engine(engine, on_compile)
    visits: list[Visit] = []
    excluded: list[tuple[Checkpoint, str]] = []
    first: tuple[Model, str] | None = None
    store, setting, from_file = None, Setting((), sink, min_content_keys, truncate), 0
    steps_of: dict[str, int] = {}
    for number, checkpoint in enumerate(checkpoints):
        progress(f"step {checkpoint.step:,}", number, len(checkpoints))
        try:
            model = _load(checkpoint, load or load_model)
        except InputError as error:
            excluded.append((checkpoint, str(error)))
            continue
        if first is None or store is None:
            setting = Setting(parse_layers(layers, model.config.n_layers), sink, min_content_keys, truncate)
            first = model, checkpoint.name
            key = _key(model, texts, setting, measures)
            store = Store(results if results is not None else default_place(key), key)
        else:
            check_same_kind(first[0], model, first[1], checkpoint.name)
        weights = weights_hash(model)
        measured = store.get(weights)
        if measured is None:
            measured = _measure(model, checkpoint, texts, setting, measures)
            store.put(weights, measured)
        elif weights not in steps_of:
            from_file += 1
        same_as = steps_of.setdefault(weights, checkpoint.step)
        visits.append(
            Visit(
                checkpoint,
                model.sha256,
                weights,
                measured,
                same_as if same_as != checkpoint.step else None,
            )
        )
    progress("checkpoints", len(checkpoints), len(checkpoints))
    if len(visits) < 2 or first is None or store is None:
        reject(
            "DIR",
            expected="at least two checkpoints that can be loaded",
            found=f"{len(visits)} of {len(checkpoints)}, without {_named(excluded)}",
            todo="Mend or replace those, or name others of the run.",
        )
    return Series(tuple(visits), tuple(excluded), was_sorted, from_file, setting, first[0], store.notes())


def _load(checkpoint: Checkpoint, load: Loader) -> Model:
    """The model of a checkpoint; InputError, without the folders above it, where there is none."""
    if is_missing(checkpoint.place):
        reject(
            repr(checkpoint.place),
            expected="a directory or file of a checkpoint, or a hub id org/name@revision",
            found="no such directory",
            todo="Mend the path, or leave it out.",
        )
    try:
        return load(checkpoint.place)
    except InputError as error:
        raise InputError(_without_folder(str(error), checkpoint)) from None


def _named(excluded: Sequence[tuple[Checkpoint, str]]) -> str:
    """The first checkpoints that were left out, each with what was said of it inside brackets."""
    said = [f"{checkpoint.name} ({error.rstrip('.')})" for checkpoint, error in excluded[:_NAMED]]
    more = len(excluded) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")


def _without_folder(said: str, checkpoint: Checkpoint) -> str:
    """An error about a directory, by the directory's own name."""
    return said.replace(f"{PurePath(checkpoint.place).parent}{os.sep}", "")


def _measure(
    model: Model, checkpoint: Checkpoint, texts: Sequence[str], setting: Setting, measures: ModuleType
) -> Measured:
    try:
        return measure_checkpoint(model, texts, setting, measures=measures)
    except InputError as error:
        raise InputError(f"{checkpoint.name}: {error}") from None


def _key(model: Model, texts: Sequence[str], setting: Setting, measures: ModuleType) -> str:
    """A hash of all that a measurement depends on beside the weights."""
    said = f"{architecture_hash(model)}\n{setting!r}\n{measures.__name__}\n"
    digest = hashlib.sha256(said.encode())
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
