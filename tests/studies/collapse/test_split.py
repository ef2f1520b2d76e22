"""The two channels: against the oracle's own split of rows, and where the answer is known."""

from math import log

import numpy as np
import pytest
from checkpoint_series import figures, row
from oracle_models import random_rows

from oracle import entropy_change
from validation.studies.collapse.split import (
    RowEntropies,
    least_share,
    split_ends,
    split_path,
    split_rows,
    trend,
)

FLAT, PEAKED = (1, 1, 1, 1), (8, 2, 1, 1)
EXACT = 1e-12


def h(share):
    return -share * log(share) - (1 - share) * log(1 - share)


def entropy(parts):
    weights = np.asarray(parts) / sum(parts)
    return float(-(weights * np.log(weights)).sum())


def constructed(*checkpoints):
    """A series of one row each: (share, content) for every checkpoint."""
    return [figures([row(*checkpoint)]) for checkpoint in checkpoints]


def test_channels_are_those_of_the_oracle_on_the_rows_themselves():
    rng = np.random.default_rng(0)
    before, after = random_rows(rng, 2, 500, 13)
    sinks = np.arange(13) == 0
    wanted = entropy_change(before, after, sinks)
    found = split_rows(figures(before), figures(after))
    for name in ("total", "sink", "content"):
        assert np.abs(getattr(found, name) - getattr(wanted, name)).max() <= EXACT
    assert np.abs(found.total - found.sink - found.content).max() <= EXACT


def test_the_average_of_rows_is_split_exactly_too():
    rng = np.random.default_rng(1)
    series = [figures(rows) for rows in random_rows(rng, 5, 300, 11)]
    for split in (split_ends(series[0], series[-1]), split_path(series)):
        assert split.total == pytest.approx(series[-1].total.mean() - series[0].total.mean(), abs=EXACT)
        assert split.total == pytest.approx(split.sink + split.content, abs=EXACT)


def test_averaging_first_gives_something_else():
    rng = np.random.default_rng(2)
    before, after = (figures(rows) for rows in random_rows(rng, 2, 300, 11))
    averaged = split_ends(*(RowEntropies(*(part.mean(keepdims=True) for part in x)) for x in (before, after)))
    assert abs(averaged.content - split_ends(before, after).content) > 0.005


@pytest.mark.parametrize("way", [lambda series: split_ends(series[0], series[-1]), split_path])
def test_where_only_the_sink_grows_all_of_the_drop_is_the_sinks(way):
    series = constructed((0.3, PEAKED), (0.6, PEAKED), (0.9, PEAKED))
    split = way(series)
    assert split.content == pytest.approx(0, abs=EXACT)
    assert split.sink == pytest.approx(h(0.9) - h(0.3) - 0.6 * entropy(PEAKED), abs=EXACT)
    assert split.part == pytest.approx(1, abs=EXACT)
    assert split.range == pytest.approx((1, 1), abs=EXACT)


@pytest.mark.parametrize("way", [lambda series: split_ends(series[0], series[-1]), split_path])
def test_where_only_the_content_sharpens_none_of_it_is(way):
    series = constructed((0.4, FLAT), (0.4, (3, 2, 1, 1)), (0.4, PEAKED))
    split = way(series)
    assert split.sink == pytest.approx(0, abs=EXACT)
    assert split.content == pytest.approx(0.6 * (entropy(PEAKED) - log(4)), abs=EXACT)
    assert split.part == pytest.approx(0, abs=EXACT)


def test_where_one_follows_the_other_the_path_is_a_one_sided_order():
    first, last = (0.2, FLAT), (0.7, PEAKED)
    sink_before = h(0.7) - h(0.2) - 0.5 * log(4)
    sink_after = h(0.7) - h(0.2) - 0.5 * entropy(PEAKED)
    ends = split_ends(*constructed(first, last))
    assert ends.sink_first == pytest.approx(sink_before, abs=EXACT)
    assert ends.content_first == pytest.approx(sink_after, abs=EXACT)
    assert ends.sink == pytest.approx((sink_before + sink_after) / 2, abs=EXACT)
    assert ends.range == pytest.approx((sink_after / ends.total, sink_before / ends.total), abs=EXACT)
    sink_then_content = split_path(constructed(first, (0.7, FLAT), last))
    assert sink_then_content.sink == pytest.approx(sink_before, abs=EXACT)
    assert sink_then_content.range == pytest.approx((sink_then_content.part,) * 2, abs=EXACT)
    content_then_sink = split_path(constructed(first, (0.2, PEAKED), last))
    assert content_then_sink.sink == pytest.approx(sink_after, abs=EXACT)
    for split in (ends, sink_then_content, content_then_sink):
        assert split.total == pytest.approx(ends.total, abs=EXACT)


def test_a_shrinking_sink_lowers_the_entropy_only_below_the_least_share():
    small = constructed((0.15, FLAT), (0.02, FLAT))  # s* = 1/5
    split, moved = split_ends(*small), trend(*small)
    assert split.sink < 0
    assert split.part == pytest.approx(1)
    assert moved.change == pytest.approx(-0.13)
    assert moved.rose == 0
    assert moved.sink_where_rose == 0
    assert moved.sink_elsewhere == pytest.approx(split.sink)
    assert split_ends(*constructed((0.9, FLAT), (0.5, FLAT))).sink > 0


def test_rows_that_rose_and_the_others_sum_to_the_sink_channel():
    before = figures([row(0.1, FLAT), row(0.15, FLAT), row(0.5, PEAKED), row(0.5, FLAT)])
    after = figures([row(0.8, FLAT), row(0.02, FLAT), row(0.9, FLAT), row(0.5, PEAKED)])
    moved, split = trend(before, after), split_ends(before, after)
    assert moved.rose == 0.5
    assert moved.sink_where_rose + moved.sink_elsewhere == pytest.approx(split.sink, abs=EXACT)
    rises = [split_ends(before.only([k]), after.only([k])).sink for k in (0, 2)]
    assert moved.sink_where_rose == pytest.approx(sum(rises) / 4, abs=EXACT)


def test_the_least_share_is_where_the_entropy_turns():
    content = np.array([0.01, log(4), entropy(PEAKED), 5.0])
    least = least_share(content)
    assert least[1] == pytest.approx(1 / 5)
    assert (least > 0).all()
    assert (least <= 0.5).all()

    def total(share):
        return np.array([h(s) + (1 - s) * c for s, c in zip(share, content, strict=True)])

    assert (total(least) > total(least * 0.999)).all()
    assert (total(least) > total(least * 1.001)).all()
    assert np.isnan(least_share(np.array([np.nan]))).all()


def test_no_rows_and_no_steps():
    none = figures([row(0.2, FLAT)]).only([])
    assert np.isnan(split_ends(none, none)).all()
    assert np.isnan(trend(none, none)).all()
    assert split_path([figures([row(0.2, FLAT)])]) == (0, 0, 0, 0, 0)
    assert np.isnan(split_path([figures([row(0.2, FLAT)])]).part)


def test_a_row_without_content_has_no_channels():
    before, after = figures([row(0.5, FLAT)]), figures([row(1.0, FLAT)])
    change = split_rows(before, after)
    assert np.isnan(change.sink).all()
    assert np.isnan(change.content).all()
    assert change.total == pytest.approx(-before.total)
