"""Several models audited together: the map, the groups of layers, the sentences, and what is refused."""

import dataclasses
import gc
import json
import weakref

import numpy as np
import pytest
from audit_rows import only_the_sink_differs, sink_and_content_apart
from text_models import small_model

from oracle import InputError, Unavailable, VerdictFlips
from validation.audit import audit_arrays, command, joint
from validation.audit.context import Context
from validation.audit.flips import WITHIN
from validation.audit.joint import Compared, ModelMap, joint_parts
from validation.audit.rule import highest
from validation.cli import main
from validation.report.document import Note, Table

TEXTS = (
    "the doctor saw the nurse",
    "she saw a donkey walk",
    "a nurse walks , she sleeps !",
    "the donkey sleeps .",
    "doctor nurse donkey saw a doctor",
    "she walking the sleeping donkey",
)


@pytest.fixture
def call(capsys, monkeypatch):
    """Runs the command on models named by a letter, each with weights of its own."""

    def load(name, progress):
        return dataclasses.replace(small_model(seed=ord(name)), name=name)

    monkeypatch.setattr(command, "load", load)

    def run(*arguments, models="ab"):
        named = [part for name in models for part in ("--model", name)]
        given = [part for text in TEXTS for part in ("--text", text)]
        code = main(["audit", *named, *given, *map(str, arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def part_of(document, key):
    return next(part for part in document["parts"] if part["key"] == key)


def records(table):
    keys = [column["key"] for column in table["columns"]]
    return [row if isinstance(row, dict) else dict(zip(keys, row, strict=True)) for row in table["rows"]]


def test_each_model_is_audited_as_alone_and_the_map_repeats_its_figures(call, tmp_path):
    out = tmp_path / "both.json"
    code, shown, _ = call("--json", out)
    assert code == 0
    for heading in ("Model a\n=", "Model b\n=", "All models together\n="):
        assert heading in shown
    document = json.loads(out.read_text())
    assert [document["provenance"][f"model_{place}"]["name"] for place in (1, 2)] == ["a", "b"]
    rows = records(part_of(document, "joint"))
    whole = {(row["model"], row["metric"]): row for row in rows if row["layers"] == "all"}
    for name in "ab":
        alone = tmp_path / f"{name}.json"
        assert call("--json", alone, models=name)[0] == 0
        found = json.loads(alone.read_text())
        assert "joint" not in {part["key"] for part in found["parts"]}
        said = [row for row in records(part_of(found, "safety")) if row["scope"] == "all"]
        assert len(said) == 7
        for row in said:
            mine = whole[name, row["metric"]]
            assert (mine["flips"], mine["verdict"]) == (row["flips"], row["verdict"])
            assert mine["floor"] == max(row["floor_keep_high"], row["floor_drop_high"])
    assert whole["a", "jsd"]["flips"] != whole["b", "jsd"]["flips"]
    assert [part["key"] for part in document["parts"]].count("joint_closing") == 7


def test_one_model_alone_has_no_map(call):
    code, shown, _ = call(models="a")
    assert code == 0
    assert "All models together" not in shown
    assert "Model a" not in shown


@pytest.mark.parametrize("option", [("--save", "d.npz"), ("--figures", "folder")])
def test_files_of_one_model_are_refused_for_several(call, option):
    code, shown, err = call(*option)
    assert (code, shown) == (2, "")
    assert f"{option[0]}: expected one model" in err


def test_a_model_twice_is_refused(call):
    code, _, err = call(models="aba")
    assert code == 2
    assert "a twice" in err


@pytest.mark.parametrize("same", [{"source": True}, {"sha256": True}])
def test_a_model_under_two_names_is_refused_before_any_is_audited(call, monkeypatch, tmp_path, same):
    folder, link = tmp_path / "model", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)

    def load(name, progress):
        marks = {"source": link if name == "b" else folder, "sha256": "5" * 64}
        other = {"source": tmp_path / name, "sha256": name * 64}
        given = {key: marks[key] if key in same else other[key] for key in marks}
        return dataclasses.replace(small_model(), name=name, **given)

    monkeypatch.setattr(command, "load", load)
    monkeypatch.setattr(command, "audit", lambda *_, **__: pytest.fail("one was audited"))
    code, shown, err = call(models="ab")
    assert (code, shown) == (2, "")
    assert (
        "--model: expected every model once; found a and b, which are the same model. Leave one out." in err
    )


def test_a_model_that_is_not_there_is_refused_before_any_is_audited(call, monkeypatch):
    def load(name, progress):
        if name == "z":
            raise InputError("model: expected a model; found 'z'. Name one.")
        return small_model()

    monkeypatch.setattr(command, "load", load)
    monkeypatch.setattr(command, "audit", lambda *_, **__: pytest.fail("one was audited"))
    code, shown, err = call(models="az")
    assert (code, shown) == (2, "")
    assert "found 'z'" in err


def test_layers_that_one_model_lacks_are_refused_before_any_is_audited(call, monkeypatch):
    def load(name, progress):
        model = small_model()
        layers = model.layers[: 1 if name == "b" else None]
        return dataclasses.replace(
            model, layers=layers, config=dataclasses.replace(model.config, n_layers=len(layers)), name=name
        )

    monkeypatch.setattr(command, "load", load)
    monkeypatch.setattr(command, "audit", lambda *_, **__: pytest.fail("one was audited"))
    code, _, err = call("--layers", "1")
    assert code == 2
    assert "b: layers: expected layers from 0 to 0" in err


@pytest.mark.parametrize("error", [InputError("text 2: expected less."), Unavailable("No."), MemoryError()])
def test_a_failure_of_a_later_model_leaves_the_finished_ones(call, monkeypatch, tmp_path, error):
    whole = command.audit

    def audit(model, *arguments, **options):
        if model.name == "b":
            raise error
        return whole(model, *arguments, **options)

    monkeypatch.setattr(command, "audit", audit)
    out = tmp_path / "some.json"
    code, shown, _ = call("--json", out, models="abc" if str(error) == "No." else "ab")
    assert code == 3
    assert "Model a\n=" in shown
    assert "Model b" not in shown
    assert ("All models together" in shown) == ("Model c\n=" in shown) == (str(error) == "No.")
    said = part_of(json.loads(out.read_text()), "not_run")["text"]
    assert said == f"NOT RUN: b: {str(error) or 'not enough memory'}"


def test_no_two_models_are_held_at_a_time(call, monkeypatch):
    whole, seen = command.audit, []

    def audit(model, *arguments, **options):
        gc.collect()
        assert all(one() is None for one in seen)
        found = whole(model, *arguments, **options)
        seen.extend(map(weakref.ref, (model, found.analysis)))
        return found

    monkeypatch.setattr(command, "audit", audit)
    assert call()[0] == 0
    assert len(seen) == 4


def test_models_of_one_name_go_by_the_names_that_were_given(call, monkeypatch, tmp_path):
    def load(name, progress):
        return dataclasses.replace(small_model(seed=ord(name)), name="same" if name in "ab" else name)

    monkeypatch.setattr(command, "load", load)
    out = tmp_path / "same.json"
    assert call("--json", out, models="abc")[0] == 0
    document = json.loads(out.read_text())
    assert [document["provenance"][f"model_{place}"]["name"] for place in (1, 2, 3)] == ["a", "b", "c"]
    assert {row["model"] for row in records(part_of(document, "joint"))} == {"a", "b", "c"}


# --- the sentences ------------------------------------------------------------------------------------


def context():
    return Context(6, 30, 6, (0, 1), (7,), "[CLS]", None, 0, 180)


def sentence(*verdicts):
    maps = [
        ModelMap(f"m{place}", context(), {"jsd": Compared(0.2, 0.05, verdict, 500)}, {})
        for place, verdict in enumerate(verdicts)
    ]
    return next(
        part.text for part in joint_parts(maps) if isinstance(part, Note) and part.key == "joint_closing"
    )


@pytest.mark.parametrize(
    ("verdicts", "end"),
    [
        (("safe", "safe"), "Here the choice makes no difference to conclusions of this kind."),
        (("safe", "depends"), "Conclusions of this kind depend on whether the sink is kept."),
        (("cannot say", "depends"), "Conclusions of this kind depend on whether the sink is kept."),
        (("safe", "cannot say"), "So nothing is concluded."),
        (("cannot say", "cannot say"), "So nothing is concluded."),
    ],
)
def test_the_rule_over_models(verdicts, end):
    said = sentence(*verdicts)
    assert said.endswith(end)
    assert "m0: 20.0%, floor at most 5.0%" in said


def test_a_metric_that_one_model_lacks_is_left_blank_and_not_called_safe():
    maps = [
        ModelMap("m0", context(), {"jsd": Compared(0.01, 0.05, "safe", 500)}, {}),
        ModelMap("m1", context(), {}, {}),
    ]
    parts = joint_parts(maps)
    table = next(part for part in parts if isinstance(part, Table) and part.key == "joint_map")
    assert table.rows == (("m0", "1.0≤5.0"), ("m1", None))
    assert next(p.text for p in parts if p.key == "joint_closing").endswith("So nothing is concluded.")


# --- groups of layers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def analysis():
    """Of two layers of eight heads, eight texts; `dataclasses.replace` gives it other counts."""
    rows = sink_and_content_apart()
    return audit_arrays(rows, sink="0", layout="batch layer head query key").analysis


def flips(flipped, triples):
    rate = flipped / triples if triples else np.nan
    return VerdictFlips(rate, np.zeros(3), flipped, triples, 0, 0)


def group(analysis, both, keep, drop):
    """What two layers say together: `both` are their flips, the others those of every split."""
    splits = {("jsd", "keep"): keep, ("jsd", "drop"): drop}
    found = dataclasses.replace(
        analysis,
        flips={"jsd": dict(enumerate(both))},
        splits={key: [dict(enumerate(split)) for split in found] for key, found in splits.items()},
    )
    return joint._pooled(found, "jsd", (0, 1))


def test_a_group_of_all_layers_is_the_within_row_of_the_audit(analysis):
    layers = sorted(set(analysis.distances.layers.tolist()))
    for metric, scoped in analysis.flips.items():
        within = scoped[WITHIN]
        top = highest(analysis.both_floors(metric, WITHIN))
        wanted = Compared(within.rate, top, analysis.verdict(metric, WITHIN), within.triples)
        assert joint._pooled(analysis, metric, layers) == wanted


def test_flips_and_floors_of_a_group_are_pooled_by_their_own_counts(analysis):
    keep = [(flips(24, 300), flips(0, 100))] * 20
    found = group(analysis, (flips(10, 100), flips(0, 300)), keep, [(flips(0, 9), flips(0, 9))] * 20)
    assert found == Compared(10 / 400, 24 / 400, "safe", 400)


def test_a_layer_without_triples_takes_no_part_in_its_group(analysis):
    split = [(flips(0, 0), flips(6, 300))] * 20
    found = group(analysis, (flips(0, 0), flips(90, 300)), split, split)
    assert found == Compared(0.3, 0.02, "depends", 300)


def test_a_split_that_one_layer_lacks_is_that_of_the_others(analysis):
    split = [(flips(0, 0), flips(6 + 24 * (place == 3), 300)) for place in range(20)]
    split = [(flips(3, 100), two) if place != 3 else (one, two) for place, (one, two) in enumerate(split)]
    found = group(analysis, (flips(0, 300), flips(0, 300)), split, split)
    assert (found.floor, found.verdict) == (30 / 300, "safe")


def test_a_group_vanishes_by_the_distances_that_it_has():
    rows = only_the_sink_differs()
    rows[:, 0] = [1, *[0] * (rows.shape[-1] - 1)]  # no content in layer 0
    analysis = audit_arrays(
        rows, sink="0", layout="batch layer head query key", zeros="common-support"
    ).analysis
    assert np.isnan(analysis.median("jsd", "drop", 0))
    assert analysis.verdict("jsd", 1) == joint._pooled(analysis, "jsd", (0, 1)).verdict == "sink alone"
