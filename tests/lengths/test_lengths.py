"""Shares by layer and length: equal to what single runs give, and one line for what cannot be cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pruning_models import tiny_llama
from text_models import small_model, width

import oracle
from oracle import InputError
from oracle.inputs import cut_tokens, read_tokens
from validation.cli import main
from validation.gathering import gather
from validation.lengths import command, measure_lengths
from validation.lengths.chart import length_chart
from validation.lengths.measuring import Undeclared
from validation.lengths.passages import long_passages
from validation.lengths.tables import length_parts, median_shares
from validation.report.document import Note, Table
from validation.table import WEIGHTINGS

TEXTS = ["A heron stood in the shallow water.", "Nobody had seen the ferry since noon!"]


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama()


@pytest.fixture(scope="module")
def found(model: Any) -> Any:
    return measure_lengths(model, TEXTS, [31, 13], engine="oracle")


def tables_of(found: Any) -> dict[str, Table]:
    return {part.key: part for part in length_parts(found) if isinstance(part, Table)}


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_every_median_is_that_of_single_runs(model: Any, found: Any, name: str) -> None:
    for place, length in enumerate((13, 31)):
        by_text = []
        for text in TEXTS:
            trace = oracle.forward(model, read_tokens(model, text, False).ids[:length])
            norm = None if name == "attention" else getattr(trace, name)
            shares = oracle.sink_share(trace.attention, trace.sink_mask, norm, trace.visible)
            by_text.append(shares[:, :, 8:])  # from the first row with 8 content keys on
        whole = np.concatenate(by_text, axis=-1)
        assert median_shares(found, name)[place] == pytest.approx(np.median(whole), rel=1e-6)
        record = tables_of(found)["lengths"].records()[place]
        assert (record["T"], record["texts"], record["rows"]) == (length, 2, whole.size)
        for layer in range(5):
            row = tables_of(found)[f"lengths_{name}"].records()[1 + layer]
            assert row["layer"] == layer
            assert row[f"T{length}"] == pytest.approx(np.median(whole[layer]), rel=1e-6)


def test_rows_of_a_layer_at_a_time_are_those_of_all_layers(model: Any) -> None:
    for given in (model, replace(model, config=replace(model.config, windows=(None, 5, None, 3, 5)))):
        whole, seen = oracle.forward(given, TEXTS[0]), []

        def look(layer: int, trace: Any, whole: Any = whole, seen: list[int] = seen) -> None:
            seen.append(layer)
            for name in ("attention", "scores", "keys", "value_norm", "transformed_norm"):
                np.testing.assert_array_equal(getattr(trace, name)[0], getattr(whole, name)[layer])
                assert len(getattr(trace, name)) == 1
            np.testing.assert_array_equal(trace.visible_in(layer), whole.visible_in(layer))
            np.testing.assert_array_equal(trace.visible, whole.visible_in(layer))

        after = oracle.forward(given, TEXTS[0], each=look)
        assert seen == [0, 1, 2, 3, 4]
        with pytest.raises(
            InputError, match=r"trace\.attention: .* `each` is called with, or .* without each"
        ):
            _ = after.attention
    with pytest.raises(InputError, match="keep: expected arrays of a single layer"):
        oracle.forward(model, TEXTS[0], keep=("hidden_states",), each=look)


def test_the_engines_agree_and_lengths_are_sorted_and_taken_once(model: Any, found: Any) -> None:
    fast = measure_lengths(model, TEXTS, [13, 31, 13])
    assert list(fast.tables) == list(found.tables) == [13, 31]
    for name in WEIGHTINGS:
        np.testing.assert_allclose(median_shares(fast, name), median_shares(found, name), rtol=1e-4)


def test_a_model_with_special_tokens_closes_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    small = small_model()
    cut, less = cut_tokens(small, "The doctor saw the nurse.", [5, 3])
    assert cut.tokens == ("[CLS]", "the", "doctor", "saw", "[SEP]")
    assert less.tokens == ("[CLS]", "the", "[SEP]")
    found = measure_lengths(small, "The doctor saw the nurse.", [4, 8], layers="1", weightings="attention")
    assert list(tables_of(found)) == ["lengths", "lengths_attention"]
    assert [record["layer"] for record in tables_of(found)["lengths_attention"].records()] == [1]
    assert [record["rows"] for record in tables_of(found)["lengths"].records()] == [2 * 3, 6 * 3]
    notes = {part.key: part.text for part in length_parts(found) if isinstance(part, Note)}
    assert "[CLS] (id 2), [SEP] (id 3)" in notes["sinks"]
    assert "causal, so that" not in notes["cut"]
    assert "not tested, no key has 16 later rows" in notes["undeclared"]


def test_undeclared_sinks_stand_by_layer_with_their_keys(model: Any, found: Any) -> None:
    some = [Undeclared(3, 4, "the", 0.5), Undeclared(1, 4, "the", 0.31), Undeclared(3, 9, "a", 0.4)]
    table = tables_of(replace(found, undeclared={13: [], 31: some}))["lengths_undeclared"]
    assert table.rows == ((1, None, 0.31, "the 4"), (3, None, 0.5, "the 4, a 9"))
    assert width(table) <= 80
    text = "a" * 40  # every key is alike, so that a sink shows where one is made
    biased = replace(model, config=replace(model.config, rotary=None))
    loud = measure_lengths(biased, text, [40], sink="none", layers="0")
    traced = oracle.forward(biased, text, sink="none")
    expected = oracle.undeclared_sinks(traced.attention[:1], traced.sink_mask, traced.visible)
    assert [(one.key, one.weight) for one in loud.undeclared[40]] == [(key, w) for _, key, w in expected]


@pytest.mark.parametrize(
    ("lengths", "options", "message"),
    [
        (
            [36],
            {},
            r"text 1 of 2 \(.A heron .*\): length: .* more than 0 and at most 35 tokens: .* has 35, tiny 43",
        ),
        ([0], {}, r"text 1 of 2 \(.*\): length: expected more than 0"),
        ([5], {}, r"lengths: expected lengths with rows that count .*; found none at 5 tokens"),
        ([], {}, "lengths: expected a length and a text; found none"),
        (
            [13],
            {"weightings": "head_summed_norm"},
            "weighting: expected with lengths, names from attention, ",
        ),
        ([13], {"layers": "5"}, "layers: expected layers from 0 to 4"),
        ([13], {"sink": "token:zebra"}, "no token spelled 'zebra' in 2 texts"),
        (
            [13, 31],
            {"sink": "25"},
            r"text 1 of 2 \(.A heron .*\): at 13 tokens: sink: expected positions from 0",
        ),
        ([13], {"engine": "torch"}, "engine: expected oracle or fastpath"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    model: Any, lengths: list[int], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        measure_lengths(model, TEXTS, lengths, **options)
    with pytest.raises(InputError, match=r"at most 43 tokens: the text has 70, tiny 43 positions; found 60"):
        measure_lengths(model, TEXTS[0] * 2, [60])


def test_a_text_without_tokens_is_skipped_and_counted(model: Any, found: Any) -> None:
    some = measure_lengths(model, ["", TEXTS[0], "", TEXTS[1]], [13, 31], engine="oracle")
    for name in WEIGHTINGS:
        assert median_shares(some, name) == median_shares(found, name)
    assert some.whole == found.whole
    notes = [part.text for part in length_parts(some) if isinstance(part, Note) and part.key == "texts"]
    assert notes == ["Texts: 2 measured, 2 without tokens skipped."]
    with pytest.raises(InputError, match="at least one text with tokens; found 2 texts without any"):
        measure_lengths(model, ["", ""], [13])


def test_unknown_tokens_and_texts_of_sinks_alone_are_said_as_measure_says_them() -> None:
    small = small_model()
    texts = ["the zebra saw a zebra .", "[SEP] [SEP] [SEP] [SEP] [SEP] [SEP]"]
    parts = length_parts(measure_lengths(small, texts, [8]))
    said = {part.key: part.text for part in parts if isinstance(part, Note)}
    measured = gather(small, texts).notes
    assert said["unknown"] == "Tokens that the vocabulary lacks ([UNK]): 2."
    assert said["no_content"].endswith(": 1.")
    assert {note.key: note.text for note in measured}.items() <= said.items()


def test_a_text_is_tokenized_as_often_for_many_lengths_as_for_one(model: Any) -> None:
    def calls(lengths: list[int]) -> int:
        counting = Counting(model.tokenizer)
        measure_lengths(replace(model, tokenizer=counting), TEXTS, lengths, layers="0")
        return counting.calls

    assert calls([13, 17, 19, 23]) == calls([13]) > 0


class Counting:
    """A tokenizer that counts the texts it reads."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.calls = tokenizer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def encode(self, *given: Any, **how: Any) -> Any:
        self.calls += 1
        return self.tokenizer.encode(*given, **how)


def test_lengths_at_which_no_undeclared_sink_can_be_found_are_named(model: Any, found: Any) -> None:
    short = measure_lengths(model, TEXTS, [17, 18], sink="none", layers="0", weightings="attention")
    assert short.untested == ()
    short = measure_lengths(model, TEXTS, [12, 16, 31], sink="none", layers="0", weightings="attention")
    assert short.untested == (12, 16)
    some = replace(short, undeclared={12: [], 16: [], 31: [Undeclared(0, 4, "the", 0.5)]})
    why = "not tested at T 12, 16, where no key has 16 later rows"
    assert tables_of(some)["lengths_undeclared"].notes[-1] == why
    none = replace(short, undeclared={12: [], 16: [], 31: []})
    notes = {part.key: part.text for part in length_parts(none) if isinstance(part, Note)}
    assert f"none at a longer T, {why}" in notes["undeclared"]


def test_the_bundled_texts_are_long_enough_for_1024_tokens() -> None:
    texts = long_passages()
    assert [len(text.split()) > 1_400 for text in texts.texts] == [True, True]
    assert texts.source.startswith("bundled passages joined into two texts")


def test_the_command_shows_writes_and_draws(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: Any
) -> None:
    monkeypatch.setattr(command, "load", lambda *_: model)
    out, folder = tmp_path / "lengths.json", tmp_path / "figures"
    call = ["measure", "--model", "tiny", "--lengths", "13,31", "--json", str(out)]
    pytest.importorskip("matplotlib", reason='figures need pip install "sinkscope[figures]"')
    texts = [part for text in TEXTS for part in ("--text", text)]
    assert main([*call, *texts, "--figures", str(folder), "--figure-format", "svg"]) == 0
    shown = capsys.readouterr().out
    assert "T 31" in shown
    assert "Median sink share by layer and length: transformed" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    read = json.loads(out.read_text())
    assert read["provenance"]["lengths"] == [13, 31]
    assert read["provenance"]["sink"] == "first"
    assert read["provenance"]["T"] == [13, 13, 31, 31]
    drawn = (folder / "lengths.svg").read_text()
    assert "attention at T 13" in drawn
    assert main(call) == 0
    assert "bundled passages joined into two texts" in capsys.readouterr().out
    assert main([*call[:4], "1024", *texts]) == 2
    assert "the text has 35, tiny 43 positions; found 1,024" in capsys.readouterr().err.replace("\n  ", " ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lengths", "many"], "--lengths: expected positive numbers like 128,512; found 'many'"),
        (["--lengths", "8,-4"], "--lengths: expected positive numbers like 128,512; found '8,-4'"),
        (["--lengths", "8", "--truncate"], "--lengths and --truncate: expected one of the two"),
        (["--lengths", "8", "--verify", "3"], "--lengths and --verify: expected one of the two"),
        (["--lengths", "8", "--attention", "rows.npz"], "--lengths and --attention: expected one of the two"),
        (["--figures", "here"], "--figures: expected --lengths beside it"),
        (["--figure-format", "svg"], "--figure-format: expected --figures beside it"),
    ],
)
def test_a_wrong_call_is_one_line(options: list[str], message: str, capsys: Any) -> None:
    assert main(["measure", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_chart_has_a_line_for_every_length(found: Any) -> None:
    pytest.importorskip("matplotlib", reason='figures need pip install "sinkscope[figures]"')
    from validation.audit.drawing import Subject

    subject = Subject("tiny", 2, "(first): first token")
    drawn = length_chart(found, subject, format="svg")
    assert drawn == length_chart(found, subject, format="svg")
    assert drawn != length_chart(replace(found, tables={31: found.tables[31]}), subject, format="svg")
