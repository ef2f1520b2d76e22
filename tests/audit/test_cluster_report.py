"""The tables say what the clustering found, with its floors, its rows and the heads that were left out."""

import numpy as np
import pytest
from head_clouds import GROUPS, LABELS, clouds, sums_of

from validation.audit.cluster_report import cluster_parts, side_names
from validation.audit.clustering import cluster_heads, with_clark2019
from validation.report.as_json import dumps
from validation.report.document import Document, Note, Table
from validation.report.terminal import render

OTHER = np.arange(18) // 6
COVARIATES = {"mean sink share": GROUPS * 0.3, "layer": OTHER}


@pytest.fixture(scope="module")
def apart():
    """One triangle of groups under keep, another under drop, and little noise in either."""
    sums = sums_of(clouds(1), clouds(2, groups=OTHER), noise=0.05)
    return cluster_heads(sums, COVARIATES, metric="hellinger")


def reported(found, labels, covariates, **named):
    return cluster_parts(cluster_heads(found, covariates, **named), labels)


def tables(parts):
    return {part.key: part for part in parts if isinstance(part, Table)}


def test_the_agreement_stands_beside_both_split_half_indices(apart):
    table = tables(cluster_parts(apart, LABELS))["agreement_hellinger"]
    (row,) = [record for record in table.records() if record["clusters"] == 3]
    assert row["average_index"] == apart.agreement["average"][1] < 0
    assert row["ward_index"] == apart.agreement["ward"][1] < 0
    halves = [row[f"{linkage}_halves_{side}_low"] for linkage in ("average", "ward") for side in (1, 2)]
    assert halves == [1, 1, 1, 1]
    lowest, highest = (end(apart.second.split_half["ward"], axis=0).tolist() for end in (np.min, np.max))
    assert [record["ward_halves_2_low"] for record in table.records()] == lowest
    assert [record["ward_halves_2_high"] for record in table.records()] == highest
    assert "the least and the most alike of 10 different splits" in table.notes[0]
    assert table.notes[1] == "18 heads; rows of each pair of heads: 24"


def test_sizes_are_shown_in_short_and_kept_whole(apart):
    found = tables(cluster_parts(apart, LABELS))
    assert found["sizes_hellinger"].records()[1] == {
        "clusters": 3,
        **{f"{linkage}_{side}_largest": 6 for linkage in ("average", "ward") for side in (1, 2)},
        **{f"{linkage}_{side}_single": 0 for linkage in ("average", "ward") for side in (1, 2)},
    }
    every = found["all_sizes_hellinger"]
    assert not every.shown
    assert ("keep", "ward", 3, "6 6 6") in every.rows
    assert len(every.rows) == 2 * 2 * 9
    assert all(sum(map(int, row[3].split())) == 18 for row in every.rows)


def test_average_linkage_that_peels_shows_as_single_heads():
    far = clouds(0, 0.1, groups=np.zeros(18, dtype=int))
    far[:3] += [[50, 0], [0, 90], [-150, 0]]
    (table,) = [
        part
        for part in reported(sums_of(far, far), LABELS, {}, metric="hellinger", splits=1)
        if part.key == "sizes_hellinger"
    ]
    assert table.records()[2]["average_1_largest"] == 15
    assert table.records()[2]["average_1_single"] == 3


def test_axes_are_held_to_every_covariate_on_both_sides(apart):
    table = tables(cluster_parts(apart, LABELS))["axes_hellinger"]
    found = {(row["side"], row["covariate"]): row for row in table.records()}
    assert found["keep", "mean sink share"]["r_squared"] > 0.99
    assert found["keep", "layer"]["r_squared"] < 0.3
    assert found["drop", "layer"]["r_squared"] > 0.99
    row = found["keep", "mean sink share"]
    assert 0 <= row["axis_1"] <= 1
    assert row["halves_low"] <= row["r_squared"] + 0.01
    assert row["halves_low"] == apart.first.halves["mean sink share"].min()
    assert row["halves_high"] == apart.first.halves["mean sink share"].max()
    assert table.notes[0].startswith("classical scaling of the mean distance; ")
    assert "chance gives 11.8% on average" in table.notes[1]


def test_shares_and_points_are_those_of_the_scaling(apart):
    found = tables(cluster_parts(apart, LABELS))
    assert found["shares_hellinger"].rows[0] == (
        "keep",
        *apart.first.scaling.explained,
        apart.first.scaling.negative,
    )
    points = found["points_hellinger"]
    assert not points.shown
    assert points.rows[19] == ("drop", "0.1", *apart.second.scaling.points[1])


def closing(parts):
    (note,) = [part for part in parts if isinstance(part, Note)]
    return note.text


def test_the_closing_sentence_counts_what_is_below_both_floors(apart):
    floors = [np.min(side.split_half["ward"], axis=0) for side in (apart.first, apart.second)]
    below = int((apart.agreement["ward"] < np.min(floors, axis=0)).sum())
    text = closing(cluster_parts(apart, LABELS))
    assert text.startswith("Hellinger: keep and drop give clusters less alike than the least alike halves")
    assert text.endswith(f"and {below} of 9 numbers of clusters with Ward linkage.")
    assert below > 0


def test_one_convention_with_noise_of_that_size_is_enough_to_say_nothing(apart):
    halves = [dict.fromkeys(("average", "ward"), np.full((10, 9), index)) for index in (0.9, 0.2)]
    first, second = (
        side._replace(split_half=indices)
        for side, indices in zip((apart.first, apart.second), halves, strict=True)
    )
    agreement = dict.fromkeys(("average", "ward"), np.full(9, 0.5))
    text = closing(cluster_parts(apart._replace(first=first, second=second, agreement=agreement), LABELS))
    assert "for 0 of 9 numbers of clusters with average linkage and 0 of 9" in text


def test_the_sign_of_an_axis_is_not_shown(apart):
    fit = apart.first.fits["layer"]._replace(correlation=-0.75)
    turned = apart._replace(first=apart.first._replace(fits={"layer": fit}))
    assert tables(cluster_parts(turned, LABELS))["axes_hellinger"].records()[0]["axis_1"] == 0.75


def test_conventions_that_agree_are_never_below_their_floor():
    same = clouds(1)
    text = closing(reported(sums_of(same, same), LABELS, {}, metric="hellinger"))
    assert "for 0 of 9 numbers of clusters with average linkage and 0 of 9" in text


def test_fewer_than_ten_splits_say_nothing_of_the_clusters():
    few = closing(reported(sums_of(clouds(1), clouds(2)), LABELS, {}, metric="hellinger", splits=3))
    assert (
        few == "Hellinger: 3 usable splits of the texts, fewer than 10, so nothing is said of the clusters."
    )


def test_one_text_says_nothing_of_the_clusters():
    parts = reported(sums_of(clouds(1), clouds(2), texts=1), LABELS, COVARIATES, metric="hellinger")
    assert closing(parts) == "Hellinger: no split-half index, so nothing is said of the clusters."
    found = tables(parts)
    assert np.isnan([row["ward_halves_1_low"] for row in found["agreement_hellinger"].records()]).all()
    assert np.isnan([row["halves_low"] for row in found["axes_hellinger"].records()]).all()


def test_heads_and_splits_that_are_left_out_are_named_and_counted():
    sums = sums_of(clouds(1), clouds(1))
    for array in (sums.sums["hellinger", "keep"], sums.counts["hellinger", "keep"]):
        array[:, 7] = array[:, :, 7] = 0
        array[:3, 12] = array[:3, :, 12] = 0
    notes = tables(reported(sums, LABELS, {}, metric="hellinger"))["agreement_hellinger"].notes
    assert "17 heads; rows of each pair of heads: 12 to 24" in notes
    assert "left out, for a distance that is undefined: 1.1 (1)" in notes
    (split,) = [note for note in notes if "a half lacks a distance" in note]
    assert split.startswith("keep: ")


def test_the_preset_names_both_metrics():
    sums = with_clark2019(
        sums_of(clouds(1), clouds(2), "jsd"),
        np.stack([np.abs(np.subtract.outer(OTHER, OTHER))] * 6),
        np.ones((6, *np.shape(np.subtract.outer(OTHER, OTHER)))),
    )
    found = cluster_heads(sums, {}, metric="clark2019", splits=1, against=("jsd", "drop"))
    assert side_names(found) == ("Clark et al. 2019 keep", "JSD drop")
    shown = tables(cluster_parts(found, LABELS))
    assert "agreement_clark2019" in shown
    scaled = "the mean distance (Clark et al. 2019 keep) and the root of the mean distance (JSD drop)"
    assert shown["axes_clark2019"].notes[0].startswith(f"classical scaling of {scaled}; ")


def test_the_context_stands_under_every_table_and_all_of_it_is_shown(apart):
    parts = cluster_parts(apart, LABELS, "6 texts, sink set [CLS]")
    assert all(table.notes[-1] == "6 texts, sink set [CLS]" for table in tables(parts).values())
    document = Document("audit", {}, parts)
    screen = render(document)
    assert "Clusters by Hellinger: keep against drop" in screen
    assert max(map(len, screen.splitlines())) <= 80
    assert '"all_sizes_hellinger"' in dumps(document)
