"""Perplexities of texts under a model with some of its heads cut, each computed once and kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import NamedTuple

from oracle import Model, Trace, logits_without_heads
from oracle.language_model import log_likelihood
from validation.progress import Progress, silent
from validation.provenance import usable_cpus
from validation.studies.pruning.choosing import (
    CHOICES,
    Choice,
    Heads,
    as_mask,
    chosen_heads,
    matched_draw,
    uniform_draw,
)
from validation.studies.pruning.criteria import HeadStatistics
from validation.studies.pruning.ledger import Ledger

__all__ = ["Trial", "evaluate", "plan"]

_AT_ONCE = 4  # each holds logits of a whole text


class Trial(NamedTuple):
    """One set of heads to cut, on one text: a choice, a draw that matches its layers, or a uniform draw."""

    budget: float
    choice: Choice | None  # None: uniform
    draw: int | None  # None: the choice itself
    text: int
    heads: Heads


def plan(
    statistics: HeadStatistics, counts: dict[float, int], texts: int, draws: int, seed: int
) -> list[Trial]:
    """Every trial of a study: choices and uniform draws on all texts, layer-matched draws on the first."""
    shape = next(iter(statistics.values.values())).shape
    trials = []
    for budget, count in counts.items():
        picked = {
            choice: chosen_heads(statistics.values[choice.criterion], count, choice.highest)
            for choice in CHOICES
        }
        trials += [
            Trial(budget, choice, None, text, heads)
            for choice, heads in picked.items()
            for text in range(texts)
        ]
        for draw in range(draws):
            drawn = uniform_draw(shape, count, seed, draw)
            trials += [Trial(budget, None, draw, text, drawn) for text in range(texts)]
        trials += [
            Trial(budget, choice, draw, 0, matched_draw(shape, heads, choice, seed, draw))
            for choice, heads in picked.items()
            for draw in range(draws)
        ]
    return trials


def evaluate(
    model: Model,
    traces: Sequence[Trace],
    wanted: Iterable[tuple[int, Heads]],
    ledger: Ledger,
    progress: Progress = silent,
) -> None:
    """See to it that `ledger` holds the mean negative log likelihood of every (text, heads) in `wanted`.

    `traces` are those of the texts under the whole model, with their hidden states: what comes before the
    first layer that loses a head is not computed again. No heads means the whole model. Up to four passes run
    at a time, by the CPUs; each is the same as it is alone.
    """
    shape = (model.config.n_layers, model.config.n_heads)
    every = list(dict.fromkeys(wanted))
    missing = [pair for pair in every if pair not in ledger.found]

    def found(pair: tuple[int, Heads]) -> float:
        text, heads = pair
        scores = logits_without_heads(model, traces[text], as_mask(heads, shape))
        return float(-log_likelihood(scores, traces[text].token_ids).mean())

    def tell(done: int) -> None:
        progress("forward passes without some heads", len(every) - len(missing) + done, len(every))

    pool = ThreadPoolExecutor(min(usable_cpus(), _AT_ONCE))
    running: dict[Future[float], tuple[int, Heads]] = {}
    try:
        try:
            tell(0)
            for pair in missing:
                running[pool.submit(found, pair)] = pair
            for number, done in enumerate(as_completed(running), 1):
                ledger.add(*running[done], done.result())
                tell(number)
        finally:
            pool.shutdown(cancel_futures=True)
            for done, pair in running.items():  # whatever went wrong, what was under way is kept
                if not done.cancelled() and done.exception() is None and pair not in ledger.found:
                    ledger.add(*pair, done.result())
    except KeyboardInterrupt:
        kept = sum(pair in ledger.found for pair in every)
        raise KeyboardInterrupt(
            f"interrupted; {kept} of {len(every)} forward passes are kept: the same command goes on there."
        ) from None
