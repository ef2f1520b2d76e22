"""Ratios of perplexities, looked up by what was cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.studies.pruning.choosing import Choice, Heads, layer_counts
from validation.studies.pruning.criteria import HeadStatistics
from validation.studies.pruning.evaluating import Trial

__all__ = ["Results"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Results:
    """What a study found: `nll` holds nats a token by (text, heads), no heads being the whole model."""

    shape: tuple[int, int]  # (layer, head)
    counts: Mapping[float, int]  # heads cut, by budget
    statistics: HeadStatistics
    trials: tuple[Trial, ...]
    nll: Mapping[tuple[int, Heads], float]
    texts: int = 2

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices that were made, in their order."""
        return tuple(dict.fromkeys(trial.choice for trial in self.trials if trial.choice is not None))

    def ratio(self, trial: Trial) -> float:
        """Perplexity over that of the whole model on the same text; infinite where it overflows."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.nll[trial.text, trial.heads] - self.nll[trial.text, ()]))

    def chosen(self, budget: float, choice: Choice) -> Array:
        """Ratios of a choice, (text,)."""
        return self._ratios(budget, choice, own=True)

    def matched(self, budget: float, choice: Choice) -> Array:
        """Ratios of the draws that match a choice's layers, on the first text, (draw,)."""
        return self._ratios(budget, choice, own=False)

    def uniform(self, budget: float) -> Array:
        """Ratios of uniform draws, (text, draw)."""
        found = self._ratios(budget, None, own=False)
        return found.reshape(-1, self.texts).T

    def beyond_layers(self, budget: float, choice: Choice) -> float:
        """The ratio of a choice on the first text over the median ratio of its layer-matched draws."""
        with np.errstate(invalid="ignore"):  # both may be infinite
            return float(self.chosen(budget, choice)[0] / np.median(self.matched(budget, choice)))

    def place(self, budget: float, choice: Choice) -> str:
        """The choice among its layer-matched draws: "worse" than all, "better" than all, or "within"."""
        own, draws = self.chosen(budget, choice)[0], self.matched(budget, choice)
        return "worse" if own > draws.max() else "better" if own < draws.min() else "within"

    def heads(self, budget: float, choice: Choice) -> Heads:
        """The heads of a choice."""
        return next(
            trial.heads
            for trial in self.trials
            if (trial.budget, trial.choice, trial.draw) == (budget, choice, None)
        )

    def shared(self, budget: float, choice: Choice) -> float:
        """The part of a choice's heads that a layer-matched draw is expected to cut too, in [0, 1]."""
        counts = np.array(layer_counts(self.heads(budget, choice), self.shape))
        return float((counts**2).sum() / (self.shape[1] * counts.sum()))

    def _ratios(self, budget: float, choice: Choice | None, own: bool) -> Array:
        return np.array(
            [
                self.ratio(trial)
                for trial in self.trials
                if trial.budget == budget and trial.choice == choice and (trial.draw is None) == own
            ]
        )
