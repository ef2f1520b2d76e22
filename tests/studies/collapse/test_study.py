"""A series of checkpoints from end to end: order, bad ones, equal ones, and runs that were stopped."""

import json
import shutil

import numpy as np
import pytest
from checkpoint_series import TEXTS, write_checkpoint, write_series
from wording import refused

from oracle import InputError, Unavailable, load_model
from validation.studies.collapse import collapse, study
from validation.studies.collapse.measured import TAKEN
from validation.studies.collapse.tables import report

MISSING = (
    "expected a directory or file of a checkpoint, or a hub id org/name@revision; found no such directory. "
    "Mend the path, or leave it out"
)


@pytest.fixture
def run(tmp_path):
    """Measures a series with the results in a file of the test."""

    def go(places, **choices):
        choices = {"engine": "oracle", "results": str(tmp_path / "found.jsonl"), **choices}
        return collapse(places, TEXTS, **choices)

    return go


@pytest.fixture
def counted(monkeypatch):
    """How often a checkpoint was measured, by name of the model."""
    names = []
    real = study.measure_checkpoint

    def measure(model, *arguments, **others):
        names.append(model.name)
        return real(model, *arguments, **others)

    monkeypatch.setattr(study, "measure_checkpoint", measure)
    return names


def assert_same(first, second):
    assert first.steps == second.steps
    for one, other in zip(first.visits, second.visits, strict=True):
        assert (one.weights, one.file_sha256, one.same_as) == (
            other.weights,
            other.file_sha256,
            other.same_as,
        )
        assert one.measured.loss == other.measured.loss
        for name in TAKEN:
            for part, wanted in zip(one.measured.rows[name], other.measured.rows[name], strict=True):
                np.testing.assert_array_equal(part, wanted)


def test_checkpoints_are_measured_once_each_in_the_order_of_their_steps(run, counted, tmp_path):
    places = write_series(tmp_path / "run", (128, 0, 8))
    found = run(places)
    assert found.steps == (0, 8, 128)
    assert found.sorted
    assert counted == ["step0", "step8", "step128"]
    assert (found.from_file, found.excluded) == (0, ())
    assert found.visits[0].file_sha256 == load_model(places[1]).sha256
    entropies = [visit.measured.rows["sink"].total.mean() for visit in found.visits]
    assert len(set(entropies)) == 3
    by_hand = run(places, steps=[1, 2, 3])
    assert by_hand.steps == (1, 2, 3)
    assert [visit.checkpoint.name for visit in by_hand.visits] == ["step128", "step0", "step8"]
    assert len(counted) == 3


def test_a_run_that_was_stopped_goes_on_where_it_was(run, counted, tmp_path):
    places = write_series(tmp_path / "run", (0, 1, 2, 4))
    whole = run(places, results=str(tmp_path / "other.jsonl"))
    counted.clear()

    def stopped(place):
        if place.endswith("step2"):
            raise KeyboardInterrupt
        return load_model(place)

    with pytest.raises(KeyboardInterrupt):
        run(places, load=stopped)
    assert counted == ["step0", "step1"]
    with (tmp_path / "found.jsonl").open("ab") as file:
        file.write(b'{"sha256": "0", "rec')  # as if it had been killed while it wrote
    found = run(places)
    assert counted == ["step0", "step1", "step2", "step4"]
    assert found.from_file == 2
    assert_same(found, whole)
    assert run(places).from_file == 4
    assert len(counted) == 4


def test_what_was_measured_counts_only_under_the_same_choices(run, counted, tmp_path):
    places = write_series(tmp_path / "run", (0, 1))
    run(places)
    for choices in (
        {"sink": "0,1"},
        {"layers": "1"},
        {"min_content_keys": 9},
        {"truncate": True},
        {"engine": "fastpath"},
    ):
        counted.clear()
        run(places, **choices)
        assert counted == ["step0", "step1"], choices
    counted.clear()
    collapse(places, TEXTS[:2], engine="oracle", results=str(tmp_path / "found.jsonl"))
    assert counted == ["step0", "step1"]
    counted.clear()
    for name in ("step0", "step1"):
        config = tmp_path / "run" / name / "config.json"
        config.write_text(config.read_text().replace("10000.0", "500.0"))
    run(places)
    assert counted == ["step0", "step1"]  # the same weights under another configuration


def test_equal_weights_are_found_flagged_and_measured_once(run, counted, tmp_path):
    places = write_series(tmp_path / "run", (0, 1, 2))
    late = shutil.copytree(places[0], tmp_path / "run" / "step4")
    config = json.loads((late / "config.json").read_text())
    (late / "config.json").write_text(json.dumps(config, indent=3))
    found = run([*places, str(late)])
    assert [visit.same_as for visit in found.visits] == [None, None, None, 0]
    assert counted == ["step0", "step1", "step2"]
    assert found.from_file == 0
    parts = {part.key: part for part in report(found)}
    assert parts["duplicates"].text == "WARNING: equal weights by their hash: step 4 = step 0."
    assert [row[-1] for row in parts["checkpoints"].rows] == [None, None, None, 0]


def test_missing_and_truncated_checkpoints_are_left_out_by_name(run, tmp_path):
    places = write_series(tmp_path / "run", (0, 1, 2, 4))
    cut = tmp_path / "run" / "step1" / "model.safetensors"
    cut.write_bytes(cut.read_bytes()[:-100])
    shutil.rmtree(places[2])
    found = run(places)
    assert found.steps == (0, 4)
    assert [checkpoint.name for checkpoint, _ in found.excluded] == ["step1", "step2"]
    notes = [part.text for part in report(found) if part.key == "not_run"]
    assert len(notes) == 2
    assert notes[0].startswith("NOT RUN: step 1 (step1) is left out. step1/model.safetensors: expected")
    assert notes[1] == f"NOT RUN: step 2 (step2) is left out. {places[2]!r}: {MISSING}."
    assert str(tmp_path) not in notes[0]
    with refused("DIR", "at least two checkpoints that can be loaded; found 1 of 3, without step1 (step1/"):
        run(places[:3])


def test_checkpoints_that_are_not_there_are_named_with_a_way_on(run):
    with pytest.raises(InputError) as caught:
        run(["no/such/step1", "/no/step2"])
    assert str(caught.value) == (
        "DIR: expected at least two checkpoints that can be loaded; found 0 of 2, without "
        f"step1 ('no/such/step1': {MISSING}), step2 ('/no/step2': {MISSING}). "
        "Mend or replace those, or name others of the run."
    )
    with refused(
        "DIR", "found 0 of 5, without step1 (", "), step2 (", "), step3 (", f": {MISSING}) and 2 more. "
    ):
        run([f"no/such/step{step}" for step in range(1, 6)])


def test_another_run_among_them_is_refused_with_both_names(run, tmp_path):
    places = write_series(tmp_path / "run", (0, 1))
    deeper = str(write_checkpoint(tmp_path / "deep" / "step4", 0, layers=1))
    with pytest.raises(InputError, match="found n_layers 2 in step0 and 1 in step4"):
        run([*places, deeper])
    other = str(write_checkpoint(tmp_path / "words" / "step4", 0, characters="hgfedcba"))
    with pytest.raises(InputError, match="another tokenizer in step4 than in step0"):
        run([*places, other])


def test_a_hub_that_cannot_be_reached_ends_the_run_and_keeps_what_was_measured(run, counted, tmp_path):
    places = write_series(tmp_path / "run", (0, 1))

    def load(place):
        if place.endswith("@step2"):
            raise Unavailable("no network")
        return load_model(place)

    with pytest.raises(Unavailable):
        run([*places, "org/name@step2"], load=load)
    assert run(places).from_file == 2


def test_an_error_about_a_text_names_the_checkpoint(tmp_path):
    places = write_series(tmp_path / "run", (0, 1))
    with pytest.raises(InputError, match="step0: text 1 of 1: text: expected at most 32 tokens"):
        collapse(places, ["ab" * 20], engine="oracle", results=str(tmp_path / "found.jsonl"))


def test_the_results_are_in_the_cache_unless_a_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    places = write_series(tmp_path / "run", (0, 1))
    collapse(places, TEXTS, engine="oracle")
    assert collapse(places, TEXTS, engine="oracle").from_file == 2
    assert len(list((tmp_path / "cache" / "collapse").iterdir())) == 1
