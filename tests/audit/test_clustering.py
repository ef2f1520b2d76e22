"""Clusters that are there are found, agreement is the adjusted Rand index, undefined heads are left out."""

import builtins
from itertools import combinations
from math import comb

import numpy as np
import pytest
from head_clouds import GROUPS, clouds, sums_of
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import adjusted_rand_score

import oracle
from oracle import DistanceSums, InputError, Unavailable
from validation.audit.clustering import (
    LINKAGES,
    cluster_heads,
    cluster_labels,
    defined_heads,
    with_clark2019,
)
from validation.audit.passages import load_passages
from validation.audit.scaling import classical_scaling


def rand_index(first, second):
    """Hubert and Arabie's index, pair by pair: agreement above chance over what it could be at most."""
    pairs = [(first[a] == first[b], second[a] == second[b]) for a, b in combinations(range(len(first)), 2)]
    together = sum(a and b for a, b in pairs)
    one, two = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    chance = one * two / comb(len(first), 2)
    return (together - chance) / ((one + two) / 2 - chance)


@pytest.mark.parametrize("name", LINKAGES)
def test_known_clusters_are_recovered(name):
    points = clouds()
    (labels,) = cluster_labels(cdist(points, points), name, [3])
    assert labels.tolist() == GROUPS.tolist()  # numbered in the order of the heads


@pytest.mark.parametrize("name", LINKAGES)
def test_the_tree_is_scipys(name):
    points = clouds(3, spread=2)
    found = cluster_labels(cdist(points, points), name, range(2, 11))
    tree = linkage(squareform(cdist(points, points), checks=False), name)
    for clusters, labels in zip(range(2, 11), found, strict=True):
        assert adjusted_rand_score(labels, fcluster(tree, clusters, "maxclust")) == 1
        assert len(set(labels)) == clusters


@pytest.mark.parametrize("name", LINKAGES)
def test_ties_still_give_as_many_clusters_as_asked_for(name):
    equal = 1 - np.eye(7)
    for clusters, labels in zip((2, 3, 5), cluster_labels(equal, name, (2, 3, 5)), strict=True):
        assert set(labels) == set(range(clusters))
        firsts = [labels.tolist().index(label) for label in range(clusters)]
        assert firsts == sorted(firsts)


def test_the_same_points_under_both_conventions_agree_wholly():
    found = cluster_heads(sums_of(clouds(1), clouds(1)), {}, metric="hellinger")
    assert found.clusters == tuple(range(2, 11))
    for name in LINKAGES:
        assert (found.agreement[name] == 1).all()
        assert found.first.split_half[name].shape == (10, 9)
        assert (found.first.split_half[name] == 1).all()  # every text is the same
        assert found.first.sizes(name, 3) == found.second.sizes(name, 3) == (6, 6, 6)
    assert found.excluded == ()
    assert found.first.rows == (24, 24)


def test_other_groups_under_drop_agree_as_the_index_says():
    other = np.arange(18) // 6
    found = cluster_heads(sums_of(clouds(1), clouds(2, groups=other)), {}, metric="hellinger", splits=1)
    for name in LINKAGES:
        assert found.agreement[name][1] == pytest.approx(rand_index(GROUPS, other), abs=1e-12)
        pairs = zip(found.first.labels[name], found.second.labels[name], strict=True)
        brute = [rand_index(a, b) for a, b in pairs]
        assert found.agreement[name] == pytest.approx(brute, abs=1e-12)
    assert rand_index(GROUPS, other) < 0


def test_the_split_half_index_falls_with_the_noise_of_the_texts():
    def floor(noise):
        found = cluster_heads(sums_of(clouds(), clouds(), noise=noise), {}, metric="hellinger")
        return np.median(found.first.split_half["ward"][:, 1])  # 3 clusters

    assert floor(0.1) == 1
    assert floor(20) < 0.5


def test_the_split_half_index_is_that_of_the_halves():
    sums = sums_of(clouds(4, 1), clouds(5, 1), noise=1.0, texts=5)
    found = cluster_heads(sums, {}, metric="hellinger", splits=3, seed=8)
    rng = np.random.default_rng(8)
    order = rng.permutation(5)
    halves = [sums.sums["hellinger", "drop"][part].sum(axis=0) for part in (order[:2], order[2:])]
    first, second = (cluster_labels(half, "average", [4])[0] for half in halves)
    assert found.second.split_half["average"][0, 2] == pytest.approx(rand_index(first, second), abs=1e-12)


@pytest.mark.parametrize("metric", ["jsd", "aitchison", "cosine"])
def test_the_map_and_ward_take_the_root_of_a_mean_of_squares(metric):
    keep, drop = clouds(1, 0.5), clouds(2, 0.5)
    found = cluster_heads(sums_of(keep, drop, metric), {}, metric=metric, splits=1)
    assert (
        np.abs(cdist(found.first.scaling.points, found.first.scaling.points) - cdist(keep, keep)).max() < 1e-7
    )
    assert found.second.scaling.negative < 1e-12
    whole = cdist(keep, keep)
    ward, average = (
        cluster_labels(d, name, range(2, 11)) for d, name in ((whole, "ward"), (whole**2, "average"))
    )
    assert (found.first.labels["ward"] == ward).all()
    assert (found.first.labels["average"] == average).all()


def test_covariates_are_held_to_both_axes_and_to_halves():
    keep = clouds(1)
    share = classical_scaling(cdist(keep, keep)).points @ [1.0, 0.0]
    noise = np.random.default_rng(0).standard_normal(18)
    noise[4] = np.nan
    found = cluster_heads(
        sums_of(keep, clouds(2)), {"share": share, "noise": noise}, metric="hellinger", splits=4
    )
    assert abs(found.first.fits["share"].correlation) == pytest.approx(1, abs=1e-9)
    assert found.first.fits["share"].r_squared == pytest.approx(1, abs=1e-9)
    assert found.first.halves["share"] == pytest.approx(np.ones(8), abs=1e-9)
    assert found.first.fits["noise"].r_squared < 0.7
    assert found.first.fits["noise"].n_heads == 17


def undefined(sums, key, heads, texts=slice(None)):
    """The same sums with nothing pooled for `heads` in `texts` under `key`."""
    for head in heads:
        for array in (sums.sums[key], sums.counts[key]):
            array[texts, head] = array[texts, :, head] = 0
    return sums


def test_heads_without_distances_are_left_out_on_both_sides():
    sums = undefined(sums_of(clouds(1), clouds(1)), ("hellinger", "drop"), [2, 11])
    found = cluster_heads(sums, {"layer": np.arange(18)}, metric="hellinger", splits=1)
    assert found.excluded == (2, 11)
    assert found.heads.tolist() == [head for head in range(18) if head not in (2, 11)]
    assert found.first.labels["ward"].shape == found.second.labels["ward"].shape == (9, 16)
    assert found.second.fits["layer"].n_heads == 16
    assert (found.agreement["average"] == 1).all()


def test_a_single_undefined_pair_costs_one_head():
    distances = np.ones((5, 5))
    distances[1, 3] = np.nan  # one triangle is enough
    assert defined_heads(distances).tolist() == [0, 2, 3, 4]
    distances[3, 4] = distances[4, 3] = np.nan
    assert defined_heads(distances, np.ones((5, 5))).tolist() == [0, 1, 2, 4]
    assert defined_heads(np.full((3, 3), np.nan)).tolist() == []


def test_a_split_with_an_undefined_half_is_left_out():
    sums = undefined(sums_of(clouds(1), clouds(1)), ("hellinger", "keep"), [5], texts=slice(3))
    found = cluster_heads(sums, {"layer": np.arange(18)}, metric="hellinger", splits=20)
    lost = np.isnan(found.first.split_half["ward"]).any(axis=1)
    assert 0 < lost.sum() < 10
    assert (np.isnan(found.first.halves["layer"]).reshape(10, 2).all(axis=1) == lost).all()
    assert not np.isnan(found.second.split_half["ward"]).any()
    assert found.excluded == ()


def test_one_text_has_no_floor():
    found = cluster_heads(sums_of(clouds(1), clouds(2), texts=1), {}, metric="hellinger")
    assert found.first.split_half["average"].shape == (0, 9)
    assert (found.agreement["average"] <= 1).all()


def test_few_heads_have_few_clusters():
    points = clouds()[:4]
    assert cluster_heads(sums_of(points, points), {}, metric="hellinger").clusters == (2, 3)


def test_equal_heads_still_give_an_answer():
    found = cluster_heads(
        sums_of(np.zeros((5, 2)), clouds()[:5]), {"layer": np.arange(5)}, metric="hellinger"
    )
    assert np.isnan(found.first.fits["layer"].r_squared)
    assert np.isnan(found.first.halves["layer"]).all()
    assert found.first.sizes("average", 2) in [(4, 1), (3, 2)]


def repeated(rows, heads):
    """The number of rows of each text for every pair of heads, (text, head, head)."""
    return np.broadcast_to(np.asarray(rows)[:, None, None], (len(rows), heads, heads))


def test_the_preset_is_held_against_itself_under_drop():
    keep, drop = clouds(1), clouds(2, groups=np.arange(18) // 6)
    sums = sums_of(keep, drop, "jsd", texts=4)
    distances = np.stack([cdist(keep, keep)] * 4) * [[[3]], [[1]], [[2]], [[5]]]
    both = with_clark2019(sums, distances, repeated([3, 1, 2, 5], 18))
    both = with_clark2019(both, np.stack([cdist(drop, drop)] * 4), repeated([1] * 4, 18), "drop")
    found = cluster_heads(both, {}, metric="clark2019", splits=1)
    assert (found.first.key, found.second.key) == (("clark2019", "keep"), ("clark2019", "drop"))
    assert found.agreement["ward"][1] == pytest.approx(rand_index(GROUPS, np.arange(18) // 6), abs=1e-12)
    # its map takes the divergence itself
    assert (
        np.abs(cdist(found.first.scaling.points, found.first.scaling.points) - cdist(keep, keep)).max() < 1e-7
    )
    assert found.first.rows == (11, 11)
    assert set(sums.sums) == {("jsd", "keep"), ("jsd", "drop")}  # left as it was


def test_the_preset_of_texts_one_by_one_is_that_of_all_of_them(minilm):
    texts = [oracle.forward(minilm, text).attention[:2] for text in load_passages()[:2]]
    each = np.stack([oracle.clark2019_distances(rows) for rows in texts])
    both = with_clark2019(
        DistanceSums({}, {}), each, repeated([rows.shape[-2] for rows in texts], each.shape[1])
    )
    rows = sum(rows.shape[-2] for rows in texts)
    found = oracle.mean_distances(both, "clark2019", "keep") * rows
    assert found == pytest.approx(oracle.clark2019_distances(texts), rel=1e-13)


def test_the_preset_counts_no_rows_where_a_head_has_none():
    distances = np.ones((2, 3, 3))
    distances[1, 2] = distances[1, :, 2] = np.nan
    both = with_clark2019(DistanceSums({}, {}), distances, repeated([7, 9], 3))
    assert both.counts["clark2019", "keep"][1].tolist() == [[9, 9, 0], [9, 9, 0], [0, 0, 0]]
    assert not np.isnan(both.sums["clark2019", "keep"]).any()


def test_what_is_not_there_is_refused():
    sums = sums_of(clouds(), clouds())
    with pytest.raises(
        InputError, match="metric: expected one of hellinger/keep, hellinger/drop; found jsd/keep"
    ):
        cluster_heads(sums, {}, metric="jsd")
    with pytest.raises(InputError, match="layer: expected one value for each of 18 heads; found shape"):
        cluster_heads(sums, {"layer": np.arange(17)}, metric="hellinger")
    with pytest.raises(InputError, match="at least 3 heads with a distance to each other; found 2 of 18"):
        cluster_heads(undefined(sums, ("hellinger", "keep"), range(16)), {}, metric="hellinger")


@pytest.mark.parametrize("package", ["scipy", "sklearn"])
def test_without_the_extra_it_says_how_to_get_it(package, monkeypatch):
    real = builtins.__import__

    def absent(name, *arguments, **named):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named '{package}'")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(Unavailable, match=r'pip install "sinkscope\[clustering\]"'):
        cluster_heads(sums_of(clouds(), clouds()), {}, metric="hellinger")
