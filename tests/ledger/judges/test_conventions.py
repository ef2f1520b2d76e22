"""Rules on keeping or dropping the sink, on made-up audits."""

import pytest
from ledger_results import both_ways, judged, made_up
from wording import refused

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


def maps(clark, jsd=(0.9, 0.1), entropy=0.3, family="bert", other=(0.9, 0.1)):
    """Maps with R² of the sink share under keep and drop, for the preset and JSD, and of another model."""

    def axes(kept, dropped):
        return [
            {"side": side, "covariate": covariate, "r_squared": value, "axis_1": value / 2}
            | {"halves_low": 0.1, "halves_high": 0.2}
            for side, covariate, value in (
                ("keep", "mean sink share", kept),
                ("keep", "content entropy", entropy),
                ("drop", "mean sink share", dropped),
                ("drop", "content entropy", 0.9),
            )
        ]

    def run(name, family, first, second):
        tables = {"axes_clark2019": axes(*first), "axes_jsd": axes(*second)}
        return made_up(tables, model=name, model_sizes={"family": family})

    return {
        "audit-minilm-clusters": run("one", family, clark, jsd),
        "audit-smollm2-clusters": run("two", "llama", other, other),
    }


def safety(*layers, whole="depends"):
    rows = [{"metric": "jsd", "scope": "all", "verdict": whole}]
    rows += [{"metric": "jsd", "scope": f"layer {n}", "verdict": said} for n, said in enumerate(layers)]
    return audit() | {"parts": [*audit()["parts"], *made_up({"safety": rows})["parts"]]}


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
    ("artefact", HOLDS, maps((0.8, 0.1))),
    ("artefact", HOLDS, maps((0.4, 0.1), jsd=(0.1, 0.1), other=(0.1, 0.1))),
    ("artefact", IN_DIRECTION, maps((0.6, 0.1), entropy=0.7)),
    ("artefact", FAILS, maps((0.49, 0.1), entropy=0.7)),
    ("artefact", FAILS, maps((0.8, 0.4))),
    ("artefact", FAILS, maps((0.6, 0.3), entropy=0.7)),
    ("safe-map", NOT_TESTABLE, safe(safety("safe", "depends"), safety("depends", "safe"))),
]


@pytest.mark.parametrize(("claim", "verdict", "results"), CASES)
def test_the_rule_decides(claim, verdict, results):
    assert judged(claim, results).verdict == verdict


def test_every_rule_can_go_either_way():
    """That of breadth needs ten models, and is tried below."""
    assert both_ways(CASES, [name for name in conventions.__all__ if name != "breadth"], ("safe_map",))


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
    assert judged("breadth", both()).floor == found.floor
    one = safety("safe")
    assert judged("safe-map", safe(one, one)).floor.count("cosine 5.0%, JSD 5.0%, entropy 5.0%") == 2
    assert "halves of the texts 10.0% to 20.0%" in judged("artefact", maps((0.8, 0.1))).floor


def test_what_explains_more_than_the_sink_is_said_and_other_maps_stand_beside():
    found = judged("artefact", maps((0.6, 0.1), entropy=0.7)).found
    assert "content entropy explains more than the sink does, 70.0% against 60.0%" in found
    assert "sink kept: mean sink share 60.0% (0.30), content entropy 70.0% (0.35); sink dropped" in found
    first, beside = found.split("Beside it, not judged: ")
    assert first.startswith("one, Clark et al. 2019: ")
    assert [part.split(":")[0] for part in beside.split("; ") if "R²" in part] == [
        "one, JSD",
        "two, Clark et al. 2019",
        "two, JSD",
    ]
    assert "explains more" not in judged("artefact", maps((0.8, 0.1))).found


def test_the_pipeline_of_bert_is_judged_on_its_architecture():
    with refused("claim artefact: result of audit-minilm-clusters", "a model of the family bert", "one"):
        judged("artefact", maps((0.8, 0.1), family="llama"))


def test_our_map_stands_beside_theirs():
    assert (
        "of 2 cells 1 depends, 1 safe" in judged("safe-map", safe(safety("safe", "depends"), safety())).found
    )
