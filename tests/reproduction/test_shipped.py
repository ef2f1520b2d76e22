"""The results that the package ships: one for every run, whole, small, and of runs in which all held."""

from __future__ import annotations

import json

import pytest

from validation.reproduction.kept import SHIPPED, read_kept
from validation.reproduction.runs import read_runs


def test_every_run_has_its_result_and_no_other_is_there():
    names = {path.stem for path in SHIPPED.iterdir()}
    assert names == {run.name for run in read_runs()}


@pytest.mark.parametrize("run", read_runs(), ids=[run.name for run in read_runs()])
def test_a_shipped_result_is_whole_small_and_sound(run):
    kept = read_kept(run, SHIPPED)
    assert kept is not None
    assert (kept.report["checks"]["failed"], kept.report["checks"]["not_run"]) == (0, 0)
    assert kept.stamp["command"] == list(run.command)
    text = json.dumps(kept.report)
    assert "/home/" not in text
    assert "/tmp/" not in text
    assert (SHIPPED / f"{run.name}.json").stat().st_size < 500_000


def test_all_of_it_is_small():
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 2_000_000
