"""From the peak to the last checkpoint: which rows, which scope, which level."""

import numpy as np
import pytest
from checkpoint_series import figures, row

from validation.studies.collapse.drop import find_drops, find_levels, find_peak, whole_rows
from validation.studies.collapse.measured import CONTROLS, SINK, TAKEN, Measured
from validation.studies.collapse.split import split_ends, split_path

FLAT, PEAKED = (1, 1, 1, 1), (8, 2, 1, 1)


def checkpoint(*rows, layer=None, controls=None):
    """A checkpoint of rows (share, content), the controls' rows being others where they are given."""
    taken = {name: [row(*one) for one in (controls or rows)] for name in TAKEN}
    taken[SINK] = [row(*one) for one in rows]
    layers = np.array(layer or [0] * len(rows), np.int32)
    return Measured(1.0, layers, {name: figures(stack) for name, stack in taken.items()}, (9,), (), 0, 0)


def test_the_drop_starts_at_the_highest_entropy_and_ends_at_the_last():
    series = [
        checkpoint((0.2, PEAKED), (0.3, PEAKED)),
        checkpoint((0.2, FLAT), (0.3, FLAT)),
        checkpoint((0.5, FLAT), (0.3, FLAT)),
        checkpoint((0.9, FLAT), (0.3, PEAKED)),
    ]
    assert find_peak(series) == 1
    drop = find_drops(series, (0,))[SINK, None]
    assert (drop.peak, drop.rows, drop.undefined, drop.layer) == (1, 2, 0, None)
    assert drop.fell
    figure = [measured.rows[SINK] for measured in series]
    assert drop.ends == split_ends(figure[1], figure[3])
    assert drop.path == split_path(figure[1:])
    assert drop.trend.rose == 0.5
    assert drop.start.share == pytest.approx(0.25)
    assert drop.end.share == pytest.approx(0.6)
    assert drop.start.least == pytest.approx(1 / 5)
    assert drop.end.above == 1
    level = find_levels(series)[0]
    assert level.binary + level.outside == pytest.approx(level.total, abs=1e-12)


def test_the_first_of_equal_peaks_is_taken_and_a_peak_at_the_end_is_no_drop():
    flat, sharp = checkpoint((0.2, FLAT)), checkpoint((0.2, PEAKED))
    assert find_peak([sharp, flat, flat, sharp]) == 1
    drop = find_drops([sharp, flat], (0,))[SINK, None]
    assert drop.peak == 1
    assert not drop.fell
    assert drop.ends.total == 0
    assert np.isnan(drop.ends.part)


def test_a_row_that_is_undefined_anywhere_counts_nowhere():
    series = [
        checkpoint((0.2, FLAT), (0.3, FLAT), (0.4, FLAT)),
        checkpoint((0.2, PEAKED), (1.0, FLAT), (0.4, PEAKED)),
        checkpoint((0.2, PEAKED), (0.3, PEAKED), (0.9, FLAT)),
    ]
    assert whole_rows(series).tolist() == [True, False, True]
    drop = find_drops(series, (0,))[SINK, None]
    assert (drop.rows, drop.undefined) == (2, 1)
    kept = [measured.rows[SINK].only([0, 2]) for measured in series]
    assert drop.ends == split_ends(kept[0], kept[2])
    assert find_levels(series)[1].share == pytest.approx(0.3)
    nothing = [checkpoint((1.0, FLAT)), checkpoint((0.2, FLAT))]
    lost = find_drops(nothing, (0,))[SINK, None]
    assert (lost.rows, lost.undefined, lost.peak, lost.fell) == (0, 1, 0, False)
    assert np.isnan(lost.ends.total)


def test_layers_start_at_the_same_peak_and_their_rows_add_up():
    layers = [0, 0, 3]
    series = [
        checkpoint((0.2, FLAT), (0.3, FLAT), (0.4, PEAKED), layer=layers),
        checkpoint((0.6, FLAT), (0.7, FLAT), (0.4, FLAT), layer=layers),
    ]
    drops = find_drops(series, (0, 3))
    assert set(drops) == {(name, layer) for name in TAKEN for layer in (None, 0, 3)}
    of = {layer: drops[SINK, layer] for layer in (None, 0, 3)}
    assert [of[layer].rows for layer in of] == [3, 2, 1]
    assert of[3].ends.total > 0
    for part in ("total", "sink", "content"):
        parts = [getattr(of[layer].ends, part) for layer in of]
        assert parts[0] == pytest.approx((2 * parts[1] + parts[2]) / 3, abs=1e-12)
    assert set(find_drops(series, (0,))) == {(name, None) for name in TAKEN}


def test_controls_are_split_by_their_own_shares():
    rows, controls = ((0.2, FLAT), (0.8, FLAT)), ((0.3, PEAKED), (0.3, FLAT))
    series = [checkpoint(row, controls=[other]) for row, other in zip(rows, controls, strict=True)]
    drops = find_drops(series, (0,))
    assert drops[SINK, None].ends.part == pytest.approx(1)
    for name in CONTROLS:
        assert drops[name, None].ends.part == pytest.approx(0)
        assert drops[name, None].taken == name
