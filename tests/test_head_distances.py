"""Distances between all heads: sums, means and the preset, and what the sink does to verdicts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import (
    CONVENTIONS,
    METRICS,
    DistanceSums,
    KeyRange,
    aitchison_split_from_scores,
    clark2019_distances,
    distance_sums,
    head_distances,
    mean_distances,
    row_distances,
    verdict_flips,
)
from oracle.ops import softmax

SINK = np.array([True, False, False])
PAIRS = [pair for pair in itertools.product(METRICS, CONVENTIONS) if pair != ("aitchison_sink", "drop")]


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def texts_of(rng, *lengths: int, layers: int = 2, heads: int = 3) -> list[np.ndarray]:
    return [random_rows(rng, layers, heads, length, length) for length in lengths]


def by_pairs(texts, sinks, metric, convention, visible=None, queries=None, scores=None) -> DistanceSums:
    """The sums as a loop over texts, pairs of heads and rows."""
    heads = math.prod(texts[0].shape[:-2])
    sums, counts = np.zeros((len(texts), heads, heads)), np.zeros((len(texts), heads, heads), int)
    for text, rows in enumerate(texts):
        flat = rows.reshape(heads, *rows.shape[-2:])
        for a, b in itertools.product(range(heads), repeat=2):
            seen = None if visible is None else visible[text]
            if scores is not None and metric.startswith("aitchison"):
                logits = scores[text].reshape(flat.shape)
                split = aitchison_split_from_scores(logits[a], logits[b], sinks[text], seen)
                values = split.sink if metric == "aitchison_sink" else split[0 if convention == "keep" else 2]
            else:
                values = row_distances(flat[a], flat[b], sinks[text], metric, convention, seen)
            for query, value in enumerate(values):
                if (queries is None or queries[text][query]) and not np.isnan(value):
                    sums[text, a, b] += value
                    counts[text, a, b] += 1
    return DistanceSums({(metric, convention): sums}, {(metric, convention): counts})


def test_sums_are_those_of_all_pairs(rng):
    texts = texts_of(rng, 5, 1, 8)
    sinks = [np.arange(len(rows[0, 0])) == 0 for rows in texts]
    found = distance_sums(texts, sinks)
    assert list(found.sums) == list(found.counts) == PAIRS
    for pair in PAIRS:
        wanted = by_pairs(texts, sinks, *pair)
        assert found.sums[pair].dtype == np.float64
        assert found.counts[pair].dtype == np.int64
        np.testing.assert_allclose(found.sums[pair], wanted.sums[pair], rtol=1e-13, err_msg=str(pair))
        np.testing.assert_array_equal(found.counts[pair], wanted.counts[pair], str(pair))
        np.testing.assert_array_equal(found.sums[pair], found.sums[pair].swapaxes(1, 2))


def test_undefined_rows_leave_their_pairs_only(rng):
    rows = random_rows(rng, 4, 6, 5)
    rows[1, 2] = 0  # no mass
    rows[2, 4] = [1, 0, 0, 0, 0]  # no content
    found = distance_sums(rows, np.arange(5) == 0)
    for metric, convention in PAIRS:
        content = convention == "drop" or metric.startswith("aitchison")
        lost = np.zeros((4, 4), int)
        lost[1] += 1
        lost[:, 1] += lost[:, 1] == 0
        if content:
            lost[2] += 1
            lost[:, 2] += 1
            lost[2, 2] = 1
        np.testing.assert_array_equal(found.counts[metric, convention][0], 6 - lost, f"{metric} {convention}")


@pytest.mark.parametrize("elements", [1, 100, 130])
def test_the_size_of_a_block_changes_nothing(rng, monkeypatch, elements):
    rows, sinks = random_rows(rng, 5, 6, 5), np.arange(5) == 0
    wanted, smooth = distance_sums(rows, sinks), clark2019_distances(rows)
    monkeypatch.setattr("oracle.distances._ELEMENTS", elements)
    found = distance_sums(rows, sinks)
    for pair in PAIRS:
        np.testing.assert_array_equal(found.sums[pair], wanted.sums[pair])
        np.testing.assert_array_equal(found.counts[pair], wanted.counts[pair])
    np.testing.assert_array_equal(clark2019_distances(rows), smooth)


def test_masks_queries_and_scores_for_each_text(rng):
    lengths = (6, 4)
    scores = [3 * rng.standard_normal((2, 2, length, length)) for length in lengths]
    visible = [np.tri(length, dtype=bool) for length in lengths]
    texts = [softmax(np.where(seen, s, -np.inf)) for s, seen in zip(scores, visible, strict=True)]
    scores = [np.where(seen, s, -np.inf) for s, seen in zip(scores, visible, strict=True)]
    sinks = [np.arange(length) < 2 for length in lengths]
    queries = [np.arange(length) > 2 for length in lengths]
    found = distance_sums(texts, sinks, visible=visible, scores=scores, queries=queries)
    ranges = [KeyRange.causal(length) for length in lengths]
    again = distance_sums(texts, sinks, visible=ranges, scores=scores, queries=[q.tolist() for q in queries])
    from_rows = distance_sums(texts, sinks, visible=visible, queries=queries)
    for pair in PAIRS:
        wanted = by_pairs(texts, sinks, *pair, visible, queries, scores)
        np.testing.assert_allclose(found.sums[pair], wanted.sums[pair], rtol=1e-13, err_msg=str(pair))
        np.testing.assert_array_equal(found.counts[pair], wanted.counts[pair])
        np.testing.assert_array_equal(found.sums[pair], again.sums[pair])
        np.testing.assert_allclose(found.sums[pair], from_rows.sums[pair], rtol=1e-11)
        np.testing.assert_array_equal(found.counts[pair], from_rows.counts[pair])
        assert found.counts[pair][:, 0, 1].tolist() == [3, 1]


def test_scores_pass_by_zeros_but_not_by_rows_without_mass(rng):
    scores = rng.standard_normal((2, 3, 4)) + np.array([0, 0, 0, -900.0])
    rows = softmax(scores)
    sinks = np.arange(4) == 0
    with refused("attention", "zero at head 0, query 0, key 3 (6 in all)"):
        distance_sums(rows, sinks, "aitchison")
    assert distance_sums(rows, sinks, "jsd").counts["jsd", "keep"][0, 0, 1] == 3
    rows[1, 2] = 0
    found = distance_sums(rows, sinks, ("jsd", "aitchison", "aitchison_sink"), scores=scores)
    for pair, counts in found.counts.items():
        assert counts[0].tolist() == [[3, 2], [2, 2]], pair


def test_zeros_in_rows_that_do_not_count_are_not_refused():
    rows = np.array([[[0.5, 0.5, 0], [0.5, 0.25, 0.25]], [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]])
    found = distance_sums(rows, SINK, "aitchison", queries=[False, True])
    assert found.counts["aitchison", "keep"].tolist() == [[[1, 1], [1, 1]]]
    with refused("rows[1]", "zero at head 0, query 0, key 2 (1 in all)"):
        distance_sums([rows[:, 1:], rows], SINK, "aitchison")
    both = [distance_sums(rows, SINK, "aitchison", zeros="common-support")]
    both.append(distance_sums(rows, SINK, "aitchison", zeros="replace", delta=1e-3))
    assert [sums.counts["aitchison", "drop"][0, 0, 1] for sums in both] == [2, 2]
    assert both[0].sums["aitchison", "keep"][0, 0, 1] < both[1].sums["aitchison", "keep"][0, 0, 1]


def test_one_text_may_be_an_array_a_list_of_one_or_plain_numbers(rng):
    rows = random_rows(rng, 2, 3, 4, 4)
    sinks = np.arange(4) == 0
    wanted = head_distances(rows, sinks)
    assert wanted.shape == (6, 6)
    for given in (rows, [rows], (rows,), rows.tolist(), list(rows.reshape(6, 4, 4).tolist())):
        np.testing.assert_array_equal(head_distances(given, sinks), wanted)
    np.testing.assert_array_equal(head_distances(rows.reshape(6, 4, 4), sinks.tolist()), wanted)
    torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')
    tensor = torch.tensor(rows)
    np.testing.assert_array_equal(head_distances([tensor, tensor], torch.tensor(sinks)), wanted)


def test_a_nested_list_is_one_mask_for_all_texts(rng):
    texts = [np.where(np.tri(2), rows, 0) for rows in random_rows(rng, 2, 3, 2, 2)]
    texts = [rows / rows.sum(axis=-1, keepdims=True) for rows in texts]
    wanted = distance_sums(texts, [1, 0], "jsd", visible=np.tri(2))
    for visible in ([[1, 0], [1, 1]], [[[1, 0], [1, 1]]] * 2, [KeyRange.causal(2)] * 2, KeyRange.causal(2)):
        found = distance_sums(texts, [[1, 0], [1, 0]], "jsd", visible=visible)
        for pair, sums in found.sums.items():
            np.testing.assert_array_equal(sums, wanted.sums[pair])
            np.testing.assert_array_equal(found.counts[pair], wanted.counts[pair])
    assert wanted.counts["jsd", "drop"][:, 0, 1].tolist() == [1, 1]


def test_means_pool_the_rows_of_the_chosen_texts(rng):
    texts = texts_of(rng, 5, 2, 8)
    sinks = [np.arange(len(rows[0, 0])) == 0 for rows in texts]
    found = distance_sums(texts, sinks, ("jsd", "cosine"), "drop")
    assert list(found.sums) == [("jsd", "drop"), ("cosine", "drop")]
    pooled = mean_distances(found, "jsd", "drop")
    alone = [head_distances(rows, sink, "jsd", "drop") for rows, sink in zip(texts, sinks, strict=True)]
    np.testing.assert_allclose(pooled, np.average(alone, axis=0, weights=[5, 2, 8]), rtol=1e-13)
    np.testing.assert_allclose(pooled, head_distances(texts, sinks, "jsd", "drop"), rtol=0)
    for chosen in ([0, 2], np.array([True, False, True]), [2, 0]):
        np.testing.assert_allclose(
            mean_distances(found, "jsd", "drop", chosen),
            np.average([alone[0], alone[2]], axis=0, weights=[5, 8]),
            rtol=1e-13,
        )
    twice = mean_distances(found, "jsd", "drop", [0, 0, 1])
    np.testing.assert_allclose(twice, np.average(alone[:2], axis=0, weights=[10, 2]), rtol=1e-13)
    for nothing in ([], [False] * 3):
        empty = mean_distances(found, "jsd", "drop", nothing)
        assert np.isnan(empty[~np.eye(6, dtype=bool)]).all()
        assert (empty.diagonal() == 0).all()


def test_a_head_without_rows_has_no_distances(rng):
    rows = random_rows(rng, 3, 4, 5)
    rows[1] = 0
    found = head_distances(rows, np.arange(5) == 0)
    np.testing.assert_array_equal(np.isnan(found), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert verdict_flips(found, found).triples == 0
    assert verdict_flips(found, found).undefined == 3


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3), (2, 3, 0), (2, 0, 0), (0, 2, 3, 3), (2, 2, 0, 0)])
def test_texts_without_elements(shape):
    heads = math.prod(shape[:-2])
    for scores in (None, np.zeros(shape)):
        found = distance_sums(np.zeros(shape), np.zeros(shape[-1], bool), scores=scores)
        for pair in PAIRS:
            assert found.sums[pair].shape == (1, heads, heads)
            assert not found.sums[pair].any()
            assert not found.counts[pair].any()
    assert clark2019_distances(np.zeros(shape)).shape == (heads, heads)


def test_clark2019_smooths_and_adds_up(rng):
    texts = texts_of(rng, 5, 3)
    wanted = np.zeros((6, 6))
    for rows in texts:
        smooth = (0.999 * rows + 0.001 / rows.shape[-1]).reshape(6, *rows.shape[-2:])
        for a, b in itertools.product(range(6), repeat=2):
            mean = (smooth[a] + smooth[b]) / 2
            wanted[a, b] += sum((side * np.log(side / mean)).sum() / 2 for side in (smooth[a], smooth[b]))
    found = clark2019_distances(texts)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    assert (found.diagonal() == 0).all()
    np.testing.assert_array_equal(found, found.T)
    chosen = clark2019_distances(texts, queries=[[1, 0, 0, 1, 0], [0, 1, 0]])
    assert (chosen <= found).all()


def test_clark2019_smooths_over_visible_keys_only():
    rows = np.array([[[1.0, 0, 9], [0, 0, 0]], [[0, 1.0, 9], [0.5, 0.5, 9]]])
    seen = np.array([True, True, False])
    x, y = np.array([[0.9995, 0.0005]]), np.array([[0.0005, 0.9995]])
    wanted = row_distances(x, y, [0, 0]).item()
    found = clark2019_distances(rows, seen)
    assert found[0, 1] == pytest.approx(wanted, rel=1e-14)  # the second row is undefined in one head
    by_range = clark2019_distances(rows, KeyRange([0, 0], [2, 2]))
    np.testing.assert_array_equal(by_range, found)
    rows[0] = 0
    np.testing.assert_array_equal(clark2019_distances(rows, seen), [[0, np.nan], [np.nan, 0]])


@pytest.mark.parametrize("share", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("n_sinks", [1, 2])
def test_one_sink_share_everywhere_flips_nothing(share, n_sinks):
    # Keep is then (1 - share) times drop for these metrics, row by row.
    for seed in range(4):
        rng = np.random.default_rng(seed)
        content = random_rows(rng, 3, 5, 7, 12)
        on_sink = share * random_rows(rng, 3, 5, 7, n_sinks)  # how the sinks divide it is nobody's business
        rows = np.concatenate([on_sink, (1 - share) * content], axis=-1)
        sinks = np.arange(12 + n_sinks) < n_sinks
        found = distance_sums(rows, sinks)
        for metric, factor in {"jsd": 1, "l1": 1, "entropy": 1, "hellinger": 0.5, "root_jsd": 0.5}.items():
            keep, drop = (mean_distances(found, metric, convention) for convention in CONVENTIONS)
            np.testing.assert_allclose(keep, (1 - share) ** factor * drop, rtol=1e-12, atol=1e-14)
            assert verdict_flips(keep, drop).flipped == 0, metric
            assert verdict_flips(keep, drop).triples == 15 * 14 * 13 // 2
        # The sink term of these rows is not zero, and in the cosine the sink's square stands by itself.
        assert (mean_distances(found, "aitchison_sink")[~np.eye(15, dtype=bool)] > 0).all()
        flips = [
            verdict_flips(*(mean_distances(found, metric, convention) for convention in CONVENTIONS)).flipped
            for metric in ("aitchison", "cosine")
        ]
        assert flips[0] > 0
        assert flips[1] > 0 or share < 0.5


def test_rows_that_differ_in_their_sink_alone_have_one_content(rng):
    content = random_rows(rng, 1, 6, 9)
    share = rng.uniform(0.1, 0.9, (8, 6, 1))
    rows = np.concatenate([share, (1 - share) * content], axis=-1)
    found = distance_sums(rows, np.arange(10) == 0)
    for metric in METRICS:
        if metric != "aitchison_sink":
            assert np.abs(mean_distances(found, metric, "drop")).max() <= 1e-7
        assert mean_distances(found, metric, "keep")[0, 1] > 1e-4
    np.testing.assert_allclose(
        mean_distances(found, "aitchison"), mean_distances(found, "aitchison_sink"), rtol=1e-12
    )
