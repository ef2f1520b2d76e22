"""Rules on pruning, and what stands beside claims on training and prediction, on made-up results."""

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up
from wording import refused

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION, NOT_TESTABLE
from validation.ledger.judges import trained
from validation.prediction.frozen import FROZEN_SHA256
from validation.studies.pruning import choosing

CHOICES = CLAIMS["pruning"].number("choices")


def pruned(*cuts, contribution=5000.0):
    """Two budgets; cuts are (text 1, text 2, median and most of the matched draws)."""
    columns = ("heads_by", "text_1", "text_2", "matched_median", "matched_most")
    uniform = ("uniform draws, median", 1.4, 1.5, None, None)
    own = ("lowest content contribution", contribution, contribution, 1.0, 1.0)
    calm = [(name, 1.0, 1.0, 1.0, 1.0) for name in CHOICES]
    named = [(name, *cut) for name, cut in zip(CHOICES, cuts, strict=False)]
    tables = {
        "pruned_b": [
            dict(zip(columns, row, strict=True)) for row in (uniform, own, *named, *calm[len(named) :])
        ],
        "pruned_a": [dict(zip(columns, row, strict=True)) for row in (uniform, *calm)],
    }
    of = "of the heads cut (7 of 70): perplexity"
    titles = {"pruned_a": f"5% {of}", "pruned_b": f"10% {of}"}
    return {"prune-smollm2": made_up(tables, titles=titles, budgets=[0.05, 0.1])}


def toys(same_as=None):
    row = {"kind": "backcopy", "width": 16, "sink_part_min": 0.7, "sink_part_max": 0.73, "share_mean": 0.79}
    tables = {
        "over_seeds": [row],
        "series": [{"own": 0.05, "previous": 0.15}, {"own": 0.04, "previous": 0.16}],
        "checkpoints": [{"step": 0, "same_as": None}, {"step": 1, "same_as": same_as}],
        "backcopy-16-1: checkpoints": [{"step": 0, "same_as": None}],
        "backcopy-16-1: checkpoint_files": [{"step": 0}],
    }
    return {"collapse-demo": made_up(tables, T=[128, 32])}


def predicted(sha256=FROZEN_SHA256):
    words = ["confirmed"] * 6 + ["abstained"]
    notes = {"predictor": f"Predictor: frozen, SHA-256 {sha256[:16]}."}
    rows = [
        {"metric": str(number), "verdict": word, "floor_keep_high": 0.01 * number}
        for number, word in enumerate(words)
    ]
    return {"predict-smollm2": made_up({"predictions": rows}, notes=notes, model="two")}


CASES = [
    ("pruning", HOLDS, pruned((101, 102, 90, 120))),
    ("pruning", IN_DIRECTION, pruned((500, 100, 90, 120))),
    ("pruning", FAILS, pruned((10, 500, 90, 120))),
    ("pruning-channel", HOLDS, pruned((501, 102, 5, 120))),
    ("pruning-channel", IN_DIRECTION, pruned((501, 102, 50, 120))),
    ("pruning-channel", FAILS, pruned((501, 102, 5, 600))),
    ("pruning-channel", FAILS, pruned((501, 102, 300, 400))),
    ("pruning-channel", NOT_TESTABLE, pruned((90, 500, 5, 10))),
    ("collapse", NOT_TESTABLE, toys()),
    ("collapse-1b", NOT_TESTABLE, toys()),
    ("duplicates", NOT_TESTABLE, toys(same_as=0)),
    ("predictor", NOT_TESTABLE, predicted()),
]
NEVER = ("duplicates", "predictor", "toy_collapse")


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    assert both_ways(CASES, trained.__all__, NEVER)


def test_random_heads_stand_beside_the_choices():
    assert judged("pruning", pruned((501, 502, 5, 120))).floor == "median of uniform draws at most 1.50 times"
    floor = judged("pruning-channel", pruned((501, 502, 5, 120))).floor
    assert floor.endswith("highest sink share at 10% 5 (most 120)")


def test_floors_of_what_stands_beside_are_those_of_its_result():
    assert judged("predictor", predicted()).floor.startswith("worst split half, sink kept: 0 0.0%, 1 1.0%, ")
    said = "another key taken as the sink: the row's own at most 5.0%, the one before at most 16.0%"
    assert judged("collapse-1b", toys()).floor == said
    assert judged("collapse-1b", toys()).lengths == "T 32 or 128"
    assert judged("duplicates", toys()).lengths == ""


def test_no_more_is_said_of_the_frozen_predictor_than_the_order_of_commits_shows():
    rule = CLAIMS["predictor"].rule
    assert "looked at" not in rule
    assert rule.index("88b5579") < rule.index("after one in which attention rows") < rule.index("a6106ca")
    assert "into this file the hash came later (3772d2c)" in rule


def test_choices_are_those_of_the_study_without_the_contribution():
    of_study = [choice.label for choice in choosing.CHOICES if choice.criterion != "content_contribution"]
    assert sorted(CHOICES) == sorted(of_study)
    assert CLAIMS["pruning-channel"].number("choices") == CHOICES


def test_a_choice_and_a_budget_that_are_not_there_are_refused():
    results = pruned((101, 102, 90, 120))
    results["prune-smollm2"]["parts"][0]["rows"].pop()
    with refused("claim pruning: result of prune-smollm2", f"with heads_by '{CHOICES[-1]}'", "0"):
        judged("pruning", results)
    results = pruned((101, 102, 90, 120))
    results["prune-smollm2"]["provenance"]["budgets"].append(0.2)
    with refused("claim pruning: result of prune-smollm2", "one table titled '20% of the heads cut '", "0"):
        judged("pruning", results)


def test_an_infinite_ratio_is_above_every_other():
    assert judged("pruning", pruned(("Infinity", "Infinity", 5, 120))).verdict == HOLDS


def test_checkpoints_of_every_series_are_counted():
    assert (
        judged("duplicates", toys()).found == "of 3 checkpoints of the embedded series 0 equal an earlier one"
    )
    assert "series 1 equal" in judged("duplicates", toys(same_as=0)).found


def test_toys_are_called_toys():
    assert judged("collapse-70m", toys()).found.startswith("toys, ")
    assert "70.0% to 73.0%" in judged("collapse-70m", toys()).found


def test_the_ledger_holds_the_hash_of_the_frozen_predictor():
    assert CLAIMS["predictor"].number("predictor_sha256") == FROZEN_SHA256
    assert FROZEN_SHA256[:16] in judged("predictor", predicted()).found


def test_a_result_of_another_predictor_is_not_taken():
    with refused("claim predictor: result of predict-smollm2", FROZEN_SHA256[:16], "0000000000000000"):
        judged("predictor", predicted("0" * 64))


def test_a_changed_predictor_is_noticed(monkeypatch):
    from dataclasses import replace

    claim = CLAIMS["predictor"]
    monkeypatch.setitem(CLAIMS, "predictor", replace(claim, given={"predictor_sha256": "0" * 64}))
    with refused(
        "claim predictor: predictor", "the frozen file, SHA-256 0000000000000000", FROZEN_SHA256[:16]
    ):
        judged("predictor", predicted("0" * 64))
