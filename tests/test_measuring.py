"""The sink report: what it holds on a small model, on arrays, and on the real model."""

from dataclasses import replace

import numpy as np
import pytest
from text_models import by_key, hand_trace, small_model, width

import fastpath
import oracle
from oracle import InputError
from validation import gathering
from validation.arrays_file import read_arrays
from validation.choices import parse_layers
from validation.gathering import gather, gather_arrays
from validation.measuring import measure, measure_arrays
from validation.report.document import Check, Note, Table
from validation.table import WEIGHTINGS
from validation.texts import SENTENCES, read_texts

TEXTS = ["The doctor saw the nurse.", "A donkey sleeps!", "She walks"]


@pytest.fixture(scope="module")
def model():
    return small_model()


def texts_of(parts, key):
    return [part.text for part in parts if isinstance(part, Note) and part.key == key]


def table_parts(parts):
    return {part.key: part for part in parts if isinstance(part, Table)}


def test_a_report_has_everything_in_it(model):
    parts = measure(model, TEXTS)
    tables = table_parts(parts)
    assert list(tables) == [
        "headline",
        *(f"headline_{name}" for name in (*WEIGHTINGS, "head_summed_norm")),
        "heads",
        "value_norm_ratio",
    ]
    notes = by_key(part for part in parts if isinstance(part, Note))
    assert "[CLS] (id 2), [SEP] (id 3)" in notes["sinks"].text
    assert "5, 7, 8, in 3 texts" in notes["T"].text  # "sleeps" and "walks" are two pieces each
    assert notes["texts"].text == "Texts: 3 measured, 0 without tokens skipped."
    assert "Rows: 84" in notes["rows"].text  # (6 + 5 + 3) queries in 2 layers of 3 heads
    assert "content queries" in notes["selection"].text
    assert "not tested" in notes["undeclared"].text
    assert all(width(table) <= 80 for table in tables.values())


def test_the_numbers_are_the_oracles(model):
    records = table_parts(measure(model, TEXTS, engine="oracle"))["headline"].records()
    fast = table_parts(measure(model, TEXTS))["headline"].records()
    for one, other in zip(records, fast, strict=True):
        assert list(one) == list(other)
        for name, value in one.items():
            exact = value is None or isinstance(value, str)
            assert other[name] == (value if exact else pytest.approx(value, rel=1e-5, abs=1e-6)), name
    traces = [oracle.forward(model, text, keep=oracle.trace.KEEP_ALL) for text in TEXTS]
    for record, name in zip(records, WEIGHTINGS, strict=False):
        shares = np.concatenate(
            [
                oracle.sink_share(
                    t.attention, t.sink_mask, None if name == "attention" else getattr(t, name)
                )[:, :, ~t.sink_mask].ravel()
                for t in traces
            ]
        )
        assert record["rows"] == len(shares) == 84
        assert record["median"] == np.median(shares)
        assert record["worst"] == shares.max()
        assert record["above_half"] == (shares > 0.5).sum() > 0
    summed = np.concatenate(
        [
            oracle.weight_share(oracle.head_summed_norm(t.attention, t.transformed_gram), t.sink_mask)[
                :, ~t.sink_mask
            ].ravel()
            for t in traces
        ]
    )
    assert records[3]["median"] == np.median(summed)


def test_weightings_layers_sink_and_queries_are_choices(model):
    parts = measure(model, TEXTS[0], weightings="value_norm", layers="1", sink="first", queries="all")
    tables = table_parts(parts)
    assert list(tables) == ["headline", "headline_value_norm", "heads", "value_norm_ratio"]
    assert [record["layer"] for record in tables["headline_value_norm"].records()] == [1]
    assert tables["headline"].records()[0]["rows"] == 3 * 8
    assert {record["token"] for record in tables["value_norm_ratio"].records()} == {"first token"}
    assert "layer 1" in texts_of(parts, "selection")[0]
    with pytest.raises(InputError, match="layers: expected layers from 0 to 1"):
        measure(model, TEXTS, layers="2")
    with pytest.raises(InputError, match="weighting: expected names"):
        measure(model, TEXTS, weightings="norm")
    assert parse_layers("0-1", 2) == (0, 1)


def test_texts_without_tokens_are_skipped_and_counted(model):
    parts = measure(model, ["", "the doctor", "   ", "\u200d", "[SEP]"])
    assert texts_of(parts, "texts") == ["Texts: 2 measured, 3 without tokens skipped."]
    assert texts_of(parts, "no_content") == ["Texts whose tokens are all sinks, so that no row counts: 1."]
    assert texts_of(parts, "text") == [
        "text 5: the text itself contains [SEP] (token 1); it counts as a special token"
    ]
    with pytest.raises(InputError, match="text: expected at least one text with tokens; found 2 texts"):
        measure(model, ["", " "])


def test_special_tokens_only_give_no_rows_and_no_crash(model):
    parts = measure(model, "[SEP] [SEP]")
    headline = table_parts(parts)["headline"].records()
    assert [record["rows"] for record in headline] == [0, 0, 0, 0]
    assert np.isnan(headline[0]["median"])
    everything = measure(model, "[SEP]", queries="all")
    assert "no content mass (share 1, content undefined): 18" in texts_of(everything, "undefined")[0]


def test_many_notes_on_texts_are_cut_short(model):
    texts = ["doctor " * count + "[CLS]" for count in range(11)]
    said = texts_of(measure(model, [*texts, "doctor"]), "text")
    assert len(said) == 9
    assert said[-1] == "3 more notes on texts."


def test_what_is_the_same_of_several_texts_is_said_once(model):
    said = texts_of(measure(model, ["[CLS] doctor", "doctor", "[CLS] nurse", "a [SEP]"]), "text")
    assert said == [
        "2 of 4 texts: the text itself contains [CLS] (token 1); it counts as a special token",
        "text 4: the text itself contains [SEP] (token 2); it counts as a special token",
    ]


def test_a_causal_model_without_bos_is_warned_about_above_the_numbers(model):
    config = replace(model.config, causal=True, bos_id=3, sink_ids=())  # the tokenizer puts [CLS] first
    parts = measure(replace(model, config=config), TEXTS, min_content_keys=1)
    said = "WARNING: 3 of 3 texts: position 0 is not the BOS, which would be [SEP] (id 3): "
    said += "the tokenizer adds none"
    assert texts_of(parts, "warning") == [said]
    assert parts[0].text == said
    assert texts_of(parts, "sinks")[0].startswith("Sink set (first): first token (id 2). ")
    parts = measure(replace(model, config=replace(config, bos_id=2)), TEXTS, min_content_keys=1)
    assert texts_of(parts, "warning") == []
    assert texts_of(parts, "text") == [
        "3 of 3 texts: position 0 is the BOS [CLS] (id 2), which the tokenizer adds"
    ]


def test_errors_name_their_text(model):
    long = " ".join(["doctor"] * 40)
    with pytest.raises(
        InputError, match=r"text 2 of 2 \('doctor doctor.*expected at most 31 tokens.*42 tokens"
    ):
        measure(model, ["nurse", long])
    with pytest.raises(InputError, match=r"^text: expected at most 31 tokens"):
        measure(model, long)
    with pytest.raises(
        InputError, match=r"text 2 of 2 \('She walks'\): sink: expected positions from 0 to 4"
    ):
        measure(model, TEXTS[::2], sink="7")
    cut = measure(model, ["nurse", long], truncate=True)
    assert "3, 31, in 2 texts" in texts_of(cut, "T")[0]


def drawn(model, **options):
    (check,) = (part for part in measure(model, TEXTS, verify=9, **options) if isinstance(part, Check))
    return check


def test_random_rows_are_verified_on_request(model, monkeypatch):
    assert not [part for part in measure(model, TEXTS) if isinstance(part, Check)]
    check = drawn(model, verify_seed=5)
    assert check.ok
    assert check.expected.startswith("9 of 84 rows, drawn with seed 5")
    assert check == drawn(model, verify_seed=5)
    assert len({drawn(model).expected for _ in range(3)}) == 3  # other rows each time, and the seed is said
    right = fastpath.row_measures

    def other(*given):  # the verification has its own oracle; only the table is spoiled
        found = right(*given)
        return (
            found
            if given[0].ndim == 2
            else found._replace(shares={k: s * 0.9 for k, s in found.shares.items()})
        )

    monkeypatch.setattr(fastpath, "row_measures", other)
    assert not drawn(model).ok


@pytest.mark.parametrize("options", [{"engine": "oracle", "verify": 3}, {"verify_seed": 1}])
def test_a_verification_of_nothing_is_refused(model, options):
    with pytest.raises(InputError, match="verify"):
        measure(model, TEXTS, **options)


def test_what_is_cut_is_said(model):
    long = " ".join(["doctor"] * 40)
    assert texts_of(measure(model, ["nurse", long], truncate=True), "cut") == ["1 text cut: 42 -> 31 tokens."]
    parts = measure(model, [long] * 9, truncate=True)
    assert parts[0].text == "9 texts cut: 42, 42, 42, 42, 42, 42, 42, 42, ... -> 31 tokens."
    assert texts_of(measure(model, ["nurse"], truncate=True), "cut") == []


def test_a_text_without_the_token_has_no_visible_sink_and_is_counted(model):
    parts = measure(model, ["the doctor", "the nurse"], sink="token:doctor")
    assert "In 1 of 2 texts no sink is visible" in texts_of(parts, "sinks")[0]
    # 3 queries of the first text ([CLS], the, [SEP]) and all 4 of the second, in 2 layers of 3 heads
    assert "Rows: 42" in texts_of(parts, "rows")[0]
    assert "no visible sink (share 0, no r): 24" in texts_of(parts, "undefined")[0]
    with pytest.raises(
        InputError, match="sink: expected a token that a text has; found no token spelled 'x'"
    ):
        measure(model, ["the doctor", "the nurse"], sink="token:x")
    arrays = {
        "attention": np.full((2, 1, 1, 3, 3), 1 / 3),
        "tokens": [["a", "b", "c"], ["a", "d", "c"]],
    }
    options = {"layout": "batch layer head query key"}
    found = measure_arrays(arrays, sink="token:b", **options)
    assert "In 1 of 2 texts no sink is visible" in texts_of(found, "sinks")[0]
    with pytest.raises(InputError, match="no token spelled 'x' in 2 texts"):
        measure_arrays(arrays, sink="token:x", **options)


def test_without_a_sink_shares_are_zero_by_choice(model):
    assert "by choice, so every share is 0" in texts_of(measure(model, TEXTS, sink="none"), "sinks")[0]


def test_tokens_that_the_vocabulary_lacks_are_counted(model):
    assert texts_of(measure(model, ["the doctor"]), "unknown") == []
    found = texts_of(measure(model, ["the \N{SNOWMAN} doctor", "\N{SNOWMAN}"]), "unknown")
    assert found == ["Tokens that the vocabulary lacks ([UNK]): 2."]


def test_errors_name_the_line_of_a_file(model, tmp_path):
    (tmp_path / "texts.txt").write_text("The doctor saw the nurse.\n\n\nShe walks\n")
    texts = read_texts(tmp_path / "texts.txt")
    with pytest.raises(
        InputError, match=r"text 2 of 2, line 4 of the file \('She walks'\): sink: expected pos"
    ):
        measure(model, texts, sink="7")


def test_rows_that_are_all_left_out_are_refused():
    rows = np.tri(6) / np.tri(6).sum(axis=1, keepdims=True)
    with pytest.raises(
        InputError, match="see at least 8 content keys; found at most 5 in the longest text"
    ) as at:
        measure_arrays(np.broadcast_to(rows, (1, 2, 6, 6)), sink="first")
    assert "all 10 are left out" in str(at.value)
    assert measure_arrays(np.broadcast_to(rows, (1, 2, 6, 6)), sink="first", min_content_keys=5)


def test_a_warning_stands_above_the_numbers():
    batch = np.full((2, 1, 3, 3), 1 / 3)
    batch[1] = [0.5, 0.5, 0]
    first = measure_arrays(batch, sink="first")[0]
    assert first.key == "warning"
    assert first.text.startswith("WARNING: ")
    parts = measure_arrays(batch, sink="first", layout="batch head query key")
    assert texts_of(parts, "warning") == []


def test_progress_is_told(model):
    calls = []
    measure(model, TEXTS, progress=lambda *call: calls.append(call))
    assert calls == [("texts", done, 3) for done in range(4)]
    calls.clear()
    measure_arrays(np.full((1, 2, 1, 4, 4), 0.25), sink="0", progress=lambda *call: calls.append(call))
    assert calls == [("texts", done, 2) for done in range(3)]


def test_each_sees_every_trace_that_counts(model):
    seen = []
    found = gather(model, ["", *TEXTS], each=lambda index, trace: seen.append((index, trace.text)))
    assert seen == list(enumerate(["", *TEXTS]))[1:]
    assert sorted(set(found.table.text.tolist())) == [1, 2, 3]


def test_arrays_give_what_their_model_gives(model, tmp_path):
    trace = oracle.forward(model, TEXTS[0])
    file = tmp_path / "rows.npz"
    norms = {name: getattr(trace, name) for name in WEIGHTINGS[1:]}
    np.savez(file, attention=trace.attention, tokens=np.array(trace.tokens), **norms)
    from_file, from_model = measure_arrays(file), measure(model, TEXTS[0], weightings=WEIGHTINGS)
    first, second = table_parts(from_file), table_parts(from_model)
    assert list(first) == list(second)
    for key, table in first.items():
        for ours, theirs in zip(table.records(), second[key].records(), strict=True):
            assert [value for value in ours.values() if isinstance(value, str)] == [
                value for value in theirs.values() if isinstance(value, str)
            ]
            numbers = [[v for v in row.values() if isinstance(v, float | int)] for row in (ours, theirs)]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-12)
    assert "axes read as (layer, head, query, key) from shape (2, 3, 8, 8)" in texts_of(from_file, "arrays")
    assert "Sink set (special): [CLS], [SEP]." in texts_of(from_file, "sinks")[0]


def test_arrays_without_norms_have_one_weighting():
    parts = measure_arrays(np.full((2, 3, 5, 5), 0.2, np.float16), sink="0")
    tables = table_parts(parts)
    assert list(tables) == ["headline", "headline_attention", "heads"]
    assert tables["headline"].records()[0]["median"] == pytest.approx(0.2, abs=1e-15)
    (closed,) = [text for text in texts_of(parts, "arrays") if "closed" in text]
    assert closed == "rows closed to sum to one: 30, the largest deviation 2.4e-04"
    with pytest.raises(InputError, match="weighting: expected names from attention; found 'value_norm'"):
        measure_arrays(np.full((2, 3, 5, 5), 0.2), sink="0", weightings="value_norm")


def test_an_empty_text_of_a_batch_is_skipped_and_counted_and_the_others_keep_their_numbers():
    drawn = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3, 2, 5))  # (layer, batch, head, query)
    batch, pair = drawn.copy(), drawn[:, [0, 2]]
    batch[:, 1] = 0
    tokens = [["[CLS]", *"abcd"], ["[PAD]"] * 5, ["[CLS]", *"efgh"]]
    pair_tokens = [tokens[0], tokens[2]]
    for sink in ("0", "special", "first", "none", "token:[CLS]"):
        found = read_arrays({"attention": batch, "tokens": tokens}, sink=sink)
        assert found.empty == (1,)
        parts = measure_arrays(found, sink=sink)
        alone = measure_arrays({"attention": pair, "tokens": pair_tokens}, sink=sink)
        assert texts_of(parts, "texts") == ["Texts: 2 measured, 1 without tokens skipped."]
        assert not texts_of(parts, "no_content")
        assert texts_of(parts, "sinks") == texts_of(alone, "sinks")
        for key, table in table_parts(alone).items():
            assert table_parts(parts)[key].rows == table.rows
        gathered = gather_arrays(found, sink=sink)
        assert sorted(set(gathered.table.text.tolist())) == [0, 2]
    with pytest.raises(InputError, match=r"at least one text with tokens; found no weight.*in 2 texts"):
        measure_arrays(np.zeros((2, 2, 3, 5, 5)), sink="0", layout="layer batch head query key")
    with pytest.raises(InputError, match=r"no token spelled '\[PAD\]' in 2 texts"):
        measure_arrays({"attention": batch, "tokens": tokens}, sink="token:[PAD]")


def test_rows_without_mass_are_undefined_and_counted():
    parts = measure_arrays([[[[0.5, 0.5, 0], [0, 0, 0], [0, 0.5, 0.5]]]], sink="0", layers="0")
    assert "rows without mass, undefined: 1" in texts_of(parts, "arrays")
    assert "no mass at all (undefined, left out): 1" in texts_of(parts, "undefined")[0]
    assert table_parts(parts)["headline"].records()[0]["rows"] == 1


def test_causal_arrays_start_late_and_say_so():
    rows = np.tri(12) / np.tri(12).sum(axis=1, keepdims=True)
    parts = measure_arrays(np.broadcast_to(rows, (1, 2, 12, 12)), sink="first")
    assert "taken as causal" in " ".join(texts_of(parts, "arrays"))
    assert "14 causal rows with fewer than 8 content keys left out" in texts_of(parts, "rows")[0]
    assert table_parts(parts)["headline"].records()[0]["rows"] == 8
    early = measure_arrays(np.broadcast_to(rows, (1, 2, 12, 12)), sink="first", min_content_keys=1)
    assert table_parts(early)["headline"].records()[0]["rows"] == 22


def test_a_trace_by_hand_gives_the_numbers_by_hand(model, monkeypatch):
    """[CLS] the doctor [SEP], 95% on [CLS] whose value norm is 0.6 of the content's: .919, not .73."""
    rows = np.broadcast_to([0.95, 0.03, 0.02, 0], (2, 3, 4, 4))
    trace = hand_trace("the doctor", rows, value_norm=[0.6, 1, 1, 1])
    monkeypatch.setattr(gathering.oracle, "forward", lambda *_, **__: trace)
    records = {
        row["weighting"]: row for row in table_parts(measure(model, "the doctor"))["headline"].records()
    }
    assert records["attention"]["median"] == pytest.approx(0.95)
    assert records["value norm"]["median"] == pytest.approx(0.57 / 0.62)
    assert records["value norm"]["worse"] == 0
    assert (records["value norm"]["above_half"], records["value norm"]["above_ninety"]) == (12, 12)


def test_the_bundled_sentences_on_the_real_model(minilm):
    parts = measure(minilm, SENTENCES)
    tables = table_parts(parts)
    records = {row["weighting"]: row for row in tables["headline"].records()}
    assert records["attention"]["rows"] == sum(
        6 * 12 * (len(minilm.tokenizer.encode(sentence).ids) - 2) for sentence in SENTENCES
    )
    assert all(0 < record["median"] < record["worst"] <= 1 for record in records.values())
    assert {record["token"] for record in tables["value_norm_ratio"].records()} == {"[CLS]", "[SEP]"}
    assert all(width(table) <= 80 for table in tables.values())
