"""Identities, mutations and agreements on made-up results: a deviation, a surviving mutant must be seen."""

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION
from validation.ledger.judges import proofs

SIZES = {"layers": 6, "heads": 12, "d_model": 384}


def links(of_row):
    row = {"word": "a", "link": "b", "shown": 0.6, "sink_share": 0.9, "of_row": of_row}
    return {"validate": made_up({"links_named": [row], "links_most_sink": [row]})}


def diff(attention=1e-6, held=True, within=True, bound=1e-5):
    rows = [
        {"stage": "attention", "max_absolute": attention, "within": True, "bound": 1e-5, "bound_of": "1"},
        {"stage": "values", "max_absolute": 1e-6, "within": within, "bound": bound, "bound_of": "row norm"},
    ]
    return {"diff-float32": made_up({"diff": rows}, {"diff.bounds": held}, model_sizes=SIZES)}


def controls(unit=0, true=50, zero=0.1, held=True):
    rows = [
        {"weighting": name, "rows": 100, "median": median, "moved": moved}
        for name, median, moved in (
            ("all norms 1", 0.4, unit),
            ("value norm", 0.3, true),
            ("norm of [CLS] 0", zero, 100),
        )
    ]
    checks = {"control_unit_norms": held, "control_first_sink_zero": held}
    return {"validate": made_up({"controls": rows}, checks)}


def sum_again(result):
    rows = [
        {"what": "by the odds law, measured by the oracle", "ratio": 0.6, "sink_share": result},
        {"what": "the ratio that would give 73%", "ratio": 0.142, "sink_share": 0.73},
    ]
    return {"validate": made_up({"arithmetic": rows})}


def mutants(claim, survivor=None, without=None):
    """The mutants of a claim's checks, one each; `survivor` survives, `without` has none."""
    checks = [name for name in CLAIMS[claim].number("checks") if name != without]
    rows = [
        {"check": name, "true_error": 1e-16, "verdict": "SURVIVED" if name == survivor else "killed"}
        for name in checks
    ]
    other = {"check": "another", "true_error": 1.0, "verdict": "SURVIVED"}
    return {"validate": made_up({"mutants_measure": [*rows, other], "mutants_distance": [other]})}


def preset(points, survivor=None):
    rows = [{"side": "keep", "axis_1": 0.0, "axis_2": None if head >= points else 0.1} for head in range(72)]
    tables = {"points_clark2019": rows}
    return {
        **mutants("clark-recipe", survivor),
        "audit-minilm-clusters": made_up(tables, model_sizes=SIZES),
    }


def cells(content="holds", other="fails"):
    rows = [
        {"change": change, "metric": metric, "convention": convention, "sinks": sinks, "found": found}
        for change in ("constant", "sink score", "offset", "permutation")
        for sinks in ("one", "several")
        for metric, convention, found in (
            ("Aitchison", "drop", content if change == "offset" else "holds"),
            ("JSD", "keep", other if change == "sink score" else "holds"),
        )
    ]
    rows.append(rows[0] | {"change": "temperature", "found": "fails"})  # another law, not of this claim
    return {"invariances": made_up({"invariance_cells": rows})}


CASES = [
    ("display", HOLDS, links(0.06)),
    ("display", FAILS, links(0.0601)),
    ("port", HOLDS, diff(2.6e-6)),
    ("port", IN_DIRECTION, diff(2.7e-6)),
    ("port", FAILS, diff(2.7e-6, held=False)),
    ("two-attention", HOLDS, diff(1.204e-4)),
    ("two-attention", FAILS, diff(1.21e-4)),
    ("two-norms", HOLDS, diff()),
    ("two-norms", FAILS, diff(within=False)),
    ("two-norms", FAILS, diff(bound=1.3e-5)),
    ("unit-norms", HOLDS, controls()),
    ("unit-norms", FAILS, controls(unit=1)),
    ("unit-norms", FAILS, controls(true=0)),
    ("zero-norm", HOLDS, controls()),
    ("zero-norm", FAILS, controls(held=False)),
    ("zero-norm", FAILS, controls(zero=0.3)),
    ("arithmetic", HOLDS, sum_again(0.733)),
    ("arithmetic", FAILS, sum_again(0.919)),
    ("formula", HOLDS, mutants("formula")),
    ("formula", FAILS, mutants("formula", survivor="‖a f‖ = a ‖f‖")),
    ("formula", FAILS, mutants("formula", without="‖a f‖ = a ‖f‖")),
    ("orthogonal-split", HOLDS, mutants("orthogonal-split")),
    ("entropy-split", FAILS, mutants("entropy-split", survivor="channels add up")),
    ("clark-recipe", HOLDS, preset(72)),
    ("clark-recipe", FAILS, preset(71)),
    ("clark-recipe", FAILS, preset(72, survivor="clark2019 by loops")),
    ("invariances", HOLDS, cells()),
    ("invariances", IN_DIRECTION, cells(other="holds")),
    ("invariances", FAILS, cells(content="fails")),
]


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    assert both_ways(CASES, proofs.__all__)


def test_the_wrong_sum_is_shown_with_its_evidence():
    assert judged("arithmetic", sum_again(0.919)).found == (
        "95% at 0.6 becomes 91.9%; 73% would take a factor of 0.142"
    )
