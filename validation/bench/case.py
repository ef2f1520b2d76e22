"""One comparison: several ways to the same numbers. Who disagrees with the oracle is not timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._results import RowMeasures
from validation.bench.goals import MET, MISSED, find_goal, judge
from validation.bench.timing import Timings, in_turns
from validation.compare import compare
from validation.progress import Progress, silent
from validation.registry import Bound
from validation.report.document import Check, Column, Table

__all__ = ["FLOAT32_PEER", "Case", "Contender", "Outcome", "quantities", "run_case", "sound"]

Array = NDArray[Any]

_COLUMNS = (
    Column("contender", "contender"),
    Column("ms", "ms", ".1f"),
    Column("times", "times ours", ".2f"),
    Column("lower", "25%", ".2f"),
    Column("upper", "75%", ".2f"),
    Column("goal", "goal"),
    Column("verdict", ""),
    Column("error", "error", ".0e"),
)
_ACCURACY = (
    Column("case", "case"),
    Column("quantity", "quantity"),
    Column("error", "largest error", ".1e"),
    Column("bound", "bound", ".1e"),
    Column("verdict", ""),
)


_PLURAL = {"share": "shares", "row": "rows", "jsd": "divergences", "flips": "flip rates"}

FLOAT32_PEER = {"share": Bound(1e-4), "r": Bound(0.0, 2e-3), "entropy": Bound(1e-3)}
"""A float32 sum of n terms in sequence is off by at most n eps, 2.4e-4 at 2048 and half of it in pairs; an r
has four such sums and an entropy a logarithm of about eight. Enough to see that a peer computes the same."""


@dataclass(frozen=True)
class Contender:
    """One way to the numbers. `missing` says why it cannot be run; without `bounds` it has none to compare.

    A `slow` one takes part in the first rounds only. A `partial` one gives some of the quantities only. One
    that does a `share` of the work has its time divided by it.
    """

    name: str
    call: Callable[[], Any]
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    missing: str | None = None
    slow: bool = False
    partial: bool = False
    share: float = 1.0


@dataclass(frozen=True)
class Case:
    """A task, our way first, and the float64 oracle's answer."""

    key: str
    title: str
    truth: Callable[[], Any]
    contenders: Sequence[Contender]
    notes: tuple[str, ...] = ()
    judged: bool = True  # whether the goals are for this size
    shown: str = "share"  # the kind of quantity whose error the table shows


@dataclass(frozen=True)
class Outcome:
    """What came of a case: errors by contender and quantity, who left a bound, the times of the others."""

    case: Case
    errors: Mapping[str, Mapping[str, float]]
    wrong: Mapping[str, str]
    timings: Timings | None

    @property
    def table(self) -> Table:
        """Milliseconds and how many times ours, with the goals; empty cells for what was not timed."""
        ours = self.case.contenders[0].name
        rows = [self._row(contender, ours) for contender in self.case.contenders]
        rounds = self.timings.seconds.shape[1] if self.timings else 0
        slow = [contender.name for contender in self.case.contenders if contender.slow]
        few = f" ({', '.join(slow)}: the first 3)" if slow and rounds > 3 else ""
        what = _PLURAL.get(self.case.shown, self.case.shown)
        about = f"medians of {rounds} rounds in turns{few}; error: of {what}, against the float64 oracle"
        return Table(self.case.key, self.case.title, _COLUMNS, tuple(rows), (*self.case.notes, about))

    @property
    def check(self) -> Check:
        """Whether everybody agrees with the oracle."""
        compared = [name for name, errors in self.errors.items() if errors]
        found = "; ".join(f"{name}: {text}" for name, text in self.wrong.items())
        return Check(
            f"agreement.{self.case.key.replace(' ', '-')}",
            f"{len(compared)} ways within their bounds of the float64 oracle",
            found or "all within",
            not self.wrong,
        )

    @property
    def accuracy(self) -> list[tuple[Any, ...]]:
        """Our largest error in each kind of quantity and its bound, as rows of `sound`."""
        ours, errors = self.case.contenders[0], self.errors.get(self.case.contenders[0].name, {})
        rows = []
        for kind, bound in ours.bounds.items():
            found = [error for name, error in errors.items() if name.split(" ")[0] == kind]
            if found:
                worst, limit = float(np.max(found)), bound.relative or bound.absolute
                rows.append((self.case.key, kind, worst, limit, MET if worst <= limit else MISSED))
        return rows

    def _row(self, contender: Contender, ours: str) -> tuple[Any, ...]:
        name, goal = contender.name, find_goal(self.case.key, contender.name)
        error = max(
            (value for key, value in self.errors.get(name, {}).items() if key.startswith(self.case.shown)),
            default=None,
        )
        timed = self.timings is not None and name in self.timings.names
        ms, times = (None, None)
        if self.timings is not None and timed:
            ms = self.timings.of(name).median * 1e3
            times = self.timings.times(name, ours) if name != ours else None
        if name in self.wrong:
            verdict = "disagrees"
        elif goal is not None:
            value = ms if name == ours else times.median if times else None
            verdict = judge(goal, value, self.case.judged)
        else:
            verdict = "" if timed else "not run"
        spread = times or (None, None, None)
        return (name, ms, *spread, goal.words if goal else "", verdict, error)


def run_case(
    case: Case,
    progress: Progress = silent,
    *,
    rounds: int = 15,
    budget: float = 25.0,
    pause: float = 0.0,
) -> Outcome:
    """Compare everybody with the oracle, then time those who agree; nobody, if we do not.

    The first call of each is the one that is compared. If all of them together took less than a quarter of
    the budget, one more untimed round follows.
    """
    progress(f"{case.key}: agreement with the oracle", 0, 2)
    truth = quantities(case.truth())
    errors: dict[str, Mapping[str, float]] = {}
    wrong: dict[str, str] = {}
    present = [contender for contender in case.contenders if contender.missing is None]
    start = time.perf_counter()
    for contender in present:
        if contender.call is case.truth:
            continue
        found = contender.call()
        if contender.bounds:
            given = quantities(found)
            wanted = {name: truth[name] for name in truth if name in given or not contender.partial}
            errors[contender.name], complaint = _disagreement(wanted, given, contender.bounds)
            if complaint:
                wrong[contender.name] = complaint
        del found
    once = time.perf_counter() - start
    calls = {contender.name: contender.call for contender in present if contender.name not in wrong}
    timings = None
    if case.contenders[0].name in calls:
        progress(f"{case.key}: timing", 1, 2)
        warmup = 1 if once < budget / 4 else 0
        slow = {contender.name for contender in present if contender.slow}
        timings = in_turns(calls, rounds, warmup=warmup, budget=budget, pause=pause, slow=slow)
        shares = [contender.share for contender in present if contender.name in calls]
        timings = timings._replace(seconds=timings.seconds / np.array(shares)[:, None])
    progress(f"{case.key}: timed", 2, 2)
    return Outcome(case, errors, wrong, timings)


def quantities(found: Any) -> dict[str, Array]:
    """The arrays of a result by name: "share attention", "r value_norm", "entropy total", or one "share".

    What comes by name already stays as it is.
    """
    if isinstance(found, Mapping):
        return {name: np.asarray(value) for name, value in found.items()}
    if not isinstance(found, RowMeasures):
        return {"share": np.asarray(found)}
    named = {f"share {name}": share for name, share in found.shares.items()}
    named |= {f"r {name}": ratio for name, ratio in found.ratios.items()}
    if found.entropy is not None:
        named |= {f"entropy {name}": value for name, value in found.entropy._asdict().items()}
    return named


def sound(rows: Sequence[tuple[Any, ...]]) -> Table:
    """Our errors beside what they may be, from the `accuracy` of outcomes."""
    title = "Accuracy: our results against the float64 oracle"
    return Table(
        "accuracy",
        title,
        _ACCURACY,
        tuple(rows),
        ("absolute errors, of entropies in nats; of r and of distances relative ones",),
    )


def _disagreement(
    truth: Mapping[str, Array], found: Mapping[str, Array], bounds: Mapping[str, Bound]
) -> tuple[dict[str, float], str]:
    """The largest error of each quantity, and what is outside its bound, in words."""
    if truth.keys() != found.keys():
        return {}, f"expected {', '.join(truth)}; found {', '.join(found)}"
    errors, complaints = {}, []
    for name, expected in truth.items():
        bound = bounds[name.split(" ")[0]]
        seen = compare(expected, found[name], absolute=bound.absolute, relative=bound.relative)
        errors[name] = seen.max_relative if bound.relative else seen.max_absolute
        if not seen.within:
            complaints.append(f"{name} {seen.message}")
    return errors, "; ".join(complaints)
