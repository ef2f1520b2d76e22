"""Claims on another model, on made-up figures."""

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION, NOT_TESTABLE
from validation.ledger.judges import models

SIZES = {"layers": 6, "heads": 12, "d_model": 384}


def kept(first_four):
    """What the value norm leaves of the median in three measurements."""

    def run(name, layers, part):
        rows = [
            {"weighting": weighting, "median": median}
            for weighting, median in (("attention", 0.5), ("value norm", 0.5 * part))
        ]
        return made_up({"headline": rows}, model=name, model_sizes={"layers": layers})

    return {
        "measure-minilm-first-four": run("minilm-l6", 6, first_four),
        "validate": run("minilm-l6", 6, 0.2),
        "measure-smollm2": run("smollm2-135m", 30, 0.1),
    }


def rolled(least, median, most):
    rows = [
        {"layers": "0", "rows": 10, "least": 0.1, "median": 0.2, "most": 0.3},
        {"layers": "0-5", "rows": 10, "least": least, "median": median, "most": most},
    ]
    return {"validate": made_up({"rollout": rows}, model_sizes=SIZES)}


def links(word, shown):
    row = {"word": word, "link": "other", "shown": shown, "sink_share": 0.9}
    return {"validate": made_up({"links_named": [row]})}


SETUP = {
    "validate": made_up(
        {"verdicts": [{"layer": "0", "weighting": "value norm", "words": 136}]}, model_sizes=SIZES, T=[11, 12]
    )
}
CASES = [
    ("depth", FAILS, kept(0.3)),
    ("depth", NOT_TESTABLE, kept(0.6)),
    ("rollout", HOLDS, rolled(0.92, 0.95, 0.98)),
    ("rollout", IN_DIRECTION, rolled(0.85, 0.9, 0.95)),
    ("rollout", FAILS, rolled(0.4, 0.5, 0.6)),
    ("setup", NOT_TESTABLE, SETUP),
    ("link-the-scissors", NOT_TESTABLE, links("the", 0.5)),
    ("link-doctor-nurse", NOT_TESTABLE, links("doctor", 0.5)),
    ("code", NOT_TESTABLE, {}),
]
NEVER = ("another_link", "another_model", "code")


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    others = [name for name in models.__all__ if name != "depth_alone"]
    assert both_ways(CASES, others, NEVER)
    assert {verdict for name, verdict, _ in CASES if CLAIMS[name].judge == "depth_alone"} == {
        FAILS,
        NOT_TESTABLE,
    }


def test_depth_is_judged_by_the_first_layers_beside_the_published_ones():
    found = judged("depth", kept(0.3)).found
    assert "0.30 in the first 4 layers of minilm-l6, 0.50 in the published 4 layers" in found
    assert "0.20 in all 6 of minilm-l6, 0.10 in all 30 of smollm2-135m" in found


def test_what_stands_beside_an_untestable_claim_has_its_numbers():
    assert judged("setup", SETUP).found == (
        "here 6 layers, 384 wide, 72 heads, 2 sentences of our own, 136 words with a row"
    )
    assert "the -> other 0.500 (90.0% sink)" in judged("link-the-scissors", links("the", 0.5)).found
