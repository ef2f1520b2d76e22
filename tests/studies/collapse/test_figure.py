"""The figure: where steps stand, what is stacked, and that it is the same every time."""

import numpy as np
import pytest
from checkpoint_series import TEXTS, write_series

from oracle import InputError
from validation.audit.drawing import Subject
from validation.studies.collapse import collapse
from validation.studies.collapse import figure as drawn
from validation.studies.collapse.figure import collapse_chart, step_places
from validation.studies.collapse.measured import SINK
from validation.studies.collapse.split import split_path

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


@pytest.fixture
def axes(series, monkeypatch):
    """The chart as it is drawn: upper axes, lower axes, share axes, and the colour of each legend entry."""
    figure = pytest.importorskip("matplotlib.figure", reason="needs the figures extra").Figure()

    def draw(work, *arguments, **named):
        work(figure)
        return b""

    monkeypatch.setattr(drawn, "figure_bytes", draw)
    collapse_chart(series, SUBJECT)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    return (*figure.axes, dict(zip(names, legend.legend_handles, strict=True)))


def test_bars_are_the_channels_since_the_peak_in_the_colours_of_the_legend(series, axes):
    _, lower, _, handles = axes
    rows = [visit.measured.rows[SINK] for visit in series.visits]
    paths = [split_path(rows[: number + 1]) for number in range(4)]
    sink, content = [path.sink for path in paths], [path.content for path in paths]
    bars = lower.containers
    assert len(bars) == 2
    for wanted, words in (
        (sink, "h(s), and through the sink"),
        (content, "(1 - s) Hc, and through the content"),
    ):
        colour = handles[words].get_facecolor()[:3]
        (found,) = [bar for bar in bars if np.allclose(bar.patches[0].get_facecolor()[:3], tuple(colour))]
        np.testing.assert_allclose([patch.get_height() for patch in found], wanted, rtol=1e-12, atol=1e-15)
        middles = [patch.get_x() + patch.get_width() / 2 for patch in found]
        np.testing.assert_allclose(middles, step_places(series.steps), rtol=1e-12)
    bottoms = [patch.get_y() for patch in bars[1]]
    stacked = [first if first * second > 0 else 0 for first, second in zip(sink, content, strict=True)]
    np.testing.assert_allclose(bottoms, stacked, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(lower.lines[0].get_ydata(), [path.total for path in paths], rtol=1e-12)
    assert abs(np.subtract(sink, content)[1:]).min() > 1e-3


def test_above_stand_the_two_parts_of_the_entropy_and_the_share(series, axes):
    upper, _, share, handles = axes
    rows = [visit.measured.rows[SINK] for visit in series.visits]
    binary, total = ([getattr(one, name).mean() for one in rows] for name in ("binary", "total"))
    first, second = upper.collections
    assert first.get_label() == "h(s)"
    assert second.get_label() == "(1 - s) Hc"
    for area, low, high in ((first, [0] * 4, binary), (second, binary, total)):
        (outline,) = area.get_paths()
        for place, bottom, top in zip(step_places(series.steps), low, high, strict=True):
            heights = outline.vertices[outline.vertices[:, 0] == place][:, 1]
            assert (heights.min(), heights.max()) == pytest.approx((bottom, top), rel=1e-12, abs=1e-15)
    np.testing.assert_allclose(upper.lines[0].get_ydata(), total, rtol=1e-12)
    np.testing.assert_allclose(share.lines[0].get_ydata(), [r.share.mean() for r in rows], rtol=1e-12)
    for area, words in (
        (first, "h(s), and through the sink"),
        (second, "(1 - s) Hc, and through the content"),
    ):
        np.testing.assert_array_equal(
            area.get_facecolor()[0][:3], np.ravel(handles[words].get_facecolor())[:3]
        )
