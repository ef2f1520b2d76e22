"""The study's rule on inputs whose answer is known, its arithmetic, and one run on the real model."""

from dataclasses import replace

import numpy as np
import pytest
from text_models import by_key, hand_trace, small_model, width

from oracle import InputError
from validation import gathering
from validation.report.document import Check, Note, Table
from validation.studies import norm_weighting
from validation.studies.norm_weighting import QUESTION, RULE, Moves, overall, run, verdict
from validation.studies.published_norm_weighting import arithmetic, published
from validation.table import tabulate
from validation.texts import SENTENCES, read_texts

TEXT = "she saw the doctor"  # 6 tokens, 4 words
NORMS = ("value_norm", "transformed_norm")


def study(monkeypatch, sink_weight, sink_norm, text=TEXT, **options):
    """The study on one text whose content rows all give the sinks this weight and this norm."""
    count = len(text.split()) + 2
    row = np.full(count, (1 - sink_weight) / (count - 2))
    row[[0, -1]] = sink_weight / 2
    norm = np.ones(count)
    norm[[0, -1]] = sink_norm
    trace = hand_trace(text, np.broadcast_to(row, (2, 3, count, count)), norm, norm)
    monkeypatch.setattr(gathering.oracle, "forward", lambda *_, **__: trace)
    return run(small_model(), [text], **options)


@pytest.mark.parametrize(
    ("before", "stay", "rose", "answer"),
    [
        (3, 0, 0, "collapsed"),
        (3, 1, 0, "stays"),
        (3, 1, 2, "stays"),
        (3, 0, 2, "rose"),
        (0, 0, 2, "rose"),
        (0, 0, 0, "none"),
    ],
)
def test_the_rule_on_a_layer(before, stay, rose, answer):
    assert verdict(Moves(10, before, stay, rose)) == answer
    assert verdict(Moves(0, 0, 0, 0)) == "no rows"


@pytest.mark.parametrize(
    ("layers", "answer"),
    [
        ("collapsed collapsed", "collapsed"),
        ("collapsed none", "collapsed"),
        ("collapsed no_rows", "collapsed"),
        ("collapsed stays", "not collapsed"),
        ("collapsed rose", "not collapsed"),
        ("none rose", "not collapsed"),
        ("none none", "none"),
        ("none no_rows", "none"),
        ("no_rows no_rows", "no rows"),
    ],
)
def test_the_rule_on_all_layers(layers, answer):
    assert overall([layer.replace("_", " ") for layer in layers.split()]) == answer


def test_question_and_rule_are_the_first_that_is_said(monkeypatch):
    parts = study(monkeypatch, 0.8, 1)
    assert parts[:2] == (Note("question", f"Question: {QUESTION}"), Note("rule", f"Rule: {RULE}"))
    assert "no row of the one-row-per-word table stays above 50%" in RULE
    assert "Stated before the run" in RULE


@pytest.mark.parametrize(
    ("weight", "norm", "answer", "sentence"),
    [
        (0.8, 0.01, "collapsed", "the sink share has collapsed"),
        (0.8, 1, "stays", "the sink share has not collapsed"),
        (0.4, 1, "none", "no row was above 50% to begin with"),
        (0.4, 4, "rose", "the sink share has not collapsed"),
    ],
)
def test_verdict_on_rows_made_by_hand(monkeypatch, weight, norm, answer, sentence):
    parts = by_key(study(monkeypatch, weight, norm))
    records = parts["verdicts"].records()
    assert [(row["layer"], row["weighting"]) for row in records] == [
        (layer, weighting) for weighting in ("value norm", "transformed") for layer in ("0", "1", "sum")
    ]
    share = weight * norm / (weight * norm + 1 - weight)
    for row in records:
        whole = row["layer"] == "sum"
        assert row["verdict"] == ("not collapsed" if whole and answer in ("stays", "rose") else answer)
        assert row["words"] == (8 if whole else 4)
        assert row["above_half_before"] == (row["words"] if weight > 0.5 else 0)
        assert row["above_half_after"] == (row["words"] if share > 0.5 else 0)
        assert row["worst"] == row["headline_median"] == pytest.approx(share)
        assert row["headline_share_above_half"] == (share > 0.5)
    for name in NORMS:
        assert f": {sentence}." in parts[f"verdict_{name}"].text
        worse = [row["worse"] for row in parts[f"words_{name}"].records()]
        assert worse == ([4, 4, 4] if norm > 1 else [0, 0, 0])
    assert parts["odds_law"].ok


def test_layers_are_judged_one_by_one(monkeypatch):
    """One layer collapses and the other does not: together they have not."""
    rows = np.broadcast_to([0.7, 0.05, 0.05, 0.05, 0.05, 0.1], (2, 3, 6, 6))
    norm = np.ones((2, 3, 6))
    norm[1, :, [0, 5]] = 0.01
    trace = hand_trace(TEXT, rows, norm, norm)
    monkeypatch.setattr(gathering.oracle, "forward", lambda *_, **__: trace)
    parts = by_key(run(small_model(), [TEXT]))
    assert [row["verdict"] for row in parts["verdicts"].records()[:3]] == [
        *("stays", "collapsed", "not collapsed")
    ]
    text = parts["verdict_value_norm"].text
    assert "Still above 50% of those word rows that were: 4 of 4 in layer 0, none of 4 in layer 1" in text
    only = by_key(run(small_model(), [TEXT], layers="1"))
    assert [row["verdict"] for row in only["verdicts"].records()[:2]] == ["collapsed", "collapsed"]
    assert [row["layers"] for row in only["words_attention"].records()] == ["1"]


def test_a_layer_that_rises_and_one_with_nothing_are_said(monkeypatch):
    """No row was above 50% in either layer; in the first the norms lift all of them."""
    rows = np.broadcast_to([0.3, 0.15, 0.15, 0.15, 0.15, 0.1], (2, 3, 6, 6))
    norm = np.ones((2, 3, 6))
    norm[0, :, [0, 5]] = 9
    trace = hand_trace(TEXT, rows, norm, norm)
    monkeypatch.setattr(gathering.oracle, "forward", lambda *_, **__: trace)
    parts = by_key(run(small_model(), [TEXT]))
    assert [row["verdict"] for row in parts["verdicts"].records()[:3]] == ["rose", "none", "not collapsed"]
    text = parts["verdict_value_norm"].text
    assert "Rows that rose above 50%: 4 in layer 0; none to begin with in layer 1 (worst" in text


def test_a_text_of_one_word_leaves_no_verdict(monkeypatch):
    parts = by_key(study(monkeypatch, 0.8, 0.5, text="doctor"))
    assert {row["verdict"] for row in parts["verdicts"].records()} == {"no rows"}
    assert parts["verdict_value_norm"].text.endswith("no word has a row, so there is no verdict.")
    assert {row["undefined"] for row in parts["words_attention"].records()} == {1}
    assert "links_most_sink" not in parts


def test_special_tokens_only_crash_nothing():
    parts = by_key(run(small_model(), ["[SEP]"]))
    assert {row["verdict"] for row in parts["verdicts"].records()} == {"no rows"}
    assert parts["headline"].records()[0]["rows"] == 0


def test_the_published_sum_is_done_again():
    table, note = arithmetic()
    published, right, needed = table.records()
    assert (published["ratio"], published["sink_share"]) == (0.6, 0.73)
    assert right["sink_share"] == pytest.approx(0.57 / 0.62, abs=1e-15)
    assert f"{right['sink_share']:.3f}" == "0.919"
    assert needed["ratio"] == pytest.approx((0.73 / 0.27) / (0.95 / 0.05), abs=1e-15)
    assert needed["sink_share"] == pytest.approx(0.73, abs=1e-15)
    assert "goes to 91.9%, not to 73%; that would take r = 0.142" in note.text


def test_without_published_figures_the_rest_is_said(monkeypatch):
    def nothing():
        raise InputError("x: expected a; found b. C.")

    whole = study(monkeypatch, 0.8, 1)
    monkeypatch.setattr(norm_weighting, "published", nothing)
    parts = study(monkeypatch, 0.8, 1)
    lost = {part.key for part in whole} - {part.key for part in parts}
    assert lost == {"published", "arithmetic", "depth"}
    (note,) = [part for part in parts if part.key == "not_run"]
    assert note.text == "NOT RUN: published figures beside these: x: expected a; found b. C."


def test_published_figures_are_those_of_the_ledger():
    """As published: 110 rows, 224 ratios a token; counts and shares agree."""
    values = {key: figure.value for key, figure in published().items()}
    assert (values["median_attention"], values["median_value_norm"]) == (0.199, 0.1)
    assert (values["worst_attention"], values["worst_value_norm"]) == (0.977, 0.834)
    counts = {key: (f.count, f.of) for key, f in published().items() if f.count is not None}
    assert counts == {
        "half_attention": (25, 110),
        "half_value_norm": (12, 110),
        "ninety_attention": (8, 110),
        "ninety_value_norm": (0, 110),
        "worse_value_norm": (31, 110),
        "same_head_value_norm": (98, 110),
        "below_[CLS]": (196, 224),
        "below_[SEP]": (147, 224),
    }
    assert all(values[key] == rows / of for key, (rows, of) in counts.items())


def test_the_odds_check_can_fail():
    rows = np.random.default_rng(5).dirichlet(np.ones(4), (1, 2, 4))
    norms = {name: np.random.default_rng(6).random((1, 2, 4)) + 0.1 for name in NORMS}
    table = tabulate(rows, np.arange(4) == 0, np.ones((4, 4), bool), norms)
    assert norm_weighting._odds_law(table).ok
    ratios = {**table.ratios, "transformed_norm": table.ratios["transformed_norm"] * (1 + 1e-9)}
    check = norm_weighting._odds_law(replace(table, ratios=ratios))
    assert not check.ok
    assert "largest deviation" in check.found


def test_links_of_the_named_words_and_the_rows_with_most_sink(monkeypatch):
    parts = by_key(study(monkeypatch, 0.8, 0.5, text="The doctor saw the nurse"))
    named = parts["links_named"].records()
    assert [row["word"] for row in named] == ["doctor", "nurse"]
    assert {row["layer"] for row in named} == {1}
    assert len(parts["links_most_sink"].records()) == 5
    assert [row["sink_share"] for row in parts["links_most_sink"].records()] == pytest.approx([0.8] * 5)
    assert "links_named" not in by_key(study(monkeypatch, 0.8, 0.5, text="she saw a donkey"))


def test_too_long_a_text_is_named():
    long = " ".join(["doctor"] * 40)
    with pytest.raises(InputError, match=r"text 2 of 2 .*at most 31 tokens"):
        run(small_model(), [TEXT, long])
    assert "T 6-31" in by_key(run(small_model(), [TEXT, long], truncate=True))["headline"].title


@pytest.fixture(scope="module")
def real(minilm):
    return run(minilm, SENTENCES)


def test_real_model_tables_agree_with_each_other(real):
    parts = by_key(real)
    for weighting, name in (("value norm", NORMS[0]), ("transformed", NORMS[1])):
        rows = [row for row in parts["verdicts"].records() if row["weighting"] == weighting]
        words = {row["layers"]: row for row in parts[f"words_{name}"].records()}
        before = {row["layers"]: row for row in parts["words_attention"].records()}
        headline = {str(row["layer"]): row for row in parts[f"headline_{name}"].records()}
        for row in rows[:-1]:
            layer = row["layer"]
            assert row["above_half_after"] == words[layer]["above_half"]
            assert row["above_half_before"] == before[layer]["above_half"]
            assert row["worst"] == words[layer]["worst"]
            assert row["headline_median"] == headline[layer]["median"]
            assert row["headline_share_above_half"] == headline[layer]["share_above_half"]
            stays = "stays" if row["above_half_after"] else "collapsed"
            assert row["verdict"] == (stays if row["above_half_before"] else "none")
        assert rows[-1]["above_half_after"] == sum(row["above_half_after"] for row in rows[:-1])
        overall = next(row for row in parts["headline"].records() if row["weighting"] == weighting)
        assert rows[-1]["headline_median"] == overall["median"]
        assert words["0-5"]["words"] == words["0"]["words"] == 136
        assert words["0-5"]["undefined"] == 0


def test_real_model_says_what_it_must(real):
    parts = by_key(real)
    assert "Not testable by one model" in parts["depth"].text
    assert "ANOTHER MODEL" in " ".join(parts["published"].notes)
    assert [row["figure"] for row in parts["published"].records()] == [f.name for f in published().values()]
    assert all(row["one_set"] is not None for row in parts["published"].records())
    ratios = parts["value_norm_ratio"].records()
    assert {(row["layer"], row["token"]) for row in ratios} == {
        (layer, token) for layer in ("all", *range(6)) for token in ("[CLS]", "[SEP]")
    }
    assert all(row["n"] == 14 * 12 for row in ratios if row["layer"] != "all")
    assert all(
        "T 11-18" in parts[key].title for key in ("headline", "words_attention", "headline_value_norm")
    )
    assert all(check.ok for check in real if isinstance(check, Check))
    assert all(width(table) <= 80 for table in real if isinstance(table, Table))
    named = {(row["word"], row["link"]) for row in parts["links_named"].records()}
    assert {word for word, _ in named} == {"doctor", "nurse", "scissors", "trophy", "suitcase"}


def test_any_text_file_works(minilm, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("Ein Hund bellt laut.\n\n👩‍🔬 日本語 don't\n...!!!\n", encoding="utf-8")
    parts = by_key(run(minilm, read_texts(file), layers="0,5"))
    assert [row["layers"] for row in parts["words_attention"].records()] == ["0", "5", "0,5"]
    assert parts["texts"].text == "Texts: 3 measured, 0 without tokens skipped."
