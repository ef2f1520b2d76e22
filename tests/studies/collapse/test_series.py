"""Which step a name tells, checkpoints in order, and whether they are of one run."""

from dataclasses import replace

import pytest
from checkpoint_series import write_checkpoint

from oracle import InputError, load_model
from validation.studies.collapse.series import (
    Checkpoint,
    architecture_hash,
    check_same_kind,
    is_missing,
    order,
    step_of,
)


@pytest.mark.parametrize(
    ("place", "step"),
    [
        ("step128", 128),
        ("runs/checkpoint-500/", 500),
        ("a1b2/step_7", 7),
        ("v2-step16", 16),
        ("step1000-tokens4B", 1000),
        ("global_step64", 64),
        ("ckpt-000032", 32),
        ("00000256", 256),
        ("org/name-70m@step143000", 143000),
        ("org/step5@step9", 9),
        ("model", None),
        ("step10k", None),
        ("pythia70m", None),
        ("1-2", None),
        ("step3-of-step9", None),
        ("", None),
    ],
)
def test_the_step_that_a_name_tells(place, step):
    assert step_of(place) == step


def test_checkpoints_are_sorted_by_the_steps_in_their_names():
    found, other = order(["x/step1024", "x/step16", "x/step2"])
    assert [checkpoint.step for checkpoint in found] == [2, 16, 1024]
    assert found[0] == Checkpoint("x/step2", 2)
    assert found[0].name == "step2"
    assert other
    assert not order(["step1", "step2"])[1]


def test_steps_that_are_given_are_taken_as_they_stand():
    found, other = order(["first", "last"], [0, 30])
    assert [checkpoint.step for checkpoint in found] == [0, 30]
    assert not other


@pytest.mark.parametrize(
    ("places", "steps", "said"),
    [
        (["step1"], None, "DIR: expected at least two checkpoints of one training run; found 1."),
        ([], None, "found 0."),
        (["step1", "best"], None, "DIR: expected a name that tells its step; found 'best'."),
        (["a/step1", "b/step01"], None, "found step 1 twice, 'step1' and 'step01'."),
        (["a", "b"], [3, 1], "--steps: expected steps that rise; found 3,1."),
        (["a", "b"], [3], "--steps: expected a step, 0 or more, for each checkpoint; found 1 for 2"),
        (["a", "b"], [-1, 2], "found -1."),
        (["a", "b"], [2, 2], "found step 2 twice, 'a' and 'b'."),
    ],
)
def test_what_is_no_series_is_refused(places, steps, said):
    with pytest.raises(InputError) as error:
        order(places, steps)
    assert said in str(error.value)


def test_other_architectures_and_tokenizers_are_refused(tmp_path):
    first = load_model(write_checkpoint(tmp_path / "a", 0))
    check_same_kind(first, load_model(write_checkpoint(tmp_path / "b", 1)), "a", "b")
    deeper = load_model(write_checkpoint(tmp_path / "c", 0, layers=3))
    with pytest.raises(InputError, match="found n_layers 2 in a and 3 in c"):
        check_same_kind(first, deeper, "a", "c")
    other = load_model(write_checkpoint(tmp_path / "d", 0, characters="abcdefgi"))
    with pytest.raises(InputError, match="another tokenizer in d than in a"):
        check_same_kind(first, other, "a", "d")
    with pytest.raises(InputError, match="another tokenizer"):
        check_same_kind(first, replace(first, tokenizer=None), "a", "e")
    hashes = {architecture_hash(model) for model in (first, deeper, other, replace(first, tokenizer=None))}
    assert len(hashes) == 4


def test_a_place_that_is_not_there_is_told_from_names_of_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "step1").mkdir(parents=True)
    there = ("runs/step1", str(tmp_path / "runs" / "step1"))
    elsewhere = ("smollm2-135m", "org/name", "org/name@step8", "runs/name@step8")
    missing = (
        "step9",
        "runs/step9",
        "./step9",
        "a/b/step9",
        str(tmp_path / "step9"),
        "no/such/",
        "~/no-such",
    )
    assert {place: is_missing(place) for place in (*there, *elsewhere, *missing)} == {
        **dict.fromkeys((*there, *elsewhere), False),
        **dict.fromkeys(missing, True),
    }
