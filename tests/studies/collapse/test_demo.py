"""The demonstration from training to report: a tiny one here, the whole one among the slow tests."""

import time

import numpy as np
import pytest

from oracle import Unavailable
from validation.provenance import file_sha256
from validation.report.document import Note, Table
from validation.studies.collapse import demo as demonstration
from validation.studies.collapse.demo import FORMING_WIDTHS, SINK_ABOVE, demo
from validation.studies.collapse.embedded import make, plan
from validation.studies.collapse.measured import SINK
from validation.studies.collapse.study import collapse

pytest.importorskip("torch", reason="needs the reference extra")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    planned = plan((4, 8), (0, 1), steps=2, contrast=False)
    return demo(planned, folder=folder, engine="oracle", results=str(folder / "found.jsonl"))


def test_every_series_has_its_line_and_every_width_its_spread(tiny):
    shown, parts = tiny
    tables = {part.key: part for part in parts if isinstance(part, Table)}
    lines = tables["series"].records()
    assert [line["series"] for line in lines] == [one.embedded.name for one in shown]
    assert lines[0]["share"] == shown[0].drops[SINK, None].end.share
    assert [row[:3] for row in tables["over_seeds"].rows] == [("backcopy", 4, 2), ("backcopy", 8, 2)]
    spread = tables["over_seeds"].records()[1]
    shares = [one.drops[SINK, None].end.share for one in shown[2:]]
    assert (spread["share_mean"], spread["share_min"]) == (np.mean(shares), min(shares))
    assert spread["share_max"] == max(shares)


def test_the_series_are_said_to_be_what_they_are(tiny):
    notes = {part.key: part.text for part in tiny[1] if isinstance(part, Note)}
    assert "arXiv 2410.13835" in notes["what_backcopy"]
    assert "no language model" in notes["what_backcopy"]
    assert "neither tested nor supported" in notes["no_trend"]
    assert "beside" in notes["backcopy_4"]
    assert "above 50% in 0" in notes["backcopy_8"]


def test_one_series_of_a_kind_is_shown_and_all_are_in_json(tiny):
    checkpoints = [part for part in tiny[1] if isinstance(part, Table) and part.key.endswith("checkpoints")]
    assert [part.shown for part in checkpoints] == [True, False, False, False]
    assert [part.key for part in checkpoints[1:]] == [
        f"backcopy-width{width}-seed{seed}: checkpoints" for width, seed in ((4, 0), (4, 1), (8, 1))
    ]


def test_a_contrast_that_cannot_be_had_is_named(monkeypatch, tmp_path):
    def lacking(embedded, folder, progress):
        if embedded.kind == "source":
            raise Unavailable("This Python has no source text of its module csv.")
        raise Unavailable("no torch")

    monkeypatch.setattr(demonstration, "make", lacking)
    shown, parts = demo(plan((4,), (), steps=1), folder=tmp_path)
    assert shown == ()
    assert parts[0] == Note(
        "not_run", "NOT RUN: source-width64-seed0: This Python has no source text of its module csv."
    )
    with pytest.raises(Unavailable, match="no torch"):
        demo(plan((4,), (0,), steps=1), folder=tmp_path)


@pytest.mark.timing
def test_twelve_checkpoints_are_measured_in_half_a_minute_and_time_grows_with_their_number(tmp_path):
    series = plan((64,), (0,), steps=1024, contrast=False)[0]
    recipe = series.recipe._replace(batch=1)  # what they have learned makes no difference to the time
    places, texts = make(series._replace(recipe=recipe), tmp_path)
    named = [str(place) for place in places]
    assert len(named) == 12
    collapse(named[:2], texts, results=str(tmp_path / "warm.jsonl"))
    seconds = {}
    for count in (4, 12):
        start = time.perf_counter()
        collapse(named[:count], texts, results=str(tmp_path / f"{count}.jsonl"))
        seconds[count] = time.perf_counter() - start
    assert seconds[12] < 30
    assert seconds[12] < 2 * 3 * seconds[4]


@pytest.mark.slow
def test_the_whole_demonstration_shows_a_sink_its_spread_and_the_same_files_again(tmp_path):
    planned = plan()
    shown, parts = demo(planned, folder=tmp_path / "first", results=str(tmp_path / "found.jsonl"))
    assert next(part for part in parts if part.key == "sink_forms").ok
    for one in shown:
        drop = one.drops[SINK, None]
        print(one.embedded.name, drop.end.share, drop.ends.part, drop.ends.range, drop.path.part)
        if one.embedded.kind == "source":
            assert drop.end.share < 0.05
        elif one.embedded.recipe.width in FORMING_WIDTHS:
            assert drop.end.share > SINK_ABOVE
            assert drop.ends.part > 0.5
    for series in (planned[0], planned[4]):
        first, again = make(series, tmp_path / "first")[0], make(series, tmp_path / "again")[0]
        hashes = [[file_sha256(place / "model.safetensors") for place in run] for run in (first, again)]
        assert hashes[0] == hashes[1]
