"""What the fast path was asked to reach, as data, written down before it was measured."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["GOALS", "MET", "MISSED", "NOT_JUDGED", "NOT_RUN", "Goal", "find_goal", "judge"]

MET, MISSED, NOT_RUN, NOT_JUDGED = "met", "missed", "not run", "not judged"


class Goal(NamedTuple):
    """One goal: a case, whom it is set against, and the limit.

    Against a peer the value is its time (or memory) over ours, so that 1 / 1.5 allows us 1.5 times its time;
    against "itself" it is a quantity of ours, against "fastpath" our milliseconds.
    """

    case: str
    peer: str
    limit: float
    direction: Literal["at least", "at most"]
    unit: str = ""

    @property
    def words(self) -> str:
        """The goal as it stands in a table, like ">= 8" or "<= 2.05"."""
        number = f"{self.limit:.2f}".rstrip("0").rstrip(".")
        return f"{'>=' if self.direction == 'at least' else '<='} {number}{self.unit}"


GOALS = (
    Goal("rows", "read-only loop", 0.8, "at least"),
    Goal("rows", "torch, eager", 15, "at least"),
    Goal("rows", "numpy, one line each", 8, "at least"),
    Goal("rows", "numpy, one product", 1.5, "at least"),
    Goal("entropies", "torch, eager", 8, "at least"),
    Goal("transformed", "torch, einsum", 200, "at least"),
    Goal("transformed memory", "torch, einsum", 1000, "at least"),
    Goal("streaming", "torch, SDPA", 1 / 1.5, "at least"),
    Goal("streaming", "torch, rows stored", 4, "at least"),
    Goal("causal", "torch, SDPA", 1 / 1.5, "at least"),
    Goal("causal", "torch, rows stored", 4, "at least"),
    Goal("language model 128", "torch, eager", 1 / 1.5, "at least"),
    Goal("language model 512", "torch, eager", 1 / 1.5, "at least"),
    Goal("language model 1024", "torch, eager", 1 / 1.5, "at least"),
    Goal("distances", "numpy, loop over heads", 40, "at least"),
    Goal("distances", "scipy, pair by pair, both conventions", 60, "at least"),
    Goal("all distances", "fastpath, JSD alone", 1 / 3, "at least"),
    Goal("verdicts", "fastpath", 50, "at most", " ms"),
    Goal("memory", "itself", 64, "at most"),
    Goal("rows time in T", "itself", 2.05, "at most"),
    Goal("streaming time in T", "itself", 2.05, "at most"),
    Goal("causal time in T", "itself", 2.05, "at most"),
    Goal("streaming memory in T", "itself", 1.05, "at most"),
    Goal("causal memory in T", "itself", 1.05, "at most"),
)


def find_goal(case: str, peer: str = "itself") -> Goal | None:
    """The goal of a case against a peer, if there is one."""
    return next((goal for goal in GOALS if goal[:2] == (case, peer)), None)


def judge(goal: Goal, value: float | None, judged: bool = True) -> str:
    """One of "met", "missed", "not run" where there is no value, and "not judged"; a NaN is missed."""
    if value is None:
        return NOT_RUN
    if not judged:
        return NOT_JUDGED
    held = value >= goal.limit if goal.direction == "at least" else value <= goal.limit
    return MET if held else MISSED
