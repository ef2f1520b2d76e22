"""Distances of one row from another."""

from __future__ import annotations

import itertools

import generate_composition_goldens as goldens
import ml_dtypes
import mpmath
import numpy as np
import pytest
from oracle_models import random_rows
from row_strategies import FORMS, in_form

from oracle import (
    CONVENTIONS,
    METRICS,
    KeyRange,
    entropy_split,
    head_distances,
    row_distances,
    verdict_flips,
)

A, B, C = [[0.9, 0.08, 0.02]], [[0.9, 0.02, 0.08]], [[0.5, 0.4, 0.1]]
SINK = np.array([True, False, False])
SINK_OF_7 = np.arange(7) == 2
PAIRS = [pair for pair in itertools.product(METRICS, CONVENTIONS) if pair != ("aitchison_sink", "drop")]
PLAIN = [pair for pair in PAIRS if not pair[0].startswith("aitchison")]


@pytest.fixture
def rng():
    return np.random.default_rng(31)


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
