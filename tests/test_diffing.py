"""The diff and its bounds: they must notice what is wrong, name it first, and leave what is right alone."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_models import small_model

from oracle import InputError, Model, load_model
from oracle.model import Linear
from validation.diffing import diff
from validation.forward_checks import Agreement, choose_batch, long_text, padded, validate_forward
from validation.report.document import Check, Note, Part, Table
from validation.stages import AXES, DERIVED, IMPLEMENTATIONS, read_texts, runner, single, truer
from validation.tally import Tally, bounds_for, compare_stages

TEXTS = ([5, 9, 11, 3, 8], [7, 7, 2])
Stages = dict[str, np.ndarray[Any, Any]]


@pytest.fixture
def small(tmp_path: Path) -> Model:
    pytest.importorskip("torch", reason='the reference needs pip install "sinkscope[reference]"')
    pytest.importorskip("transformers", reason='the reference needs pip install "sinkscope[reference]"')
    from validation.reference import random_bert

    return load_model(random_bert(tmp_path / "small", 5))


@pytest.fixture
def memory(bert_config: dict[str, Any], bert_tensors: Callable[..., Any]) -> Model:
    from oracle.families import Checkpoint, build_model

    return build_model(Checkpoint(bert_config, bert_tensors(bert_config)))


def split(parts: tuple[Part, ...]) -> tuple[Table, Check, Note]:
    table, check, lengths, note = parts
    assert isinstance(lengths, Note)
    assert lengths.key == "T"
    assert isinstance(table, Table)
    assert isinstance(check, Check)
    assert isinstance(note, Note)
    return table, check, note


def spoil(model: Model, layer: int, **changes: Any) -> Model:
    layers = list(model.layers)
    layers[layer] = replace(layers[layer], **changes)
    return replace(model, layers=tuple(layers))


@pytest.mark.parametrize("first", IMPLEMENTATIONS)
@pytest.mark.parametrize("second", IMPLEMENTATIONS)
def test_every_pair_of_implementations_agrees(first: str, second: str, small: Model) -> None:
    table, check, note = split(diff(small, first, second, TEXTS))
    assert check.ok, check.found
    assert note.text == "No stage leaves its bound."
    both_oracle = first.startswith("oracle") and second.startswith("oracle")
    stages = [row["stage"] for row in table.records()]
    assert stages == [name for name in AXES if both_oracle or name != "transformed_norm"]
    if first == second:
        assert all(row["max_absolute"] == 0 for row in table.records())


def test_the_table_has_shapes_dtypes_and_the_worst_place(small: Model) -> None:
    table, _, _ = split(diff(small, "torch-float64", "oracle-float32", TEXTS))
    rows = {row["stage"]: row for row in table.records()}
    assert table.title == "oracle-float32 against torch-float64"
    assert rows["attention"]["shape"] == "3,3,T,T"
    assert rows["values"]["shape"] == "3,3,T,10"
    assert rows["embeddings"]["shape"] == "T,30"
    assert rows["hidden_states"]["shape"] == "4,T,30"
    assert rows["attention"]["dtype"] == "float32 float64"
    assert [part[0] for part in rows["attention"]["worst"].split()] == ["x", "L", "H", "q", "k"]
    assert (rows["attention"]["bound"], rows["attention"]["bound_of"]) == (1e-5, "1")
    assert 0 < rows["attention"]["max_absolute"] < 1e-5
    assert rows["attention"]["max_ulps"] >= 1


def test_a_spoilt_weight_is_found_at_its_stage_and_layer(small: Model) -> None:
    value = small.layers[1].value
    wrong = Linear(value.weight, np.concatenate([value.bias[:-1], value.bias[-1:] + 0.01]).astype(np.float32))
    table, check, note = split(diff(spoil(small, 1, value=wrong), "oracle-float64", "torch-float64", TEXTS))
    assert not check.ok
    assert note.text.startswith("First to leave its bound: values (text 1, layer 1): outside its bound")
    within = {row["stage"]: row["within"] for row in table.records()}
    assert within["embeddings"]
    assert not within["values"]
    assert table.records()[3]["worst"].startswith("x")


def test_value_norms_are_a_stage_of_both_sides_with_a_bound_relative_to_each(small: Model) -> None:
    table, _, _ = split(diff(small, "oracle-float32", "torch-float32", TEXTS))
    row = {row["stage"]: row for row in table.records()}["value_norm"]
    assert (row["shape"], row["dtype"]) == ("3,3,T", "float64")
    assert (row["bound"], row["bound_of"]) == (1e-5, "value")
    assert [part[0] for part in row["worst"].split()] == ["x", "L", "H", "k"]
    assert 0 < row["max_relative"] < 1e-5


def test_norms_of_other_vectors_leave_their_bound(memory: Model) -> None:
    right = run(memory)
    wrong = dict(right, value_norm=right["value_norm"] * (1 + 2e-12))
    tally = tally_of(wrong, right)
    assert tally.leaving is not None
    assert tally.leaving.startswith("value_norm (text 1, layer 0)")


def test_a_spoilt_key_bias_moves_no_row_and_is_still_found(small: Model) -> None:
    # A constant added to all keys adds the same to all scores of a query: only earlier stages can show it.
    key = small.layers[2].key
    _, _, note = split(
        diff(
            spoil(small, 2, key=Linear(key.weight, key.bias + 0.5)), "oracle-float64", "torch-float64", TEXTS
        )
    )
    assert "keys (text 1, layer 2)" in note.text


def test_a_small_mistake_passes_in_float32_and_fails_in_float64(small: Model) -> None:
    wrong = replace(small, config=replace(small.config, norm_epsilon=small.config.norm_epsilon * 1.0001))
    assert split(diff(wrong, "oracle-float32", "torch-float32", TEXTS))[1].ok
    assert not split(diff(wrong, "oracle-float64", "torch-float64", TEXTS))[1].ok


def test_the_precision_of_the_coarser_side_sets_the_bound() -> None:
    assert {bound.limit for bound in bounds_for("oracle-longdouble", "torch-float32").values()} == {1e-5}
    assert {bound.limit for bound in bounds_for("oracle-longdouble", "oracle-float64").values()} == {1e-12}
    assert truer("oracle-float64", "oracle-float32") == ("oracle-float64", "oracle-float32")
    assert truer("torch-float32", "oracle-float64") == ("oracle-float64", "torch-float32")
    assert truer("oracle-float64", "torch-float64") == ("torch-float64", "oracle-float64")


def deep(model: Model, layers: int) -> Model:
    """The same model with its layers over and over."""
    repeated = (model.layers * layers)[:layers]
    return replace(model, layers=repeated, config=replace(model.config, n_layers=layers))


def limits(first: str, second: str, model: Model | None) -> dict[str, float]:
    return {name: bound.limit for name, bound in bounds_for(first, second, model).items()}


MEASURED = dict.fromkeys(("keys", "values", "scores", "hidden_states"), 2e-5)
MEASURED |= dict.fromkeys(DERIVED, 4e-5)


def test_only_a_model_as_deep_as_smollm2_may_be_further_than_1e_5_away(memory: Model) -> None:
    pairs = ("oracle-float32", "torch-float64"), ("torch-float32", "oracle-longdouble")
    for names in (*pairs, ("oracle-float32", "torch-float32")):
        for model in (None, memory, deep(memory, 29)):
            assert set(limits(*names, model).values()) == {1e-5}
        found = limits(*names, deep(memory, 30))
        assert {name: limit for name, limit in found.items() if limit != 1e-5} == {
            "attention": 2e-5,
            **MEASURED,
        }
    for model in (None, deep(memory, 30)):
        assert set(limits("oracle-float64", "torch-float64", model).values()) == {1e-12}
    held = Agreement(deep(memory, 30))
    assert held.float32.stages["attention"].bound.limit == 2e-5
    assert held.float64.stages["attention"].bound.limit == 1e-12


def test_the_diff_shows_and_uses_the_bound_of_the_model_and_says_why(memory: Model) -> None:
    table, *_ = split(diff(deep(memory, 30), "oracle-float32", "oracle-float64", TEXTS[:1]))
    assert {row["stage"]: row["bound"] for row in table.records() if row["bound"] != 1e-5} == {
        "attention": 2e-5,
        **MEASURED,
    }
    said = "\n".join(table.notes)
    assert "attention: 2e-05 was fixed beforehand" in said
    assert "set after measuring" in said
    assert all(f"{name} " in said for name in MEASURED)
    for model, first in ((memory, "oracle-float32"), (deep(memory, 30), "oracle-longdouble")):
        table, *_ = split(diff(model, first, "oracle-float64", TEXTS[:1]))
        assert not any("fixed" in note or "measuring" in note for note in table.notes)


def run(model: Model) -> Stages:
    return runner(model, "oracle-float64")(single(TEXTS[0]))[0]


def tally_of(found: Stages, expected: Stages, mask: Any = None) -> Tally:
    tally = Tally("oracle-float64", "oracle-float64")
    tally.add(expected, found, np.ones(5, dtype=bool) if mask is None else mask)
    return tally


@pytest.mark.parametrize("stage", AXES)
def test_a_wrong_shape_dtype_nan_or_value_of_any_stage_is_rejected(stage: str, memory: Model) -> None:
    right = run(memory)
    assert tally_of(run(memory), right).leaving is None
    for what, wrong in {
        "shape": right[stage][..., :-1],
        "dtype": right[stage].astype(np.float32),
        "NaN": np.where(np.arange(right[stage].size).reshape(right[stage].shape) == 2, np.nan, right[stage]),
        "bound": right[stage] + 1e-9 * np.abs(right[stage]).max(),
    }.items():
        tally = tally_of(right | {stage: wrong}, right)
        assert tally.leaving is not None
        assert tally.leaving.startswith(f"{stage} (text 1")
        assert what in tally.leaving
        assert not tally.stages[stage].within
        if what in ("shape", "NaN"):
            assert math.isnan(tally.stages[stage].max_absolute)


def test_padding_is_not_compared_and_indices_are_those_of_the_padded_text(memory: Model) -> None:
    batch = padded([np.array(text) for text in TEXTS], 0, 2, True)
    right = runner(memory, "oracle-float64")(batch)[1]
    mask = batch.mask[1]
    noisy = {name: array.copy() for name, array in right.items()}
    noisy["attention"][:, :, ~mask] = 7
    noisy["scores"][..., ~mask] = 7
    noisy["values"][:, :, ~mask] = 7
    bounds = bounds_for("oracle-float64", "oracle-float64")
    assert all(found.within for _, _, found in compare_stages(right, noisy, mask, bounds))
    noisy["attention"][1, 2, 5, 6] += 0.5
    wrong = [
        (name, layer, found)
        for name, layer, found in compare_stages(right, noisy, mask, bounds)
        if not found.within
    ]
    assert [(name, layer) for name, layer, _ in wrong] == [("attention", 1)]
    assert wrong[0][2].worst == (2, 5, 6)
    assert "(2, 5, 6)" in wrong[0][2].message


def test_texts_without_tokens_are_skipped_and_counted(memory: Model) -> None:
    table, check, _ = split(diff(memory, "oracle-float32", "oracle-float64", [[], [1, 2], []]))
    assert check.ok
    assert table.notes[0] == "texts: 1, and 2 without tokens skipped"
    with pytest.raises(InputError, match="texts: expected a text with tokens; found 1 without"):
        diff(memory, "oracle-float32", "oracle-float64", [[]])


def test_a_text_without_a_token_of_its_own_is_skipped_everywhere() -> None:
    model = small_model()
    ids, skipped = read_texts(model, ["", "she saw", " ", "[SEP]"])
    assert ([len(tokens) for tokens in ids], skipped) == ([4, 3], 2)
    parts = diff(model, "oracle-float32", "oracle-float64", ["", "she saw"])
    assert parts[2] == Note("T", "T (tokens of a text): 4.", (4,))
    with pytest.raises(InputError, match="at most 31 tokens"):
        read_texts(model, ["she " * 40])
    assert len(read_texts(model, ["she " * 40], truncate=True)[0][0]) == 31


def test_bad_calls_are_one_line(memory: Model) -> None:
    for call, message in (
        (lambda: diff(memory, "numpy", "oracle-float32", TEXTS), "implementation: expected oracle-float32, "),
        (
            lambda: diff(memory, "torch-float32", "oracle-float32", TEXTS),
            "model: expected a model loaded from a directory",
        ),
        (
            lambda: diff(memory, "oracle-float32", "oracle-float64", [[1] * 12]),
            "text: expected at most 11 tokens",
        ),
        (
            lambda: diff(memory, "oracle-float32", "oracle-float64", [[99]]),
            "token_ids: expected ids from 0 to 22",
        ),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_a_model_in_memory_can_be_given_the_directory_of_its_reference(small: Model) -> None:
    homeless = replace(small, source=None)
    assert small.source is not None
    assert split(diff(homeless, "oracle-float64", "torch-float64", TEXTS, reference=small.source))[1].ok


def test_progress_is_told(memory: Model) -> None:
    told: list[tuple[int, int]] = []
    diff(
        memory,
        "oracle-float32",
        "oracle-float64",
        TEXTS,
        lambda what, done, total: told.append((done, total)),
    )
    assert told == [(0, 2), (1, 2), (2, 2)]


class Side(list[Stages]):
    """What an implementation returns for a batch; can be watched."""


def fake_runs(rows: dict[str, float], watched: list[Any]) -> dict[str, Any]:
    """Four implementations of two texts whose rows are off by a number each; `watched` sees who is alive."""

    def make(name: str) -> Callable[[Any], Side]:
        def run(_: Any) -> Side:
            watched.append([other for other, side in alive.items() if side() is not None])
            dtype = np.dtype(name.split("-")[1])
            stages = {
                stage: np.full((2, *(3,) * len(axes)), 0.25, np.float64 if stage in DERIVED else dtype)
                for stage, axes in AXES.items()
                if stage != "transformed_norm"
            }
            stages["embeddings"] = stages["embeddings"][0]
            stages["hidden_states"] = np.zeros((3, 3, 3), dtype)
            stages["attention"][0, 1, 2, 0] += rows[name]
            side = Side([stages, stages])
            alive[name] = weakref.ref(side)
            return side

        return run

    alive: dict[str, Any] = {}
    return {name: make(name) for name in rows}


OFF = {"torch-float64": 0.0, "oracle-float64": 0.0, "oracle-float32": 2**-10, "torch-float32": 2**-11}


def test_an_agreement_holds_one_side_beside_the_truth() -> None:
    found, watched = Agreement(), []
    found.add(fake_runs(OFF, watched), padded([np.arange(1), np.arange(1)], 0, 1, False))
    assert watched == [[], *[["torch-float64"]] * 3]
    assert found.float64.texts == found.float32.texts == 2
    assert found.lengths == {1}


@pytest.mark.parametrize(
    ("ours", "theirs", "ratio"), [(2**-9, 2**-10, 2), (0, 2**-9, 0), (2**-9, 0, math.inf), (0, 0, 0)]
)
def test_the_rms_ratio_is_our_error_over_theirs(ours: float, theirs: float, ratio: float) -> None:
    found = Agreement()
    off = OFF | {"oracle-float32": ours, "torch-float32": theirs}
    found.add(fake_runs(off, []), single([1, 2, 3]))
    assert found.ratio == ratio


def test_a_stage_that_one_side_lacks_is_no_agreement(memory: Model) -> None:
    right = run(memory)
    for stage in AXES:
        less = {name: array for name, array in right.items() if name != stage}
        for expected, found in ((right, less), (less, right)):
            with pytest.raises(LookupError, match=f"oracle-float64 returned no {stage}"):
                tally_of(found, expected)
    assert set(Tally("oracle-float64", "torch-float64").stages) == set(AXES) - {"transformed_norm"}


def test_a_padded_batch_is_bounded_and_has_all_lengths() -> None:
    assert choose_batch([5, 3, 9]) == [0, 1, 2]
    assert choose_batch([600]) == [0]
    assert choose_batch([510, 500, 509]) == [1]
    many = choose_batch(list(range(10, 500)))
    assert (len(many), many[0], many[-1]) == (16, 0, 52)
    for lengths in ([128] * 8, [300, 20, 20, 181], list(range(100, 200)), [62] * 40):
        chosen = choose_batch(lengths)
        assert 2 <= len(chosen) <= 16
        assert chosen == sorted(set(chosen))
        assert len(chosen) * (max(lengths[place] for place in chosen) + 2) ** 2 <= 16 * 64**2


def test_long_text_repeats_the_content_between_the_first_and_last_token() -> None:
    texts = [np.array([1, 5, 6, 2]), np.array([1, 7, 2])]
    assert long_text(texts, 9).tolist() == [1, 5, 6, 7, 5, 6, 7, 5, 2]
    assert long_text(texts, 3).tolist() == [1, 5, 2]
    assert long_text([np.array([1, 2])], 3).tolist() == [1, 2, 1]


def test_padded_puts_padding_on_the_side_that_is_asked_for() -> None:
    right, left = (padded([np.array([4, 5, 6]), np.array([7])], 9, 2, side) for side in (False, True))
    assert right.token_ids.tolist() == [[4, 5, 6, 9, 9], [7, 9, 9, 9, 9]]
    assert left.token_ids.tolist() == [[9, 9, 4, 5, 6], [9, 9, 9, 9, 7]]
    assert (left.mask == (left.token_ids != 9)).all()
    assert right.token_types.tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]


def test_validate_forward_passes_and_shows_every_case(small: Model) -> None:
    table, *checks = validate_forward(small, TEXTS, draws=2)
    assert isinstance(table, Table)
    rows = table.records()
    assert [(row["case"], row["dtype"]) for row in rows] == [
        (case, dtype)
        for case in ("each text", "long text", "padded batch", "random weights")
        for dtype in ("float64", "float32")
    ]
    assert [row["tokens"] for row in rows[::2]] == ["3-5", "67", "3-5", "11-29"]
    assert [row["texts"] for row in rows[::2]] == [2, 1, 4, 14]
    assert len(checks) == 3 * 2 + 1  # seven texts and two draws are too few for a verdict on the RMS ratio
    assert any("over 7 texts: fewer than 20, so that it is shown and not judged" in n for n in table.notes)
    by_key = {check.key: check for check in checks if isinstance(check, Check)}
    assert all(
        by_key[f"forward.{case}.float64"].ok
        for case in ("each-text", "long-text", "padded-batch", "random-weights")
    )
    assert all(0 < row["rms_ratio"] < 10 for row in rows[1::2])


def test_validate_forward_says_which_texts_were_batched(small: Model) -> None:
    texts = [[1 + number] * (number + 2) for number in range(20)]
    table = validate_forward(small, texts, draws=0)[0]
    assert isinstance(table, Table)
    assert {row["texts"] for row in table.records() if row["case"] == "padded batch"} == {32}
    (note,) = [note for note in table.notes if note.startswith("padded batch: ")]
    assert "16 of 20 texts with tokens, chosen by length" in note
    assert "(numbers 1, 2, 4, 5, " in note
    few = validate_forward(small, texts[:3], draws=0)[0]
    assert isinstance(few, Table)
    assert any(note.startswith("padded batch: all 3 texts, ") for note in few.notes)


def test_validate_forward_fails_on_a_mistake(small: Model) -> None:
    assert small.source is not None
    wrong = replace(small, config=replace(small.config, activation="gelu_new"))
    table, *checks = validate_forward(wrong, TEXTS * 4, draws=0)
    assert isinstance(table, Table)
    failed = {check.key for check in checks if isinstance(check, Check) and not check.ok}
    cases = ("each-text", "padded-batch", "long-text")
    assert failed == {f"forward.{case}.{what}" for case in cases for what in ("float64", "float32")} | {
        "forward.real-texts.rms"
    }
    assert not any(row["within"] for row in table.records())
