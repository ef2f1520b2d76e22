"""Rules on displayed rows: each bears its claim out, or not, on made-up figures."""

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION, NOT_TESTABLE
from validation.ledger.judges import shares


def published(**figures):
    """The table beside the published figures; figures by key, (one set, each layer)."""
    names = {one.key: one.name for claim in CLAIMS.values() for one in claim.figures}
    rows = [
        {"figure": names[key], "one_set": one, "each_layer": each} for key, (one, each) in figures.items()
    ]
    return {"validate": made_up({"published": rows})}


def change(kind, one, each):
    """A figure before and after in the two readings."""
    before, after = zip(one, each, strict=True)
    return published(**{f"{kind}_attention": before, f"{kind}_value_norm": after})


def verdicts(first, second):
    rows = [
        {"layer": "sum", "weighting": name, "verdict": said, "above_half_before": 9, "above_half_after": 4}
        | {"worst": 0.8}
        for name, said in (("value norm", first), ("transformed", second))
    ]
    return {"validate": made_up({"verdicts": rows})}


def displayed(median, worst):
    return published(median_attention=median, worst_attention=worst)


CASES = [
    ("median", HOLDS, change("median", (0.2, 0.1), (0.5, 0.25))),
    ("median", IN_DIRECTION, change("median", (0.2, 0.1), (0.5, 0.1))),
    ("median", FAILS, change("median", (0.2, 0.1), (0.5, 0.5))),
    ("median", FAILS, change("median", (0.0, 0.0), (0.5, 0.25))),
    ("above-half", HOLDS, change("half", (0.4, 0.2), (0.4, 0.22))),
    ("above-half", FAILS, change("half", (0.4, 0.41), (0.4, 0.2))),
    ("worst", HOLDS, change("worst", (0.9, 0.8), (0.99, 0.51))),
    ("worst", IN_DIRECTION, change("worst", (0.9, 0.8), (0.99, 0.5))),
    ("worst", FAILS, change("worst", (0.9, 0.4), (0.99, 0.99))),
    ("above-ninety", HOLDS, change("ninety", (0.1, 0.0), (0.0, 0.0))),
    ("above-ninety", IN_DIRECTION, change("ninety", (0.1, 0.01), (0.2, 0.2))),
    ("above-ninety", FAILS, change("ninety", (0.1, 0.01), (0.0, 0.1))),
    ("above-ninety", NOT_TESTABLE, change("ninety", (0.0, 0.0), (0.0, 0.0))),
    ("worse", HOLDS, published(worse_value_norm=(0.28, 0.15))),
    ("worse", IN_DIRECTION, published(worse_value_norm=(0.28, 0.0))),
    ("worse", FAILS, published(worse_value_norm=(0.0, 0.0))),
    ("same-head", HOLDS, published(same_head_value_norm=(0.82, 0.1))),
    ("same-head", IN_DIRECTION, published(same_head_value_norm=(0.6, 0.9))),
    ("same-head", FAILS, published(same_head_value_norm=(0.4, 0.9))),
    ("verdict", HOLDS, verdicts("not collapsed", "not collapsed")),
    ("verdict", IN_DIRECTION, verdicts("collapsed", "not collapsed")),
    ("verdict", FAILS, verdicts("collapsed", "none")),
    ("displayed-sink", HOLDS, displayed((0.2, 0.4), (0.95, 0.99))),
    ("displayed-sink", IN_DIRECTION, displayed((0.2, 0.5), (0.95, 0.99))),
    ("displayed-sink", FAILS, displayed((0.2, 0.2), (0.5, 0.4))),
]


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    assert both_ways(CASES, shares.__all__)


def test_what_was_found_has_the_numbers():
    found = judged("median", change("median", (0.2, 0.1), (0.5, 0.1))).found
    assert "all layers as one set: 20.0% to 10.0%" in found
    assert "each layer by itself: 50.0% to 10.0%" in found
    assert "published 19.9% to 10.0%" in found
