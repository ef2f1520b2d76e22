"""Claims on another model, on made-up figures."""

import pytest
from ledger_results import CLAIMS, both_ways, judged, made_up
from wording import refused

from validation.ledger.finding import FAILS, HOLDS, IN_DIRECTION, NOT_TESTABLE
from validation.ledger.judges import models

SIZES = {"layers": 6, "heads": 12, "d_model": 384}


def kept(
    shallow,
    deep,
    layers=(6, 30),
    taken="all",
    texts="same",
    queries="content",
    T=(64, 128),
    other=(64, 128, 256),
):
    """What the value norm leaves of the median of two models at some T; a number stands for all T."""

    def run(name, count, parts, lengths, texts="same", queries="content"):
        parts = parts if isinstance(parts, dict) else dict.fromkeys(lengths, parts)
        rows = [
            {"T": length, "median_attention": 0.5, "median_value_norm": 0.5 * parts[length]}
            for length in lengths
        ]
        about = {
            "layers": taken,
            "texts_sha256": texts,
            "convention": "keep",
            "queries": queries,
            "sink": f"of {name}",
        }
        about |= {"model_sizes": {"layers": count}, "T": [1, 2]}
        return made_up({"lengths": rows}, model=name, **about)

    return {
        "lengths-minilm": run("minilm-l6", layers[0], shallow, T),
        "lengths-smollm2": run("smollm2-135m", layers[1], deep, other, texts, queries),
    }


def rolled(least, median, most):
    rows = [
        {"layers": "0", "rows": 10, "least": 0.1, "median": 0.2, "most": 0.3},
        {"layers": "0-5", "rows": 10, "least": least, "median": median, "most": most},
    ]
    return {"validate": made_up({"rollout": rows}, model_sizes=SIZES)}


def links(word, shown):
    row = {"word": word, "link": "other", "layer": 4, "shown": shown, "sink_share": 0.9}
    return {"validate": made_up({"links_named": [row]})}


SETUP = {
    "validate": made_up(
        {"verdicts": [{"layer": "0", "weighting": "value norm", "words": 136}]}, model_sizes=SIZES, T=[11, 12]
    )
}
CASES = [
    ("depth", FAILS, kept(0.2, 0.3)),
    ("depth", NOT_TESTABLE, kept(0.2, 0.2)),
    ("depth", NOT_TESTABLE, kept(0.3, 0.2)),
    ("depth", NOT_TESTABLE, kept(0.2, {64: 0.3, 128: 0.1}, other=(64, 128))),
    ("depth", FAILS, kept(0.2, {64: 0.3, 256: 0.1}, other=(64, 256))),
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


def test_depth_is_judged_by_two_models_and_the_published_one_stands_beside():
    judgement = judged("depth", kept(0.2, {64: 0.3, 128: 0.4}, other=(64, 128)))
    found = judgement.found
    assert (
        "at T 64, 128: 0.20, 0.20 in minilm-l6 (all 6 layers), sink set of minilm-l6; 0.30, 0.40 in" in found
    )
    assert "the two differ in more than depth" in found
    assert judgement.lengths == "T 64, 128 in both"
    assert (
        "published 0.50 in 4 layers, of displayed rows, which are of another kind and decide nothing" in found
    )
    assert "Whether the effect carries over to that model is not tested" in found


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"layers": (6, 6)}, ("lengths-smollm2", "all 30 layers of a model of 30", "all 6 layers")),
        ({"taken": "0-3"}, ("lengths-minilm", "all 6 layers of a model of 6", "0-3 6 layers")),
        ({"other": (256, 512)}, ("lengths-smollm2", "a T of the other model", "256, 512")),
        ({"queries": "all"}, ("lengths-smollm2", "and the queries of the other model")),
        (
            {"texts": "other"},
            ("lengths-smollm2", "the texts, the convention and the queries of the other model"),
        ),
    ],
)
def test_depth_is_not_judged_by_layers_of_one_model_or_on_other_texts(wrong, said):
    run, *rest = said
    with refused(f"claim depth: result of {run}", *rest):
        judged("depth", kept(0.2, 0.3, **wrong))


def test_what_stands_beside_an_untestable_claim_has_its_numbers():
    assert judged("setup", SETUP).found == (
        "here 6 layers, 384 wide, 72 heads, 2 sentences of our own, 136 words with a row"
    )
    assert "the -> other 0.500 (layer 4, 90.0% sink)" in judged("link-the-scissors", links("the", 0.5)).found


def test_rows_that_read_results_are_counted():
    found = judged("code", {}).found
    assert found.endswith(
        f"of the {len(CLAIMS)} rows here {sum(map(bool, (c.runs for c in CLAIMS.values())))} "
        "are read from results of runs"
    )
