"""The answers of the pruning study, in sentences, by the rule."""

from __future__ import annotations

import math

import numpy as np

from validation.report.document import Note
from validation.studies.pruning.choosing import Choice
from validation.studies.pruning.results import Results
from validation.studies.pruning.rule import hundredfold

__all__ = ["times", "verdicts"]

_PLACES = {
    "worse": "worse than its layers",
    "better": "better than its layers",
    "within": "not told apart from its layers",
}


def verdicts(results: Results) -> tuple[Note, ...]:
    """What became of the published figure, what remains of it within layers, and who beats the layers."""
    return (_hundredfold(results), _remains(results), _against_layers(results), _spread(results))


def times(ratio: float) -> str:
    """A ratio for a sentence: three digits, or all of those before the point."""
    if not math.isfinite(ratio):
        return "–" if math.isnan(ratio) else "∞"
    if ratio < 1:
        return f"{ratio:.3g}"
    return f"{ratio:,.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}"


def _above(results: Results) -> list[tuple[float, Choice, float]]:
    """Choices by sink share or entropy with the ratio that both texts reach, above a hundred."""
    return [pair for pair in _reached(results) if pair[2] > hundredfold()]


def _reached(results: Results) -> list[tuple[float, Choice, float]]:
    return [
        (budget, choice, float(results.chosen(budget, choice).min()))
        for budget in results.counts
        for choice in results.choices
        if choice.criterion != "content_contribution"
    ]


def _hundredfold(results: Results) -> Note:
    every, above = _reached(results), _above(results)
    start = "Verdict, more than a hundredfold"
    known = [pair for pair in every if not math.isnan(pair[2])]
    if not known:
        return Note("verdict_hundredfold", f"{start}: no ratio is defined, so there is no verdict.")
    budget, choice, most = max(known, key=lambda pair: pair[2])
    largest = f"The largest ratio that both texts reach is {times(most)} ({choice.label}, {_part(budget)})"
    if not above:
        return Note("verdict_hundredfold", f"{start}: not reproduced. {largest}.")
    where = []
    for budget in results.counts:
        named = [f"{choice.label} ({times(ratio)})" for at, choice, ratio in above if at == budget]
        where += [f"{_part(budget)}: {', '.join(named)}"] if named else []
    found = f"{len(above)} of {len(every)} pairs of a choice and a budget"
    medians = {budget: np.median(results.uniform(budget), axis=1) for budget in results.counts}
    also = [_part(budget) for budget, median in medians.items() if (median > hundredfold()).all()]
    random = f"The median uniform draw exceeds it {'too, at ' + ', '.join(also) if also else 'at no budget'}"
    return Note(
        "verdict_hundredfold",
        f"{start}: reproduced, by {found}, {'; '.join(where)}. {largest}. {random}.",
    )


def _remains(results: Results) -> Note:
    above = _above(results)
    if not above:
        return Note("verdict_remains", "What remains of it with the layers matched: nothing to ask.")
    kept = [
        (budget, choice)
        for budget, choice, _ in above
        if results.beyond_layers(budget, choice) > hundredfold() and results.place(budget, choice) == "worse"
    ]
    each = [
        f"{choice.label} at {_part(budget)} {times(results.beyond_layers(budget, choice))} times ("
        f"{_PLACES[results.place(budget, choice)]})"
        for budget, choice, _ in above
    ]
    answer = "the hundredfold remains" if kept else "no hundredfold remains"
    if kept:
        answer += f" for {len(kept)} of {len(above)}"
    return Note(
        "verdict_remains",
        f"Verdict, with the layers matched: {answer}. Over the median of layer-matched draws, on the first "
        f"text: {'; '.join(each)}.",
    )


def _against_layers(results: Results) -> Note:
    parts, outside, pairs = [], 0, 0
    draws = 0
    for budget in results.counts:
        placed = {choice: results.place(budget, choice) for choice in results.choices}
        draws = len(results.matched(budget, results.choices[0]))
        pairs += len(placed)
        outside += sum(place != "within" for place in placed.values())
        for place in ("worse", "better"):
            names = [choice.label for choice, where in placed.items() if where == place]
            parts.append(f"{_part(budget)}, {place}: {', '.join(names) or 'none'}")
    chance = 2 * pairs / (draws + 1)
    return Note(
        "verdict_layers",
        f"Verdict, choices against their own layers: {outside} of {pairs} lie outside all {draws} of their "
        f"layer-matched draws, where about {chance:.0f} would if heads of a layer were alike. "
        f"{'; '.join(parts)}.",
    )


def _spread(results: Results) -> Note:
    parts = []
    for budget in results.counts:
        own = [float(results.chosen(budget, choice)[0]) for choice in results.choices]
        layers = [float(np.median(results.matched(budget, choice))) for choice in results.choices]
        parts.append(
            f"at {_part(budget)} a factor of {times(max(own) / min(own))}, and between the medians of their "
            f"layer-matched draws one of {times(max(layers) / min(layers))}"
        )
    return Note(
        "verdict_spread",
        f"Between the worst and the best choice lies, on the first text, {'; '.join(parts)}.",
    )


def _part(budget: float) -> str:
    return f"{100 * budget:.4g}%"
