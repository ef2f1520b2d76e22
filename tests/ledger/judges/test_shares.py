"""Rules on displayed rows: each bears its claim out, or not, on made-up figures."""

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up
from wording import refused

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


def shown(before=(6, 50), value=(2, 9), full=(2, 9), rows=100):
    """Displayed rows above 50% under attention and the two norms; each (one set, each layer)."""
    tables = {
        "verdicts": [
            {"layer": "sum", "weighting": name, "above_half_before": before[1], "above_half_after": after}
            | {"words": rows, "worst": 0.8, "verdict": "not collapsed" if after else "collapsed"}
            for name, after in (("value norm", value[1]), ("transformed", full[1]))
        ]
    }
    for name, count in (("attention", before), ("value_norm", value), ("transformed_norm", full)):
        tables[f"words_{name}"] = [
            {"layers": layers, "words": rows, "above_half": above, "worst": 0.7}
            for layers, above in (("0", 99), ("0-5", count[0]))
        ]
    return {"validate": made_up(tables, model_sizes={"layers": 6})}


def beside(median, **figures):
    """Figures beside the median share under attention, which tells whether a reading is vacuous."""
    return published(median_attention=median, **figures)


def medians(attention, value_norm, transformed):
    return beside(attention, median_value_norm=value_norm, median_transformed_norm=transformed)


def displayed(median, worst):
    return beside(median, worst_attention=worst)


FULL, THIN, NONE = (0.2, 0.3), (0.0009, 0.3), (0.0, 0.0)
CASES = [
    ("median", HOLDS, change("median", (0.2, 0.1), (0.5, 0.25))),
    ("median", IN_DIRECTION, change("median", (0.2, 0.1), (0.5, 0.1))),
    ("median", FAILS, change("median", (0.2, 0.1), (0.5, 0.5))),
    ("median", FAILS, change("median", (0.2, 0.3), (0.5, 0.25))),
    ("median", IN_DIRECTION, change("median", (0.0009, 0.0005), (0.5, 0.25))),
    ("median", IN_DIRECTION, change("median", (0.0009, 0.002), (0.5, 0.25))),
    ("median", FAILS, change("median", (0.0009, 0.0005), (0.5, 0.5))),
    ("median", NOT_TESTABLE, change("median", (0.0009, 0.0005), (0.0, 0.0))),
    ("above-half", HOLDS, change("half", (0.4, 0.2), (0.4, 0.22))),
    ("above-half", IN_DIRECTION, change("half", (0.4, 0.0), (0.4, 0.2))),
    ("above-half", FAILS, change("half", (0.4, 0.41), (0.4, 0.2))),
    ("worst", HOLDS, change("worst", (0.9, 0.8), (0.99, 0.51))),
    ("worst", IN_DIRECTION, change("worst", (0.9, 0.9), (0.99, 0.51))),
    ("worst", FAILS, change("worst", (0.9, 0.8), (0.99, 0.5))),
    ("worst", FAILS, change("worst", (0.9, 0.4), (0.99, 0.8))),
    ("above-ninety", HOLDS, change("ninety", (0.1, 0.0), (0.2, 0.0))),
    ("above-ninety", IN_DIRECTION, change("ninety", (0.1, 0.0), (0.0, 0.0))),
    ("above-ninety", IN_DIRECTION, change("ninety", (0.1, 0.01), (0.2, 0.0))),
    ("above-ninety", FAILS, change("ninety", (0.1, 0.0), (0.2, 0.2))),
    ("above-ninety", NOT_TESTABLE, change("ninety", (0.0, 0.0), (0.0, 0.0))),
    ("worse", IN_DIRECTION, beside(FULL, worse_value_norm=(0.28, 0.15))),
    ("worse", FAILS, beside(FULL, worse_value_norm=(0.28, 0.0))),
    ("worse", FAILS, beside(THIN, worse_value_norm=(0.28, 0.0))),
    ("worse", NOT_TESTABLE, beside(NONE, worse_value_norm=(0.28, 0.28))),
    ("transformed", HOLDS, medians((0.2, 0.3), (0.1, 0.2), (0.105, 0.2))),
    ("transformed", IN_DIRECTION, medians((0.2, 0.3), (0.1, 0.2), (0.15, 0.2))),
    ("transformed", IN_DIRECTION, medians((0.0009, 0.3), (0.0001, 0.2), (0.0001, 0.2))),
    ("transformed", FAILS, medians((0.2, 0.3), (0.1, 0.2), (0.2, 0.2))),
    ("transformed", NOT_TESTABLE, medians(NONE, NONE, NONE)),
    ("same-head", HOLDS, beside(FULL, same_head_value_norm=(0.82, 0.9))),
    ("same-head", IN_DIRECTION, beside(FULL, same_head_value_norm=(0.6, 0.9))),
    ("same-head", IN_DIRECTION, beside(THIN, same_head_value_norm=(0.9, 0.9))),
    ("same-head", FAILS, beside(FULL, same_head_value_norm=(0.9, 0.5))),
    ("same-head", FAILS, beside(THIN, same_head_value_norm=(0.9, 0.5))),
    ("verdict", HOLDS, shown()),
    ("verdict", IN_DIRECTION, shown(full=(0, 9))),
    ("verdict", IN_DIRECTION, shown(before=(0, 50), value=(0, 9), full=(0, 9))),
    ("verdict", FAILS, shown(value=(0, 9))),
    ("verdict", FAILS, shown(value=(0, 9), rows=6000)),
    ("verdict", IN_DIRECTION, shown(value=(0, 9), rows=6001)),
    ("verdict", FAILS, shown(value=(2, 0))),
    ("verdict", NOT_TESTABLE, shown(before=(0, 0), value=(0, 0), full=(0, 0))),
    ("displayed-sink", HOLDS, displayed((0.2, 0.4), (0.95, 0.99))),
    ("displayed-sink", IN_DIRECTION, displayed((0.2, 0.5), (0.95, 0.99))),
    ("displayed-sink", IN_DIRECTION, displayed((0.0, 0.4), (0.4, 0.99))),
    ("displayed-sink", FAILS, displayed((0.2, 0.2), (0.5, 0.99))),
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
    assert "vacuous" not in found


def test_a_vacuous_reading_is_named():
    found = judged("same-head", beside(THIN, same_head_value_norm=(0.9, 0.9))).found
    assert found.endswith("; decides nothing, being vacuous: all layers as one set")


def test_growth_is_compared_only_where_there_is_none():
    assert (
        "so that none grows at all (published 26%)"
        in judged("worse", beside(FULL, worse_value_norm=(0.0, 0.0))).found
    )
    assert (
        "by how much is not in the result" in judged("worse", beside(FULL, worse_value_norm=(0.1, 0.1))).found
    )


def test_every_claim_on_displayed_rows_has_the_one_criterion_in_its_rule():
    own = {name for name, claim in CLAIMS.items() if claim.judge in shares.__all__}
    assert own == {name for name, claim in CLAIMS.items() if "Both readings are asked" in claim.rule}
    assert {CLAIMS[name].number("vacuous") for name in own} == {0.001}


def test_a_verdict_that_its_own_rows_do_not_bear_out_is_refused():
    results = shown()
    results["validate"]["parts"][0]["rows"][0]["verdict"] = "collapsed"
    with refused("claim verdict: result of validate", "fits 9 rows above 50%", "collapsed"):
        judged("verdict", results)
