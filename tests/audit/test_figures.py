"""Figures are the same bytes every time, say what they are of, and take no notice of settings."""

import builtins
import re
import struct
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from head_clouds import GROUPS, LABELS, clouds, sums_of
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from oracle import InputError, Unavailable
from validation.audit.clustering import cluster_heads
from validation.audit.drawing import Subject, figure_bytes
from validation.audit.figures import save_figures
from validation.audit.flip_chart import FlipBar, flip_chart
from validation.audit.head_map import head_map

SUBJECT = Subject("a-model", 6, "[CLS], [SEP]")
SHARE = {"mean sink share": GROUPS * 0.3}
FLIPS = (
    FlipBar("jsd", 0.25, {"keep": np.array([0.02, np.nan, 0.04]), "drop": np.array([0.05, 0.03])}),
    FlipBar("cosine", float("nan"), {}),
)


@pytest.fixture(scope="module")
def clustering():
    return cluster_heads(sums_of(clouds(1), clouds(2)), SHARE, metric="hellinger", splits=1)


def drawn_map(clustering, **named):
    values = named.pop("values", SHARE["mean sink share"])
    return head_map(clustering, LABELS, values, "mean sink share", SUBJECT, **named)


def png_texts(data):
    """The text chunks of a PNG, by keyword."""
    found, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        if data[place + 4 : place + 8] in (b"tEXt", b"iTXt"):
            keyword, _, text = data[place + 8 : place + 8 + length].partition(b"\0")
            found[keyword.decode()] = text.lstrip(b"\0").decode("utf-8" if b"\xc2" in text else "latin-1")
        place += length + 12
    return found


@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_same_figure_has_the_same_bytes(clustering, format, monkeypatch):
    first = drawn_map(clustering, format=format), flip_chart(FLIPS, SUBJECT, format=format)
    for name, value in (("font.size", 23), ("axes.facecolor", "red"), ("svg.hashsalt", "another")):
        monkeypatch.setitem(matplotlib.rcParams, name, value)
    assert (drawn_map(clustering, format=format), flip_chart(FLIPS, SUBJECT, format=format)) == first
    if format == "svg":
        assert not any(b"dc:date" in data for data in first)


def test_an_svg_says_what_it_is_of(clustering):
    root = ElementTree.fromstring(drawn_map(clustering, format="svg"))
    title = root.find("{http://www.w3.org/2000/svg}title").text
    assert title == "Map of the heads by Hellinger, keep beside drop: a-model, 6 texts, sink set [CLS], [SEP]"
    description = next(root.iter("{http://purl.org/dc/elements/1.1/}description")).text
    assert description.startswith("Two scatter plots of 18 heads")
    assert "keep: the axes hold" in description
    assert "R² of mean sink share" in description


def test_a_png_says_what_it_is_of():
    data = flip_chart(FLIPS, SUBJECT)
    assert struct.unpack(">8s8xII", data[:24]) == (b"\x89PNG\r\n\x1a\n", 9 * 160, round(2.7 * 160))
    texts = png_texts(data)
    assert texts["Title"] == (
        "Verdicts that flip between keep and drop: a-model, 6 texts, sink set [CLS], [SEP]"
    )
    assert texts["Description"] == (
        "Flip rates. JSD 25.0% (halves under keep 3.0%, halves under drop 4.0%); cosine undefined."
    )


def test_what_else_a_figure_depends_on_stands_below_it_and_in_its_description(clustering):
    long = Subject(
        "a-model", 6, "[CLS]", "6 texts, T 7, 36 rows of each of 18 heads, 0 of 648 rows undefined"
    )
    drawn = (
        head_map(clustering, LABELS, GROUPS, "layer", long, format="svg"),
        flip_chart(FLIPS, long, format="svg"),
    )
    for data, plain in zip(drawn, (drawn_map(clustering), flip_chart(FLIPS, SUBJECT)), strict=True):
        assert data.decode().count("0 of 648 rows undefined") >= 2  # the description, and the drawn text
        assert plain != data


def test_names_that_would_steer_the_drawing_are_drawn_as_they_are(clustering):
    odd = Subject("a $x^$ model\x00 & <b> 模", 1, "token:\x1b")
    data = head_map(clustering, LABELS, GROUPS, "layer", odd, format="svg")
    title = ElementTree.fromstring(data).find("{http://www.w3.org/2000/svg}title").text
    assert title.endswith(r"a $x^$ model\x00 & <b> 模, 1 text, sink set token:\x1b")


def test_every_head_is_drawn_on_both_panels_also_without_a_value(clustering):
    def colours(values):
        data = drawn_map(clustering, values=values, format="svg").decode()
        return re.findall(r'<use [^>]*style="fill: (#\w+); stroke: #4c4c4c', data)

    whole = colours(GROUPS)
    missing = colours(np.where(np.arange(18) == 4, np.nan, GROUPS))
    assert len(whole) == len(missing) == 2 * 18
    assert len(set(whole)) == 3
    assert missing.count("#bfbfbf") == 2
    assert colours(np.full(18, np.nan)) == ["#bfbfbf"] * 36


def test_a_map_that_is_only_mirrored_is_turned_back(clustering):
    scaling = clustering.second.scaling
    mirrored = scaling._replace(points=scaling.points * [-1, 1])
    second = clustering.second._replace(scaling=mirrored)
    assert drawn_map(clustering._replace(second=second)) == drawn_map(clustering)


def test_labels_never_cover_each_other_or_a_point(clustering, monkeypatch):
    kept = []
    real = Figure.savefig

    def savefig(self, *arguments, **named):
        kept.append(self)
        return real(self, *arguments, **named)

    monkeypatch.setattr(Figure, "savefig", savefig)
    crowded = cluster_heads(sums_of(clouds(3, 2.0), clouds(4, 1.0)), SHARE, metric="hellinger", splits=1)
    drawn_map(crowded)
    (figure,) = kept
    for panel in figure.axes[:2]:
        boxes = [text.get_window_extent() for text in panel.texts]
        assert 6 <= len(boxes) <= 24
        for index, box in enumerate(boxes):
            shared = [Bbox.intersection(box, other) for other in boxes[:index]]
            assert not any(part is not None and part.width * part.height for part in shared)
            assert not any(
                box.contains(*point)
                for cloud in panel.collections
                for point in panel.transData.transform(cloud.get_offsets())
            )


def test_equal_heads_and_a_constant_are_drawn_too():
    same = cluster_heads(sums_of(np.zeros((4, 2)), np.zeros((4, 2))), {}, metric="hellinger", splits=1)
    assert head_map(same, LABELS[:4], np.ones(4), "layer", SUBJECT).startswith(b"\x89PNG")


def test_the_flip_chart_has_an_interval_for_each_floor():
    data = flip_chart(FLIPS, SUBJECT, format="svg").decode()
    for colour in ("#e69f00", "#009e73"):  # the interval, its median, and the legend
        assert len(re.findall(rf"stroke: {colour}; stroke-width: 4", data)) == 2
        drawn = re.search(rf'd="M ([\d.]+) [\d.]+ \nL ([\d.]+) [^<>]*stroke: {colour}', data)
        start, stop = drawn.groups()
        assert float(start) < float(stop)
    assert data.count("fill: #0072b2") >= 2  # the rate that is there, and the legend


def test_a_chart_of_nothing_is_refused():
    with pytest.raises(InputError, match="flips: expected at least one metric; found none"):
        flip_chart((), SUBJECT)


def test_files_are_named_by_metric_and_format(clustering, tmp_path):
    place = tmp_path / "new" / "folder"
    paths = save_figures(place, [clustering], FLIPS, LABELS, SHARE, SUBJECT, format="svg")
    assert [path.name for path in paths] == ["map-hellinger.svg", "flips.svg"]
    assert paths[0].read_bytes() == drawn_map(clustering, format="svg")
    (only,) = save_figures(place, [clustering], (), LABELS, SHARE, SUBJECT)
    assert only.read_bytes() == drawn_map(clustering)


def test_what_cannot_be_drawn_or_written_is_refused(clustering, tmp_path):
    def save(folder=tmp_path, **named):
        return save_figures(folder, [clustering], (), LABELS, SHARE, SUBJECT, **named)

    with pytest.raises(InputError, match="format: expected png or svg; found 'pdf'"):
        save(format="pdf")
    with pytest.raises(InputError, match="covariates: expected one that colours the heads; found none"):
        save_figures(tmp_path, [clustering], (), LABELS, {}, SUBJECT)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder for figures; found File exists"):
        save(tmp_path / "file")


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def absent(name, *arguments, **named):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(Unavailable, match=r'pip install "sinkscope\[figures\]"'):
        figure_bytes(lambda figure: None, (1, 1), format="png", title="", description="")


def test_pyplot_is_never_loaded(clustering):
    drawn_map(clustering)
    assert "matplotlib.pyplot" not in sys.modules
