"""What the demonstration says of its series: made-up rows whose shares are known, and the shipped shares."""

import json
from importlib.resources import files

import numpy as np
import pytest
from checkpoint_series import figures, row

from validation.report.document import Check
from validation.studies.collapse import demo as demonstration
from validation.studies.collapse.demo import FORMING_WIDTHS, SINK_ABOVE, demo
from validation.studies.collapse.embedded import SEEDS, plan
from validation.studies.collapse.measured import TAKEN, Measured, Setting
from validation.studies.collapse.series import Checkpoint
from validation.studies.collapse.study import Series, Visit

STEPS = (0, 1, 2, 4, 8, 16)
CONTENT = ([1, 1, 1, 1], [1, 2, 3, 4])


def made_up(shares):
    """A series whose sink has the same share in every row: `shares`, one for each checkpoint."""
    visits = []
    for step, share in zip(STEPS, shares, strict=True):
        of = dict(zip(TAKEN, (share, share / 2, share / 3), strict=True))
        rows = {name: figures([row(part, content) for content in CONTENT]) for name, part in of.items()}
        measured = Measured(0.5, np.zeros(2, np.int32), rows, (32,), (("<s>", 0),), 0, 0)
        visits.append(Visit(Checkpoint(f"step{step}", step), None, str(step), measured))
    return Series(tuple(visits), (), False, 0, Setting((0,)), None)


@pytest.fixture
def said(monkeypatch):
    """Parts of the report of series with the given shares, by key; `planned` says what they are called."""

    def report(planned, shares):
        given = iter(shares)
        monkeypatch.setattr(demonstration, "make", lambda embedded, folder, progress: ([], ()))
        monkeypatch.setattr(demonstration, "collapse", lambda *_, **others: made_up(next(given)))
        return {part.key: part for part in demo(planned, folder="")[1]}

    return report


def test_the_sentence_counts_sinks_at_the_end_and_reads_the_last_four_checkpoints(said):
    shares = [
        (0.1, 0.9, 0.3, 0.4, 0.2, 0.7),
        (0.1, 0.05, 0.35, 0.45, 0.25, 0.5),
        (0.1, 0.8, 0.3, 0.3, 0.3, 0.6),
    ]
    sentence = said(plan((16,), (0, 1, 2), contrast=False), shares)["backcopy_16"].text
    assert "3 seeds: sink share at the end 50.0% to 70.0% (above 50% in 2; " in sentence
    assert "at the last 4 checkpoints 20.0% to 70.0%)" in sentence


def test_the_share_at_the_end_is_checked_for_the_widths_where_a_sink_forms(said):
    planned = plan((16, 64, 128), (0, 1))
    ends = [0.2, 0.3, 0.8, 0.6, 0.55, 0.51, 0.01]  # widths two by two, then the contrast without a sink
    shares = [(0.1, 0.1, 0.1, 0.1, 0.1, end) for end in ends]
    check = said(planned, shares)["sink_forms"]
    assert isinstance(check, Check)
    assert check.ok
    assert check.expected == ("a sink share above 50% at the end of every bigram series of widths 64 and 128")
    assert check.found == "51.0% to 80.0% in 4, the least in backcopy-width128-seed1"
    shares[3] = (0.9, 0.9, 0.9, 0.9, 0.9, 0.5)
    check = said(planned, shares)["sink_forms"]
    assert not check.ok
    assert check.found == "50.0% to 80.0% in 4, the least in backcopy-width64-seed1"


def test_nothing_is_checked_of_other_widths_and_seeds_or_of_series_cut_short(said):
    shares = [(0.1,) * 6] * 2
    assert "sink_forms" not in said(plan((16, 32), (0,), contrast=False), shares)
    assert "sink_forms" not in said(plan((64, 128), (0,), steps=1024, contrast=False), shares)
    assert "sink_forms" not in said(plan((64, 128), (7,), contrast=False), shares)


def test_the_shipped_series_of_these_widths_ended_with_a_sink_and_the_contrast_without():
    text = files("validation").joinpath("results/collapse-demo.json").read_text("utf-8")
    tables = {part["key"]: part for part in json.loads(text)["report"]["parts"] if part["kind"] == "table"}
    ends = {line["series"]: line["share"] for line in tables["series"]["rows"]}
    for width in FORMING_WIDTHS:
        for seed in SEEDS:
            assert ends[f"backcopy-width{width}-seed{seed}"] > SINK_ABOVE
    assert ends["source-width64-seed0"] < 0.05
    assert len(ends) == len(plan())
    lasts = {
        key.partition(":")[0]: part["rows"][-1]["sink_share"]
        for key, part in tables.items()
        if key.endswith(": checkpoints")
    }
    assert len(lasts) == len(ends) - 2  # one of each kind is shown as a whole
    assert all(ends[name] == share for name, share in lasts.items())


def test_the_widths_and_the_share_are_those_that_the_record_states():
    assert (FORMING_WIDTHS, SINK_ABOVE, SEEDS) == ((64, 128), 0.5, (0, 1, 2))
