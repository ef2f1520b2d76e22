"""What is said of ratios that are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from text_models import by_key

from validation.report.document import Document
from validation.report.terminal import render
from validation.studies.pruning.choosing import CHOICES, Choice
from validation.studies.pruning.criteria import CRITERIA, HeadStatistics
from validation.studies.pruning.evaluating import plan
from validation.studies.pruning.results import Results
from validation.studies.pruning.tables import tables
from validation.studies.pruning.verdicts import times, verdicts

SHAPE, DRAWS, COUNTS = (7, 11), 4, {0.1: 8, 0.2: 15}
SINKS = Choice("sink_share", True)

Ratio = Callable[[float, Choice | None, int | None, int], float]


def results(ratio: Ratio) -> Results:
    """A study whose ratio of every trial is `ratio(budget, choice, draw, text)`."""
    rng = np.random.default_rng(0)
    statistics = HeadStatistics({name: rng.random(SHAPE) for name in CRITERIA}, (9,) * 7)
    trials = plan(statistics, COUNTS, 2, DRAWS, 0)
    nll: dict[tuple[int, tuple[int, ...]], float] = {(text, ()): math.log(8 + 8 * text) for text in (0, 1)}
    for trial in trials:
        key = trial.text, trial.heads
        assert key not in nll, "two trials of one set would share a ratio"
        nll[key] = nll[trial.text, ()] + math.log(ratio(trial.budget, trial.choice, trial.draw, trial.text))
    return Results(SHAPE, COUNTS, statistics, tuple(trials), nll)


def said(found: Results) -> dict[str, str]:
    return {key: note.text for key, note in by_key(verdicts(found)).items()}


def test_the_plan_has_every_trial_once() -> None:
    trials = results(lambda *_: 1.5).trials
    assert len(trials) == len(set(trials)) == 2 * (9 * 2 + DRAWS * 2 + 9 * DRAWS)
    assert all(len(trial.heads) == COUNTS[trial.budget] for trial in trials)
    assert {trial.text for trial in trials if trial.choice is not None and trial.draw is not None} == {0}


def test_ratios_are_looked_up_by_what_was_cut() -> None:
    found = results(
        lambda budget, choice, draw, text: (
            10 * budget
            + (0 if choice is None else 100 * (1 + CHOICES.index(choice)))
            + (0 if draw is None else 1000 * (draw + 1))
            + 10000 * text
        )
    )
    np.testing.assert_allclose(found.chosen(0.2, CHOICES[3]), [402, 10402])
    np.testing.assert_allclose(found.matched(0.1, CHOICES[0]), [1101, 2101, 3101, 4101])
    np.testing.assert_allclose(found.uniform(0.2), [[1002, 2002, 3002, 4002], [11002, 12002, 13002, 14002]])
    assert found.beyond_layers(0.1, CHOICES[0]) == pytest.approx(101 / 2601)
    assert found.shared(0.1, SINKS) == pytest.approx(
        sum(n * n / 11 for n in np.bincount([head // 11 for head in found.heads(0.1, SINKS)])) / 8
    )


@pytest.mark.parametrize(
    ("own", "place"), [(1.0, "better"), (2.0, "within"), (2.5, "within"), (5.1, "worse")]
)
def test_places_among_draws(own: float, place: str) -> None:
    found = results(lambda budget, choice, draw, text: own if draw is None else 2 + draw)
    assert found.place(0.1, SINKS) == place


def test_nothing_above_a_hundred() -> None:
    found = said(
        results(lambda budget, choice, draw, text: 99.0 if choice == SINKS and budget == 0.2 else 2.0)
    )
    assert "not reproduced" in found["verdict_hundredfold"]
    assert "99.0 (highest sink share, 20%)" in found["verdict_hundredfold"]
    assert found["verdict_remains"].endswith("nothing to ask.")
    assert "1 of 18 lie outside" in found["verdict_layers"] or "0 of 18" in found["verdict_layers"]


def test_both_texts_must_reach_it_and_the_contribution_does_not_count() -> None:
    def ratio(budget: float, choice: Choice | None, draw: int | None, text: int) -> float:
        if choice is not None and choice.criterion == "content_contribution":
            return 1e6
        return 500.0 if choice == SINKS and draw is None and text == 1 else 3.0

    assert "not reproduced" in said(results(ratio))["verdict_hundredfold"]


def test_a_hundredfold_that_the_layers_explain() -> None:
    def ratio(budget: float, choice: Choice | None, draw: int | None, text: int) -> float:
        if choice == SINKS and budget == 0.2:
            return 300.0 + text if draw is None else 100.0 * (draw + 1)
        return 150.0 if choice is None and budget == 0.2 else 2.0

    found = said(results(ratio))
    assert "reproduced, by 1 of 16 pairs" in found["verdict_hundredfold"]
    assert "20%: highest sink share (300)" in found["verdict_hundredfold"]
    assert "uniform draw exceeds it too, at 20%" in found["verdict_hundredfold"]
    assert "no hundredfold remains" in found["verdict_remains"]
    assert "highest sink share at 20% 1.20 times (not told apart" in found["verdict_remains"]


def test_a_hundredfold_that_remains() -> None:
    def ratio(budget: float, choice: Choice | None, draw: int | None, text: int) -> float:
        if choice == SINKS and draw is None:
            return 1000.0
        return 2.0 if choice != CHOICES[5] or draw is not None else 0.5

    found = said(results(ratio))
    assert "reproduced, by 2 of 16 pairs" in found["verdict_hundredfold"]
    assert "exceeds it at no budget" in found["verdict_hundredfold"]
    assert "the hundredfold remains for 2 of 2" in found["verdict_remains"]
    assert "500 times (worse than its layers)" in found["verdict_remains"]
    assert found["verdict_layers"].count("worse: highest sink share;") == 2
    assert found["verdict_layers"].count(f"better: {CHOICES[5].label}") == 2
    assert "4 of 18 lie outside all 4 of their" in found["verdict_layers"]
    assert "about 7 would" in found["verdict_layers"]
    assert (
        "at 10% a factor of 2,000, and between the medians of their layer-matched draws one of 1.00"
        in (found["verdict_spread"])
    )


def test_a_large_quotient_within_the_draws_is_no_remainder() -> None:
    def ratio(budget: float, choice: Choice | None, draw: int | None, text: int) -> float:
        return 1000.0 if choice == SINKS and draw is None else 5000.0 if draw == 3 else 2.0

    found = said(results(ratio))
    assert "no hundredfold remains" in found["verdict_remains"]
    assert "500 times (not told apart from its layers)" in found["verdict_remains"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_perplexities_that_overflow_or_are_undefined_are_said(value: float) -> None:
    found = results(lambda budget, choice, draw, text: value if choice == SINKS else 2.0)
    text = render(Document("prune", {}, (*tables(found), *verdicts(found))))
    assert "highest sink share" in text
    wanted = (
        "reproduced, by 2" if value > 0 else "not reproduced. The largest ratio that both texts reach is 2.00"
    )
    assert wanted in said(found)["verdict_hundredfold"]


def test_tables_show_every_choice_beside_its_controls() -> None:
    found = results(lambda budget, choice, draw, text: 2.0 + (draw or 0) + text + 10 * (choice is None))
    parts = by_key(tables(found))
    first = parts["pruned_0"]
    assert "10% of the heads cut (8 of 77)" in first.title
    rows = {row["heads_by"]: row for row in first.records()}
    assert len(rows) == 3 + 9
    assert rows["uniform draws, median"]["text_1"] == pytest.approx(13.5)
    assert rows["uniform draws, least"]["text_2"] == pytest.approx(13)
    assert rows["uniform draws, most"]["text_1"] == pytest.approx(15)
    own = rows["lowest content entropy"]
    assert [own[f"text_{text}"] for text in (1, 2)] == pytest.approx([2, 3])
    assert [own[f"matched_{name}"] for name in ("least", "median", "most")] == pytest.approx([2, 3.5, 5])
    assert own["below"] == "0 of 4"
    profiles = parts["profile_1"].records()
    assert len(profiles) == 9
    for row in profiles:
        drawn = row["heads_by_layer"]
        assert len(drawn) == 7
        assert sum(int(n) for n in drawn.replace(".", "0")) == COUNTS[0.2]
        assert row["layers"] == 7 - drawn.count(".")
    assert len(parts["trials"].rows) == len(found.trials)
    assert len(parts["heads"].rows) == 77
    assert not parts["trials"].shown
    assert not parts["heads"].shown
    text = render(Document("prune", {}, tables(found)))
    assert max(map(len, text.splitlines())) <= 80


def test_the_part_of_a_criterion_that_layers_explain() -> None:
    found = results(lambda *_: 2.0)
    found.statistics.values["sink_share"][:] = np.arange(7.0)[:, None]
    found.statistics.values["entropy"][:] = np.arange(11.0)
    found.statistics.values["content_entropy"][:] = float("nan")
    rows = {row["criterion"]: row for row in by_key(tables(found))["criteria"].records()}
    assert rows["sink share"]["between_layers"] == pytest.approx(1)
    assert rows["entropy, sink kept"]["between_layers"] == pytest.approx(0, abs=1e-15)
    assert 0 < rows["norm-weighted sink share"]["between_layers"] < 0.5
    assert math.isnan(rows["content entropy"]["between_layers"])
    assert rows["content entropy"]["undefined"] == 77


def test_ratios_in_words() -> None:
    numbers = [0.01234, 1, 9.994, 12.34, 99.94, 12345.6, float("inf"), float("nan")]
    assert [times(number) for number in numbers] == [
        *("0.0123", "1.00", "9.99", "12.3", "99.9", "12,346", "∞", "–")
    ]
