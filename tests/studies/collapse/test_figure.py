"""The figure: where steps stand, what is stacked, and that it is the same every time."""

import pytest
from checkpoint_series import TEXTS, write_series

from oracle import InputError
from validation.audit.drawing import Subject
from validation.studies.collapse import collapse
from validation.studies.collapse.figure import collapse_chart, step_places

SUBJECT = Subject("a run", 3, "special")


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    places = write_series(folder / "run", (0, 8, 128, 130))
    return collapse(places, TEXTS, engine="oracle", results=str(folder / "found.jsonl"))


def test_steps_stand_by_their_logarithm_and_step_zero_before_the_first():
    assert step_places([0, 1, 2, 8]) == [-1, 0, 1, 3]
    assert step_places([0, 64, 128]) == [5, 6, 7]
    assert step_places([16, 32]) == [4, 5]
    assert step_places([0]) == [0]


def test_the_chart_tells_the_drop_and_its_channels(series):
    svg = collapse_chart(series, SUBJECT, format="svg").decode()
    assert "Entropy over training: a run, 3 texts, sink set special" in svg
    assert "From step 0 to step 130 the mean entropy changes by -" in svg
    assert svg == collapse_chart(series, SUBJECT, format="svg").decode()
    assert collapse_chart(series, SUBJECT).startswith(b"\x89PNG")
    with pytest.raises(InputError, match="png or svg"):
        collapse_chart(series, SUBJECT, format="gif")
