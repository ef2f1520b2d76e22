"""Which heads are cut: by a criterion from either end, at random, or at random in the same layers."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject
from validation.studies.pruning.criteria import CRITERIA

__all__ = [
    "CHOICES",
    "Choice",
    "Heads",
    "as_mask",
    "chosen_heads",
    "head_counts",
    "layer_counts",
    "matched_draw",
    "parse_budgets",
    "uniform_draw",
]

Array = NDArray[Any]
Heads = tuple[int, ...]  # numbers in (layer, head) order, ascending


class Choice(NamedTuple):
    """One way to choose: a criterion, and the end that is cut."""

    criterion: str
    highest: bool

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return f"{'highest' if self.highest else 'lowest'}_{self.criterion}"

    @property
    def label(self) -> str:
        """Its name for the eye."""
        return f"{'highest' if self.highest else 'lowest'} {CRITERIA[self.criterion]}"


CHOICES = (
    *(
        Choice(name, highest)
        for name in CRITERIA
        if name != "content_contribution"
        for highest in (True, False)
    ),
    Choice("content_contribution", False),
)
"""Sink and entropy criteria from both ends; of the contribution, the least is what anybody would cut."""


def parse_budgets(text: str) -> tuple[float, ...]:
    """Shares of heads like "0.05,0.1,0.2", ascending, each once; InputError for anything else."""
    try:
        budgets = sorted({float(part) for part in text.split(",")})
    except ValueError:
        budgets = []
    if not budgets or not all(0 < budget < 1 for budget in budgets):
        reject(
            "--budget",
            expected="shares of the heads between 0 and 1, such as 0.05,0.1,0.2",
            found=repr(text),
            todo="Write some, with commas between them.",
        )
    return tuple(budgets)


def head_counts(budgets: Sequence[float], n_heads: int) -> dict[float, int]:
    """How many of `n_heads` heads each budget cuts: the nearest number (halves go up), at least one.

    Budgets that come to the same number are one, the first of them.
    """
    counts: dict[int, float] = {}
    for budget in budgets:
        counts.setdefault(max(int(np.floor(budget * n_heads + 0.5)), 1), budget)
    return {budget: count for count, budget in counts.items()}


def chosen_heads(values: Array, count: int, highest: bool) -> Heads:
    """The `count` heads with the highest or lowest value of `values` (layer, head).

    Of equal values the first in (layer, head) order is taken; NaN comes last from either end.
    """
    flat = values.ravel()
    order = np.argsort(-flat if highest else flat, kind="stable")
    return _sorted(order[:count])


def uniform_draw(shape: tuple[int, int], count: int, seed: int, draw: int) -> Heads:
    """Draw number `draw` of `count` heads out of all, each set with the same chance."""
    rng = np.random.default_rng([seed, 0, count, draw])
    return _sorted(rng.choice(shape[0] * shape[1], count, replace=False))


def matched_draw(shape: tuple[int, int], heads: Heads, choice: Choice, seed: int, draw: int) -> Heads:
    """Draw number `draw` of as many heads in every layer as `heads` has there."""
    rng = np.random.default_rng([seed, zlib.crc32(choice.key.encode()), len(heads), draw])
    found = [
        layer * shape[1] + rng.choice(shape[1], count, replace=False)
        for layer, count in enumerate(layer_counts(heads, shape))
    ]
    return _sorted(np.concatenate(found))


def layer_counts(heads: Heads, shape: tuple[int, int]) -> tuple[int, ...]:
    """How many heads of each layer are among `heads`."""
    return tuple(as_mask(heads, shape).sum(axis=1).tolist())


def as_mask(heads: Heads, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """`heads` as a mask (layer, head)."""
    mask = np.zeros(shape[0] * shape[1], bool)
    mask[list(heads)] = True
    return mask.reshape(shape)


def _sorted(heads: Array) -> Heads:
    return tuple(sorted(int(head) for head in heads))
