"""Rules on the norms of special tokens, on made-up figures."""

import pytest
from ledger_results import both_ways, judged, made_up

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION
from validation.ledger.judges import norms


def ratios(token, median=0.5, part=0.8):
    row = {"layer": "all", "token": token, "n": 100, "median": median, "below_one": round(100 * part)}
    return {"validate": made_up({"value_norm_ratio": [row | {"share_below_one": part}]})}


def special(median, cls, sep):
    tables = {
        "headline": [{"weighting": "attention", "median": median}],
        "value_norm_ratio": [
            {"layer": layer, "token": token, "median": value}
            for layer, token, value in (("all", "[CLS]", cls), ("all", "[SEP]", sep), (0, "[SEP]", 9.0))
        ],
    }
    return {"validate": made_up(tables, T=[10, 20])}


CASES = [
    ("cls-norm", HOLDS, ratios("[CLS]", 0.7)),
    ("cls-norm", IN_DIRECTION, ratios("[CLS]", 0.05)),
    ("cls-norm", FAILS, ratios("[CLS]", 1.1)),
    ("sep-norm", HOLDS, ratios("[SEP]", 0.79)),
    ("sep-norm", FAILS, ratios("[SEP]", 1.0)),
    ("cls-below", HOLDS, ratios("[CLS]", part=0.9)),
    ("cls-below", IN_DIRECTION, ratios("[CLS]", part=0.99)),
    ("cls-below", FAILS, ratios("[CLS]", part=0.5)),
    ("sep-below", HOLDS, ratios("[SEP]", part=0.6)),
    ("special-tokens", IN_DIRECTION, special(0.3, 0.05, 0.7)),
    ("special-tokens", FAILS, special(0.2, 0.05, 0.7)),
    ("special-tokens", FAILS, special(0.3, 0.05, 1.0)),
]


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    assert both_ways(CASES, norms.__all__)


def test_equal_weights_are_the_floor_of_large_ones():
    found = judged("special-tokens", special(0.3, 0.05, 0.7))
    assert found.floor == "equal weights 20.0%, norm ratio 1"
    assert judged("cls-norm", ratios("[CLS]", 0.7)).floor == "no floor: the texts are not split"


def test_the_row_of_all_layers_is_read_wherever_it_stands():
    results = ratios("[CLS]", 0.7)
    rows = results["validate"]["parts"][0]["rows"]
    rows[:0] = [rows[0] | {"layer": 0, "median": 5.0}, rows[0] | {"token": "[SEP]", "median": 5.0}]
    assert judged("cls-norm", results).found.startswith("median 0.700 over 100 ")
