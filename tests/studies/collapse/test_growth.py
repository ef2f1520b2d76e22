"""How the work of a series grows with its checkpoints, told by counts and not by a clock."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from checkpoint_series import TEXTS, write_series

import oracle
import validation
from oracle import load_model
from validation.studies.collapse import collapse
from validation.studies.collapse.measured import TAKEN
from validation.studies.collapse.tables import report

COUNTS = (4, 8, 12)
PACKAGES = tuple(str(Path(package.__file__).parent) for package in (oracle, validation))


@pytest.fixture
def measured(tmp_path):
    """Measures and reports the first checkpoints of a series, so many, into a new file; that file."""
    places = write_series(tmp_path / "run", range(max(COUNTS)))

    def go(count, load=load_model):
        file = tmp_path / f"{count}.jsonl"
        file.unlink(missing_ok=True)
        report(collapse(places[:count], TEXTS, engine="oracle", results=str(file), load=load))
        return file

    return go


def test_every_checkpoint_is_loaded_once_and_every_text_run_through_it_once(measured, monkeypatch):
    loaded, run, rows = [], [], []
    forward, row_measures = oracle.forward, oracle.row_measures
    monkeypatch.setattr(oracle, "forward", lambda *a, **named: (run.append(a[1]), forward(*a, **named))[1])
    monkeypatch.setattr(
        oracle, "row_measures", lambda *a, **named: (rows.append(1), row_measures(*a, **named))[1]
    )
    for count in COUNTS:
        loaded.clear(), run.clear(), rows.clear()
        file = measured(count, lambda place: (loaded.append(place), load_model(place))[1])
        assert len(loaded) == len(set(loaded)) == count
        assert run == list(TEXTS) * count
        assert len(rows) == len(TEXTS) * 2 * len(TAKEN) * count  # of two layers
        assert file.read_bytes().count(b"\n") == count


def test_no_function_is_called_more_often_than_in_step_with_the_checkpoints(measured):
    def calls_of(count):
        found = Counter()

        def note(frame, event, _):
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(PACKAGES):
                found[code.co_filename, code.co_qualname, code.co_firstlineno] += 1

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            measured(count)
        finally:
            sys.setprofile(before)
        return found

    measured(COUNTS[0])  # what is done once in a process
    few, some, many = map(calls_of, COUNTS)
    assert few.keys() == some.keys() == many.keys()
    assert {name: many[name] - some[name] for name in many} == {name: some[name] - few[name] for name in many}
    assert some.total() > few.total() > 1000
