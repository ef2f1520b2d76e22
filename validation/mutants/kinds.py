"""What a mutant and a trial are, and how one is put to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import Any, cast

from oracle import Unavailable
from validation.mutants.subjects import Subjects
from validation.mutants.watched import Watched
from validation.properties import Finding, Implementation

__all__ = ["Mutant", "Outcome", "Trial", "Verdict", "instead", "patched", "put_to"]


class Verdict(StrEnum):
    """What became of a mutant; see `put_to`."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    BLIND = "BLIND"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Trial:
    """One check, able to judge any implementation on fixed subjects."""

    name: str
    run: Callable[[Implementation, Subjects], Finding]


@dataclass(frozen=True)
class Mutant:
    """A deliberately wrong implementation, and the name of the one trial that must notice."""

    name: str
    family: str  # "measure", "distance" or "forward"
    trial: str
    apply: Callable[[Implementation], Implementation]


@dataclass(frozen=True)
class Outcome:
    """What a mutant's trial said of the true implementation and of the mutant; None where it was not run."""

    mutant: Mutant
    verdict: Verdict
    true: Finding | None = None
    found: Finding | None = None
    why: str = ""
    lengths: tuple[int, ...] = ()  # T of the rows that the trial was run on, where it was on rows


def put_to(trial: Trial, mutant: Mutant, subjects: Subjects) -> Outcome:
    """Run one trial on the true implementation and on the mutant.

    "killed": the trial passes the true one and not the mutant. "SURVIVED": it passes both. "BLIND": it
    does not pass the true one, so that it proves nothing. "not run": what it needs is not here. A mutant
    that raises is a defect of the mutant, never a kill, and its exception is let through.
    """
    watched = Watched(subjects)
    try:
        true = trial.run(Implementation(), cast(Subjects, watched))
        found = trial.run(mutant.apply(Implementation()), subjects)
    except Unavailable as error:
        return Outcome(mutant, Verdict.NOT_RUN, why=str(error))
    verdict = Verdict.BLIND if not true.ok else Verdict.SURVIVED if found.ok else Verdict.KILLED
    return Outcome(mutant, verdict, true, found, lengths=watched.lengths)


def instead(name: str, wrong: Callable[..., Any]) -> Callable[[Implementation], Implementation]:
    """Make the mutation that puts `wrong` in the place of one callable.

    `wrong` is given the true callable and then the arguments of the call.
    """

    def apply(true: Implementation) -> Implementation:
        changes: dict[str, Any] = {name: partial(wrong, getattr(true, name))}
        return replace(true, **changes)

    return apply


@contextmanager
def patched(module: str, **replacements: Any) -> Iterator[None]:
    """Replace functions of a module, always put back; a name that is not there is an AttributeError."""
    target = import_module(module)
    before = {name: getattr(target, name) for name in replacements}
    try:
        for name, replacement in replacements.items():
            setattr(target, name, replacement)
        yield
    finally:
        for name, original in before.items():
            setattr(target, name, original)
