"""Checkpoints in order: which step each of them is, what makes them one series, and which are the same."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple, NoReturn

from oracle._checks import reject
from oracle.loading._bundled import BUNDLED
from oracle.loading._hub import hub_id
from oracle.model import Model

__all__ = [
    "Checkpoint",
    "architecture_hash",
    "check_same_kind",
    "is_missing",
    "order",
    "step_of",
]

_NAMED = re.compile(
    r"(?:^|[^a-z])(?:global[_-]?step|checkpoint|ckpt|step|iteration|iter)s?[_-]?(\d+)(?![0-9a-z])"
)
_NUMBER = re.compile(r"(?<![0-9a-z])\d+(?![0-9a-z])")
_TODO = "Name directories like step128 or checkpoint-128, or give every step with --steps 0,1,2."


class Checkpoint(NamedTuple):
    """A place to load a model from and the training step that it is of."""

    place: str
    step: int

    @property
    def name(self) -> str:
        """The last part of its place, or its revision: enough to know it by, and no path."""
        return _last_part(self.place)


def step_of(place: str) -> int | None:
    """The training step in a name: the number after "step", "checkpoint" or the like, or else the only one.

    Of a hub id "org/name@revision" the revision is read, of a path its last part. None where the name does
    not say, or says two.
    """
    name = _last_part(place).lower()
    found = _NAMED.findall(name) or _NUMBER.findall(name)
    steps = {int(digits) for digits in found}
    return steps.pop() if len(steps) == 1 else None


def order(places: Sequence[str], steps: Sequence[int] | None = None) -> tuple[tuple[Checkpoint, ...], bool]:
    """The checkpoints by rising step, and whether they were given otherwise.

    Without `steps` they are read from the names and the checkpoints sorted by them, since a shell lists
    step1024 before step2. `steps` that are given must rise as they stand. Raises InputError for fewer than
    two checkpoints, a step that cannot be read, steps that are too few, negative or out of order, and for two
    checkpoints of one step.
    """
    if len(places) < 2:
        reject(
            "DIR",
            expected="at least two checkpoints of one training run",
            found=f"{len(places)}",
            todo="Name them in order; `sinkscope measure` reports on a single model.",
        )
    if steps is None:
        read = [step_of(place) for place in places]
        unknown = [_last_part(place) for place, step in zip(places, read, strict=True) if step is None]
        if unknown:
            reject("DIR", expected="a name that tells its step", found=repr(unknown[0]), todo=_TODO)
        given = [Checkpoint(place, step or 0) for place, step in zip(places, read, strict=True)]
    else:
        if len(steps) != len(places) or min(steps) < 0:
            found = f"{len(steps)} for {len(places)} checkpoints" if min(steps) >= 0 else str(min(steps))
            reject(
                "--steps", expected="a step, 0 or more, for each checkpoint", found=found, todo="Give all."
            )
        given = [Checkpoint(*pair) for pair in zip(places, steps, strict=True)]
    by_step = sorted(given, key=lambda checkpoint: checkpoint.step)
    for first, second in pairwise(by_step):
        if first.step == second.step:
            found = f"step {first.step} twice, {first.name!r} and {second.name!r}"
            reject("DIR", expected="one checkpoint for each step", found=found, todo="Leave one out.")
    if steps is not None and by_step != given:
        reject(
            "--steps", expected="steps that rise", found=",".join(map(str, steps)), todo="Put them in order."
        )
    return tuple(by_step), by_step != given


def is_missing(place: str) -> bool:
    """Whether a place can only be a directory or file that is not there.

    A single word may be the name of a bundled model, a path of two parts an id on the hub: without a revision
    it is taken for none where its first part is a folder here.
    """
    path, model = Path(os.path.expanduser(place)), hub_id(place)
    if os.path.lexists(path) or place in {bundled.name for bundled in BUNDLED}:
        return False
    return model is None or (model.revision is None and path.parent.is_dir())


def check_same_kind(first: Model, other: Model, first_name: str, other_name: str) -> None:
    """Raise InputError where two checkpoints differ in architecture or tokenizer: no row would compare."""
    for field in fields(first.config):
        values = [getattr(model.config, field.name) for model in (first, other)]
        if values[0] != values[1]:
            _not_one_run(f"{field.name} {values[0]} in {first_name} and {values[1]} in {other_name}")
    if _tokenizer_text(first) != _tokenizer_text(other):
        _not_one_run(f"another tokenizer in {other_name} than in {first_name}")


def architecture_hash(model: Model) -> str:
    """SHA-256 of what checkpoints of one run share: configuration, tokenizer, dtype."""
    said = f"{model.config!r}\n{model.dtype}\n{_tokenizer_text(model)}"
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _tokenizer_text(model: Model) -> str:
    return "none" if model.tokenizer is None else str(model.tokenizer.to_str())


def _last_part(place: str) -> str:
    path, at, revision = place.rpartition("@")
    return revision if at and path.count("/") == 1 else PurePath(place).name or place


def _not_one_run(found: str) -> NoReturn:
    reject(
        "DIR",
        expected="checkpoints of one training run, which share architecture and tokenizer",
        found=found,
        todo="Leave out those of another run.",
    )
