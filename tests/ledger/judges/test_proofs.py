"""Identities, mutations and agreements on made-up results: a deviation, a surviving mutant must be seen."""

from dataclasses import replace

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up
from wording import refused

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION
from validation.ledger.judges import proofs

SIZES = {"layers": 6, "heads": 12, "d_model": 384}


def links(of_row):
    row = {"word": "a", "link": "b", "shown": 0.6, "sink_share": 0.9, "of_row": of_row}
    return {"validate": made_up({"links_named": [row], "links_most_sink": [row]})}


def diff(attention=1e-6, norms=1e-6):
    rows = [
        {"stage": "attention", "max_absolute": attention, "max_relative": 9.0, "within": True},
        {"stage": "value_norm", "max_absolute": 9.0, "max_relative": norms, "within": True},
    ]
    return {"diff-float32": made_up({"diff": rows})}


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


def mutants(claim, survivor=None, without=None, T="11"):
    """The mutants of a claim's checks, one each; `survivor` survives, `without` has none."""
    checks = [name for name in CLAIMS[claim].number("checks") if name != without]
    rows = [
        {"check": name, "true_error": 1e-16, "bound": 1e-12, "T": "11" if name == checks[0] else T}
        | {"verdict": "SURVIVED" if name == survivor else "killed"}
        for name in checks
    ]
    other = {"check": "another", "true_error": 1.0, "bound": 1.0, "T": "99", "verdict": "SURVIVED"}
    return {"validate": made_up({"mutants_measure": [*rows, other], "mutants_distance": [other]})}


def preset(points, survivor=None, axes=2):
    rows = [
        {"side": "keep"} | {f"axis_{axis + 1}": None if head >= points else 0.1 for axis in range(axes)}
        for head in range(72)
    ]
    tables = {"points_clark2019": rows}
    return {
        **mutants("clark-recipe", survivor),
        "audit-minilm-clusters": made_up(tables, model_sizes=SIZES, T=[114, 130]),
    }


NAMES = [
    ("Aitchison", "drop"),
    ("Aitchison", "keep"),
    ("Aitchison sink", "keep"),
    *((f"other {number}", side) for number in range(6) for side in ("keep", "drop")),
]


def cells(content="holds", other="fails", names=NAMES, sinks=("one", "several"), more=()):
    """Every cell of these distances; the content distance under an offset, the others under a sink score."""
    rows = [
        {"change": change, "metric": metric, "convention": convention, "sinks": sink}
        | {"found": {"sink score": other, "offset": content}.get(change, "holds"), "bound": 5e-12}
        for metric, convention in names
        for change in ("constant", "sink score", "offset", "permutation")
        for sink in sinks
    ]
    for row in rows:
        own = (row["metric"], row["convention"]) == ("Aitchison", "drop")
        row["found"] = "holds" if own != (row["change"] == "offset") else row["found"]
    rows.append(
        rows[0] | {"change": "temperature", "found": "fails", "bound": 1.0}
    )  # another law, not of this claim
    rows += [rows[0] | row for row in more]
    under = {"invariance_cells": [f"{sink}: 3 texts, T 11-18, rows" for sink in sinks]}
    return {"invariances": made_up({"invariance_cells": rows}, model="one", T=[9, 99], under=under)}


CASES = [
    ("display", HOLDS, links(0.06)),
    ("display", FAILS, links(0.0601)),
    ("port", HOLDS, diff(1.324e-6)),
    ("port", IN_DIRECTION, diff(1.325e-6)),
    ("port", IN_DIRECTION, diff(1.32e-5)),
    ("port", FAILS, diff(1.33e-5)),
    ("two-attention", HOLDS, diff(1.204e-4)),
    ("two-attention", FAILS, diff(1.21e-4)),
    ("two-norms", HOLDS, diff(norms=7.272e-5)),
    ("two-norms", FAILS, diff(norms=7.28e-5)),
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
    ("clark-recipe", IN_DIRECTION, preset(72)),
    ("clark-recipe", FAILS, preset(72, axes=3)),
    ("clark-recipe", FAILS, preset(71)),
    ("clark-recipe", FAILS, preset(72, survivor="clark2019 by loops")),
    ("invariances", IN_DIRECTION, cells()),
    ("invariances", FAILS, cells(other="holds")),
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


def test_t_of_checks_is_that_of_their_rows_and_not_of_the_texts_of_the_run():
    results = mutants("orthogonal-split", T="7-13")
    results["validate"]["provenance"]["T"] = [17, 18]
    found = judged("orthogonal-split", results)
    assert (found.lengths, found.floor) == ("T 11, 7-13", "exact, to rounding of 1e-12 at most")
    assert judged("clark-recipe", preset(72)).lengths == "rows given T 3, loops T 11, map T 114-130"
    assert judged("invariances", cells()).lengths == "T 11-18"
    assert judged("invariances", cells()).floor == "exact, to rounding of 5e-12 at most"
    assert judged("arithmetic", sum_again(0.919)).lengths == ""
    del results["validate"]["parts"][0]["rows"][0]["T"]
    with refused("claim orthogonal-split: result of validate", "T of the check"):
        judged("orthogonal-split", results)


def test_a_control_that_did_not_hold_is_not_said_to():
    assert "the shares are to rounding those" in judged("zero-norm", controls()).found
    assert "the shares are not to rounding those" in judged("zero-norm", controls(held=False)).found


def test_another_port_is_called_one():
    assert judged("port", diff()).found.startswith("another port, ours: ")


@pytest.mark.parametrize("key", ["clark_kept", "clark_uniform"])
def test_the_published_weights_are_those_that_the_preset_smooths_by(monkeypatch, key):
    claim = CLAIMS["clark-recipe"]
    figures = tuple(replace(one, value=0.5) if one.key == key else one for one in claim.figures)
    monkeypatch.setitem(CLAIMS, "clark-recipe", replace(claim, figures=figures))
    assert judged("clark-recipe", preset(72)).verdict == FAILS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": NAMES[:-1]}, "15 distances"),
        ({"names": [*NAMES[1:], ("another", "keep")]}, "one of them"),
        ({"sinks": ("one",)}, "the 8 cells of ('Aitchison', 'drop')"),
        ({"more": [{"sinks": "none"}]}, "the 8 cells of ('Aitchison', 'drop')"),
        ({"more": [{}]}, "each cell once"),
    ],
)
def test_exactly_the_cells_of_the_rule_are_taken(given, said):
    with refused("claim invariances: result of invariances", said):
        judged("invariances", cells(**given))
