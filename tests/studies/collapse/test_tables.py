"""What the study says of a series: figures beside the sentence, and the check of the split."""

from dataclasses import replace

import numpy as np
import pytest
from checkpoint_series import TEXTS, write_series

from validation.report.document import Check
from validation.studies.collapse import collapse
from validation.studies.collapse.drop import find_drops
from validation.studies.collapse.measured import CONTROLS, SINK, TAKEN
from validation.studies.collapse.split import split_ends, split_path
from validation.studies.collapse.tables import conclusion, report, summary_cells


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    places = write_series(folder / "run", (0, 8, 128))
    return collapse(places, TEXTS, engine="oracle", results=str(folder / "found.jsonl"))


def parts_of(series):
    return {part.key: part for part in report(series)}


def with_rows(series, number, **changes):
    """The series with some figures of one checkpoint's sink rows replaced."""
    visits = list(series.visits)
    rows = dict(visits[number].measured.rows)
    rows[SINK] = rows[SINK]._replace(**changes)
    visits[number] = replace(visits[number], measured=replace(visits[number].measured, rows=rows))
    return replace(series, visits=tuple(visits))


def test_every_part_of_the_report(series):
    found = parts_of(series)
    assert list(found) == [
        *("identity", "sinks", "T", "rows", "checkpoints", "checkpoints_by_layer", "checkpoint_files"),
        *("channels", "shares", "controls", "exact", "collapse"),
    ]
    assert found["T"].values == (17, 15, 21)
    assert found["sinks"].text.startswith("Sink set (special): position 0 (<s>). Content is")
    assert found["rows"].text == (
        "Rows: 116 of content queries in 3 texts; 84 rows see fewer than 8 content keys."
    )
    assert found["exact"].ok
    assert not found["checkpoint_files"].shown
    assert [row[1] for row in found["checkpoint_files"].rows] == ["step0", "step8", "step128"]
    layers = [row[:2] for row in found["checkpoints_by_layer"].rows]
    assert layers == [(step, layer) for layer in (0, 1) for step in (0, 8, 128)]


def test_the_tables_hold_what_the_split_gives(series):
    found, rows = parts_of(series), [visit.measured.rows for visit in series.visits]
    ends, path = split_ends(rows[0][SINK], rows[2][SINK]), split_path([one[SINK] for one in rows])
    channels = {row["way"]: row for row in found["channels"].records() if row["layer"] == "all"}
    for way, split in (("ends", ends), ("path", path)):
        row = channels[way]
        assert (row["change"], row["sink"], row["content"]) == (split.total, split.sink, split.content)
        assert row["sink_part"] == split.sink / split.total
        assert row["sink_part_low"] <= row["sink_part"] <= row["sink_part_high"]
    assert channels["ends"]["change"] == pytest.approx(channels["path"]["change"])
    controls = {row["taken"]: row for row in found["controls"].records() if row["layer"] == "all"}
    assert list(controls) == ["the sink set", "the own token", "the previous token"]
    assert (
        controls["the own token"]["sink_part"] == split_ends(rows[0][CONTROLS[0]], rows[2][CONTROLS[0]]).part
    )
    shares = found["shares"].records()[0]
    assert shares["sink_where_rose"] + shares["sink_elsewhere"] == pytest.approx(ends.sink)
    first = found["checkpoints"].records()[0]
    assert first["entropy"] == pytest.approx(rows[0][SINK].total.mean())
    assert first["loss"] == series.visits[0].measured.loss


def means(rows, chosen):
    """Figures of a checkpoint over the chosen rows, in the order of a table's columns."""
    share, total, binary, content = (part[chosen] for part in rows)
    least = 1 / (1 + np.exp(content))
    return [part.mean() for part in (share, total, binary, content, least, share > least)]


def test_every_checkpoint_has_the_means_of_its_own_rows(series):
    found = parts_of(series)
    layers = series.visits[0].measured.layer
    assert [row[0] for row in found["checkpoints"].rows] == [0, 8, 128]
    for row, visit in zip(found["checkpoints"].rows, series.visits, strict=True):
        assert list(row[2:8]) == pytest.approx(means(visit.measured.rows[SINK], layers >= 0), rel=1e-12)
    by_layer = {row[:2]: list(row[2:]) for row in found["checkpoints_by_layer"].rows}
    for visit in series.visits:
        for layer in (0, 1):
            wanted = means(visit.measured.rows[SINK], layers == layer)
            assert by_layer[visit.checkpoint.step, layer] == pytest.approx(wanted, rel=1e-12)
    assert len({tuple(row) for row in by_layer.values()}) == 6


def test_shares_are_told_at_the_peak_and_at_the_end(series):
    layers = series.visits[0].measured.layer
    first, last = (series.visits[place].measured.rows[SINK] for place in (0, 2))
    scopes = (layers >= 0, layers == 0, layers == 1)
    for row, chosen in zip(parts_of(series)["shares"].records(), scopes, strict=True):
        start, end = means(first, chosen), means(last, chosen)
        assert (row["share_start"], row["share_end"]) == pytest.approx((start[0], end[0]), rel=1e-12)
        assert (row["least_start"], row["above_end"]) == pytest.approx((start[4], end[5]), rel=1e-12)
        moved = last.share[chosen] - first.share[chosen]
        assert (row["share_change"], row["rose"]) == pytest.approx((moved.mean(), (moved > 0).mean()))
        assert start[4] != end[4]
    assert means(first, layers >= 0)[5] != means(last, layers >= 0)[5]


def test_a_line_of_figures_is_of_the_last_checkpoint_and_the_own_token_comes_before_the_previous(series):
    drops = find_drops([visit.measured for visit in series.visits], (0, 1))
    rows = [visit.measured.rows for visit in series.visits]
    parts = {name: split_ends(rows[0][name], rows[2][name]) for name in TAKEN}
    sink = parts[SINK]
    rose = (rows[2][SINK].share > rows[0][SINK].share).mean()
    assert summary_cells(series, drops) == pytest.approx(
        (
            *(series.visits[2].measured.loss, 0, rows[2][SINK].share.mean(), sink.total),
            *(sink.part, *sink.range, split_path([one[SINK] for one in rows]).part, rose),
            *(parts["own token"].part, parts["previous token"].part),
        ),
        rel=1e-12,
    )
    assert abs(parts["own token"].part - parts["previous token"].part) > 1e-3


def test_the_sentence_gives_the_drop_its_part_its_range_and_the_controls(series):
    said = parts_of(series)["collapse"].text
    assert said.startswith("From step 0 (highest mean entropy) to step 128 the mean entropy falls by ")
    for name in CONTROLS:
        assert f"with the {name} taken for it" in said
    assert said.endswith("compare that of the sink with the controls'.")


def test_no_drop_and_no_rows_are_said(series):
    rising = replace(series, visits=series.visits[::-1])
    drops = find_drops([visit.measured for visit in rising.visits], (0, 1))
    assert "does not fall: there is no drop to split" in conclusion(rising, drops)
    lost = with_rows(series, 1, content=np.full_like(series.visits[1].measured.rows[SINK].content, np.nan))
    found = parts_of(lost)
    assert "no row is defined at every checkpoint" in found["collapse"].text
    assert "; 116 have no content mass at some checkpoint" in found["rows"].text


def test_a_split_that_is_not_exact_fails_its_check(series):
    total = series.visits[1].measured.rows[SINK].total.copy()
    total[5] += 2e-12
    check = parts_of(with_rows(series, 1, total=total))["exact"]
    assert isinstance(check, Check)
    assert not check.ok
    assert "2.0e-12" in check.found
