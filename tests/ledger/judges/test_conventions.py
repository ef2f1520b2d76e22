"""Rules on keeping or dropping the sink, on made-up audits."""

import pytest
from ledger_results import both_ways, judged, made_up

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION, NOT_TESTABLE
from validation.ledger.judges import conventions

METRICS = ("cosine", "JSD", "entropy")


def audit(name="one", family="bert", flips=(0.2, 0.3, 0.4), floor=0.05, says=("depends",) * 3):
    rows = [
        {
            "metric": metric,
            "flips": rate,
            "floor_keep_high": floor,
            "floor_drop_high": floor / 2,
            "verdict": said,
        }
        for metric, rate, said in zip(METRICS, flips, says, strict=True)
    ]
    about = {"model": name, "model_sha256": name, "model_sizes": {"family": family}}
    return made_up({"verdicts": rows}, **about)


def both(**second):
    return {"audit-minilm-clusters": audit(), "audit-smollm2-clusters": audit("two", "llama", **second)}


def maps(clark, jsd, entropy=0.3):
    """Maps with R² of the sink share under keep and drop, for the preset and for JSD."""

    def axes(kept, dropped):
        return [
            {"side": side, "covariate": covariate, "r_squared": value, "halves_low": 0.1, "halves_high": 0.2}
            for side, covariate, value in (
                ("keep", "mean sink share", kept),
                ("keep", "content entropy", entropy),
                ("drop", "mean sink share", dropped),
                ("drop", "content entropy", 0.9),
            )
        ]

    return {
        "audit-minilm-clusters": made_up({"axes_clark2019": axes(*clark), "axes_jsd": axes(*jsd)}),
    }


def safety(*layers, whole="depends"):
    rows = [{"metric": "jsd", "scope": "all", "verdict": whole}]
    rows += [{"metric": "jsd", "scope": f"layer {n}", "verdict": said} for n, said in enumerate(layers)]
    return made_up({"safety": rows}, model="one")


def safe(first, second):
    return {"audit-minilm-clusters": first, "audit-smollm2-clusters": second}


CASES = [
    ("depends", HOLDS, both()),
    ("depends", IN_DIRECTION, both(says=("depends", "safe", "depends"))),
    ("depends", FAILS, both(says=("safe", "safe", "depends"))),
    ("flips", HOLDS, both()),
    ("flips", IN_DIRECTION, both(flips=(0.1, 0.1, 0.1))),
    ("flips", FAILS, both(flips=(0.1, 0.1, 0.05))),
    (
        "flips",
        FAILS,
        {
            "audit-minilm-clusters": audit(flips=(0.1, 0.1, 0.3)),
            "audit-smollm2-clusters": audit(flips=(0.1, 0.1, 0.3)),
        },
    ),
    ("breadth", NOT_TESTABLE, both()),
    ("artefact", HOLDS, maps((0.8, 0.1), (0.9, 0.4))),
    ("artefact", IN_DIRECTION, maps((0.8, 0.5), (0.9, 0.4))),
    ("artefact", IN_DIRECTION, maps((0.6, 0.1), (0.9, 0.1), entropy=0.7)),
    ("artefact", FAILS, maps((0.4, 0.1), (0.49, 0.1))),
    ("safe-map", HOLDS, safe(safety("safe", "depends"), safety("depends", "safe"))),
    ("safe-map", IN_DIRECTION, safe(safety("safe", "depends"), safety("depends", "depends"))),
    ("safe-map", FAILS, safe(safety("safe", "depends", whole="cannot say"), safety("safe", "safe"))),
]


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    """That of breadth needs ten models, and is tried below."""
    assert both_ways(CASES, [name for name in conventions.__all__ if name != "breadth"])


@pytest.mark.parametrize(("last", "verdict"), [("depends", HOLDS), ("safe", FAILS)])
def test_ten_models_of_five_families_can_be_judged(monkeypatch, last, verdict):
    from dataclasses import replace

    from ledger_results import CLAIMS

    names = tuple(f"run-{number}" for number in range(10))
    monkeypatch.setitem(CLAIMS, "breadth", replace(CLAIMS["breadth"], runs=names))
    results = {name: audit(name, f"family {number % 5}") for number, name in enumerate(names)}
    results["run-9"] = audit("run-9", "family 4", says=("depends", "depends", last))
    assert judged("breadth", results).verdict == verdict
    del results["run-9"]
    monkeypatch.setitem(CLAIMS, "breadth", replace(CLAIMS["breadth"], runs=names[:9]))
    assert judged("breadth", results).verdict == NOT_TESTABLE


def test_floors_stand_beside_what_was_found():
    found = judged("flips", both())
    assert "one: cosine 20.0%, JSD 30.0%, entropy 40.0%" in found.found
    assert found.floor.count("cosine 5.0%, JSD 5.0%, entropy 5.0%") == 2
    assert "halves of the texts 10.0% to 20.0%" in judged("artefact", maps((0.8, 0.1), (0.9, 0.4))).floor
