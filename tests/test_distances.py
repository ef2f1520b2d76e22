from __future__ import annotations

import itertools
import math

import generate_composition_goldens as goldens
import ml_dtypes
import mpmath
import numpy as np
import pytest
from oracle_models import random_rows
from row_strategies import FORMS, in_form
from wording import refused

from oracle import (
    CONVENTIONS,
    METRICS,
    DistanceSums,
    InputTypeError,
    KeyRange,
    aitchison_split_from_scores,
    clark2019_distances,
    distance_sums,
    entropy_split,
    head_distances,
    mean_distances,
    row_distances,
    verdict_flips,
)
from oracle.ops import softmax

A, B, C = [[0.9, 0.08, 0.02]], [[0.9, 0.02, 0.08]], [[0.5, 0.4, 0.1]]
SINK = np.array([True, False, False])
SINK_OF_7 = np.arange(7) == 2
PAIRS = [pair for pair in itertools.product(METRICS, CONVENTIONS) if pair != ("aitchison_sink", "drop")]
PLAIN = [pair for pair in PAIRS if not pair[0].startswith("aitchison")]


@pytest.fixture
def rng():
    return np.random.default_rng(31)


# --- one row against another ------------------------------------------------------------------------------


def test_the_verdict_of_the_worked_example_flips():
    wanted = {"keep": [0.01927, 0.10175], "drop": [0.19274, 0.0]}
    for convention, values in wanted.items():
        found = row_distances([*A, *A], [*B, *C], SINK, "jsd", convention)
        np.testing.assert_allclose(found, values, atol=5e-6)
    heads = np.array([A, B, C])
    for metric, flipped in {"jsd": 1, "root_jsd": 1, "hellinger": 1, "l1": 1, "cosine": 1}.items():
        keep, drop = (head_distances(heads, SINK, metric, convention) for convention in CONVENTIONS)
        found = verdict_flips(keep, drop)
        assert found.per_anchor[0] == flipped, metric


@pytest.mark.parametrize(
    ("metric", "far", "unit"),
    [
        ("cosine", 1, 0.2),
        ("jsd", np.log(2), None),
        ("root_jsd", np.sqrt(np.log(2)), None),
        ("hellinger", 1, np.sqrt(1 - np.sqrt(0.5))),
        ("l1", 2, 1),
    ],
)
def test_the_ends_of_the_range(metric, far, unit):
    x, y = [[1.0, 0, 0, 0]], [[0, 0.25, 0.5, 0.25]]
    none = np.zeros(4, bool)
    assert row_distances(x, y, none, metric).item() == pytest.approx(far, rel=1e-15)
    assert row_distances(x, y, none, metric).item() <= far
    assert row_distances(x, x, none, metric).item() == 0
    if metric in ("hellinger", "l1"):
        assert row_distances(x, [[0.5, 0.5, 0, 0]], none, metric).item() == pytest.approx(unit, rel=1e-15)


@pytest.mark.parametrize("metric", ["cosine", "jsd", "root_jsd", "hellinger", "l1"])
def test_rounding_does_not_leave_the_range(rng, metric):
    far = {"jsd": np.log(2), "root_jsd": np.sqrt(np.log(2)), "l1": 2}.get(metric, 1)
    x, y = random_rows(rng, 2, 500, 7)
    x, y = np.concatenate([x, 0 * x], axis=-1), np.concatenate([0 * y, y], axis=-1)
    found = row_distances(x, y, np.zeros(14, bool), metric)
    assert (found <= far).all()
    np.testing.assert_allclose(found, far, rtol=1e-15)


@pytest.mark.parametrize(("metric", "convention"), PAIRS)
def test_distances_are_symmetric_not_negative_and_blind_to_the_order_of_keys(rng, metric, convention):
    x, y = random_rows(rng, 2, 3, 5, 11)
    sinks = np.arange(11) % 4 == 1
    found = row_distances(x, y, sinks, metric, convention)
    assert (found >= 0).all()
    np.testing.assert_array_equal(found, row_distances(y, x, sinks, metric, convention))
    np.testing.assert_array_equal(row_distances(x, x, sinks, metric, convention), 0)
    order = rng.permutation(11)
    again = row_distances(x[..., order], y[..., order], sinks[order], metric, convention)
    np.testing.assert_allclose(again, found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("metric", "convention"), PAIRS)
@pytest.mark.parametrize("seen", ["padding", "causal", "window", "range"])
def test_keys_that_are_not_visible_are_not_there(rng, metric, convention, seen):
    visible = {
        "padding": np.array([1, 1, 0, 1, 0, 1, 1], bool),
        "causal": np.tri(7, dtype=bool),
        "window": np.tri(7, dtype=bool) & ~np.tri(7, k=-3, dtype=bool),
        "range": KeyRange.causal(7, window=4),
    }[seen]
    mask = np.tri(7, dtype=bool) & ~np.tri(7, k=-4, dtype=bool) if seen == "range" else visible
    mask = np.broadcast_to(mask, (7, 7))
    sinks = np.array([1, 0, 0, 1, 0, 0, 0], bool)
    x, y = (np.where(mask, rows, 0) for rows in random_rows(rng, 2, 2, 7, 7))
    x, y = x / x.sum(axis=-1, keepdims=True), y / y.sum(axis=-1, keepdims=True)
    nonsense = np.where(mask, x, rng.choice([np.nan, -3, np.inf, 0.5], x.shape))
    found = row_distances(nonsense, y, sinks, metric, convention, visible)
    for head, query in np.ndindex(found.shape):
        kept = mask[query]
        rows = (side[head, query : query + 1][:, kept] for side in (x, y))
        alone = row_distances(*rows, sinks[kept], metric, convention)
        np.testing.assert_allclose(found[head, query], alone.item(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric != "aitchison_sink"])
def test_without_a_visible_sink_both_conventions_are_one(rng, metric):
    x, y = random_rows(rng, 2, 5, 9)
    keep, drop = (row_distances(x, y, np.zeros(9, bool), metric, convention) for convention in CONVENTIONS)
    np.testing.assert_allclose(keep, drop, rtol=1e-13, atol=1e-15)
    assert (row_distances(x, y, np.zeros(9, bool), "aitchison_sink") == 0).all()


@pytest.mark.parametrize(("metric", "convention"), PAIRS)
def test_undefined_rows_are_nan(metric, convention):
    fine, sink_only, empty = [0.5, 0.25, 0.25], [1.0, 0, 0], [0.0, 0, 0]
    found = row_distances([fine, sink_only, empty, fine], [fine] * 4, SINK, metric, convention)
    content_needed = convention == "drop" or metric.startswith("aitchison")
    np.testing.assert_array_equal(np.isnan(found), [False, content_needed, True, False])


@pytest.mark.parametrize(("metric", "convention"), PLAIN)
def test_zeros_are_numbers_like_any_other(metric, convention):
    x, y = [[0.5, 0.5, 0, 0]], [[0.5, 0.25, 0.25, 0]]
    sinks = np.array([1, 0, 0, 0], bool)
    found = row_distances(x, y, sinks, metric, convention)
    assert np.isfinite(found).all()
    less = row_distances(*(np.array(row)[:, :3] for row in (x, y)), sinks[:3], metric, convention)
    np.testing.assert_allclose(found, less, rtol=1e-15)


def test_entropy_and_aitchison_are_what_their_own_functions_give(rng):
    x, y = random_rows(rng, 2, 3, 4, 9)
    sinks = np.arange(9) < 2
    for convention, part in zip(CONVENTIONS, ("total", "content"), strict=True):
        wanted = [getattr(entropy_split(rows, sinks), part) for rows in (x, y)]
        np.testing.assert_array_equal(
            row_distances(x, y, sinks, "entropy", convention), np.abs(wanted[0] - wanted[1])
        )
    keep, drop, sink = (
        row_distances(x, y, sinks, *pair)
        for pair in (("aitchison", "keep"), ("aitchison", "drop"), ("aitchison_sink", "keep"))
    )
    np.testing.assert_allclose(keep, drop + sink, rtol=1e-12)


@pytest.mark.parametrize(("metric", "convention"), PAIRS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ml_dtypes.bfloat16])
def test_any_dtype_is_widened_exactly_and_left_alone(rng, metric, convention, dtype):
    rows = [(row + 0.01) / 1.07 for row in random_rows(rng, 2, 3, 7)]
    given = [row.astype(dtype) for row in rows]
    wide = np.longdouble if dtype == "longdouble" else np.float64
    wanted = row_distances(*(row.astype(wide) for row in given), SINK_OF_7, metric, convention)
    assert wanted.dtype == wide
    assert wanted.shape == (3,)
    for form in FORMS:
        views = [in_form(row, form) for row in given]
        found = row_distances(*views, SINK_OF_7, metric, convention)
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)  # NumPy adds in memory order
        for view, row in zip(views, given, strict=True):
            np.testing.assert_array_equal(view, row)


@pytest.mark.parametrize(("metric", "convention"), PAIRS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 2, 3), (0, 0)])
def test_rows_without_elements(metric, convention, shape):
    empty = np.zeros(shape)
    found = row_distances(empty, empty, np.zeros(shape[-1], bool), metric, convention)
    assert found.shape == shape[:-1]
    assert np.isnan(found).all()


# --- all heads ----------------------------------------------------------------------------------------------


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


# --- what the sink does to verdicts -----------------------------------------------------------------------


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


# --- wrong input ------------------------------------------------------------------------------------------


def test_wrong_rows_are_refused_with_their_place(rng):
    rows = random_rows(rng, 2, 3, 4, 4)
    wrong = rows.copy()
    wrong[1, 2, 3, 1] = np.nan
    sinks = np.arange(4) == 0
    with refused("attention", "nan at layer 1, head 2, query 3, key 1 (1 in all)"):
        head_distances(wrong, sinks)
    with refused("rows[1]", "nan at layer 1, head 2, query 3, key 1 (1 in all)"):
        head_distances([rows, wrong], sinks)
    with refused("rows[0]", "a sum of 2 at layer", "eval mode"):
        clark2019_distances([2 * rows, rows])
    with refused("x", "a sum of 2", "eval mode"):
        row_distances(2 * rows, rows, sinks)
    with refused("scores[1]", "nan at layer 1, head 2, query 3, key 1"):
        distance_sums([rows, rows], sinks, "aitchison", scores=[rows, wrong])
    with refused("scores", "nan at layer 1, head 2, query 3, key 1"):
        distance_sums(rows, sinks, "aitchison", scores=wrong)
    with refused("attention", "dtype", error=InputTypeError):
        head_distances("rows", sinks)


def test_wrong_calls_are_refused(rng):
    rows = random_rows(rng, 2, 3, 4, 4)
    sinks = np.arange(4) == 0
    for call in (row_distances, head_distances):
        first = (rows, rows, sinks) if call is row_distances else (rows, sinks)
        with refused("metric", "cosine, jsd", "'euclid'"):
            call(*first, "euclid")
        with refused("convention", "keep, drop", "'both'"):
            call(*first, "jsd", "both")
        with refused("convention", "keep with the metric aitchison_sink"):
            call(*first, "aitchison_sink", "drop")
        with refused("zeros", "'none'"):
            call(*first, "aitchison", zeros="none")
        with refused("delta", "None"):
            call(*first, "aitchison", zeros="replace")
    with refused("attention", "(layer, head, query, key)", "shape (1, 2, 3, 4, 4)", "list"):
        head_distances(rows[None], sinks)
    with refused("attention", "shape (4, 4)"):
        head_distances(rows[0, 0], sinks)
    with refused("rows", "at least one text"):
        head_distances([], sinks)
    with refused("rows[1]", "the heads of the first text, (2, 3)", "(2, 2)"):
        head_distances([rows, rows[:, :2]], sinks)
    with refused("sink_mask", "(4, 4)", "shape (3,)"):
        head_distances(rows, SINK)
    with refused("sink_mask", "one for each of 2 texts", "a list of 3"):
        head_distances([rows, rows], [sinks] * 3)
    with refused("visible", "one for each of 2 texts", "a list of 1"):
        head_distances([rows, rows], sinks, visible=[np.ones((4, 4), bool)])
    with refused("visible", "(4, 4)", "shape (2, 3, 4, 4)"):
        head_distances(rows, sinks, visible=np.ones((2, 3, 4, 4), bool))
    with refused("visible.start", "4 queries"):
        head_distances(rows, sinks, visible=KeyRange.causal(3))
    with refused("scores", "the shape of attention, (2, 3, 4, 4)", "(3, 4, 4)"):
        distance_sums(rows, sinks, scores=rows[0])
    for queries in ([0, 1, 3, 2], [True] * 3, 1.5):
        with refused("queries", "4 queries", "not positions"):
            head_distances(rows, sinks, queries=queries)


def test_wrong_choices_of_means_are_refused(rng):
    found = distance_sums([random_rows(rng, 2, 3, 3)] * 3, SINK, "jsd")
    with refused("metric", "jsd/keep, jsd/drop", "cosine/keep"):
        mean_distances(found, "cosine")
    for texts in ([0, 3], [-1], [True, False], [[0]], [0.5], 1):
        with refused("texts", "indices from 0 to 2", "3 texts"):
            mean_distances(found, "jsd", texts=texts)


# --- against scipy ----------------------------------------------------------------------------------------


def exact_jsd(x: np.ndarray, y: np.ndarray) -> mpmath.mpf:
    rows = (row.astype(np.float64).tolist() for row in (x, y))
    return goldens.measures(*rows, [0] * x.size, [1] * x.size, None)["jsd/keep"]


def scipy_jsd(x: np.ndarray, y: np.ndarray) -> float:
    distance = pytest.importorskip("scipy.spatial.distance", reason='needs pip install "sinkscope[test]"')
    with np.errstate(all="ignore"):
        return float(distance.jensenshannon(x, y).astype(np.float64) ** 2)


@pytest.mark.parametrize("keys", [2, 5, 64, 511])
def test_jsd_equals_scipys(rng, keys):
    for x, y in zip(*random_rows(rng, 2, 20, keys), strict=True):
        found = row_distances(x[None], y[None], np.zeros(keys, bool)).item()
        assert found == pytest.approx(scipy_jsd(x, y), rel=1e-13)


@pytest.mark.parametrize("small", [0.3, 0.07, 1e-3, 1e-5, 1e-9, 1e-14])
def test_a_part_that_one_row_hardly_has_costs_no_digits(small):
    x, y = np.array([1 - small, small]), np.array([small, 1 - small]) / (1 - small + small)
    found = row_distances(x[None], y[None], [0, 0]).item()
    assert found == pytest.approx(float(exact_jsd(x, y)), rel=4e-16, abs=0)


# scipy adds x ln(x/m) and y ln(y/m), which cancel where x is close to y; it works in the dtype it is given
# (float16 in float32); and it halves m, which underflows. What it answers, with the digits that are wrong.
SCIPY_IS_WRONG = [
    ("float64", [0.5, 0.5], [2.0**-20, -(2.0**-20)], 1e-13),
    ("float64", [0.375, 0.375, 0.25], [2.0**-51, -(2.0**-51), 0], 0.2),
    ("float64", [1 - 2.0**-53, 2.0**-53], [-(2.0**-53), 2.0**-53], 5),
    ("float64", [1, 5e-324], [0, -5e-324], np.inf),
    ("float32", [0.5, 0.25, 0.25], [0, 2.0**-12, -(2.0**-12)], 1e-4),
    ("float16", [0.25, 0.75], [2.0**-10, -(2.0**-10)], 2e-5),
    ("float16", [0.3125, 0.6875], [2.0**-11, -(2.0**-11)], np.nan),
]


@pytest.mark.parametrize(("dtype", "row", "step", "error"), SCIPY_IS_WRONG)
def test_where_scipys_jsd_is_wrong_this_one_is_right(dtype, row, step, error):
    x, y = np.array(row, dtype), (np.array(row) + np.array(step)).astype(dtype)
    wanted = exact_jsd(x, y)
    found = row_distances(x[None], y[None], np.zeros(x.size, bool)).item()
    assert found == pytest.approx(float(wanted), rel=4e-16, abs=0)
    theirs = scipy_jsd(x, y)
    if np.isfinite(error):
        assert abs(theirs - wanted) > error * wanted
    else:
        assert repr(theirs) == repr(error)
