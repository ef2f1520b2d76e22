from __future__ import annotations

import mpmath
import numpy as np
import pytest
from oracle_models import random_rows
from row_strategies import FORMS, in_form
from wording import refused

from oracle import (
    AitchisonSplit,
    KeyRange,
    aitchison_split,
    aitchison_split_from_scores,
    clr,
)
from oracle.ops import softmax

A, B, C = [[0.9, 0.08, 0.02]], [[0.9, 0.02, 0.08]], [[0.5, 0.4, 0.1]]
SINK = np.array([True, False, False])


def close(found: AitchisonSplit, wanted: AitchisonSplit, rtol: float = 1e-12) -> None:
    """Equal within rounding; a part that cancels is measured against the whole."""
    whole = np.asarray(wanted.total)
    for name, one, other in zip(AitchisonSplit._fields, found, wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other), name)
        assert (np.abs(one - other)[~np.isnan(one)] <= rtol * whole[~np.isnan(one)]).all(), name


def test_the_worked_example():
    ab, ac = aitchison_split(A, B, SINK), aitchison_split(A, C, SINK)
    assert [f"{part.item():.6f}" for part in ab] == ["3.843624", "0.000000", "3.843624"]
    assert [f"{part.item():.6f}" for part in ac] == ["3.218531", "3.218531", "0.000000"]


@pytest.mark.parametrize("keys", [3, 8, 33, 128])
@pytest.mark.parametrize("n_sinks", [0, 1, 2])
def test_both_distances_equal_scikit_bio(keys, n_sinks):
    """The total is the distance of its clr over the parts, the content that of the closed content."""
    skbio = pytest.importorskip("skbio.stats.composition", reason='needs pip install "sinkscope[test]"')
    x, y = random_rows(np.random.default_rng(keys), 2, 7, keys)
    sinks = np.arange(keys) < n_sinks
    content = [row[:, ~sinks] for row in (x, y)]
    on_sink = [row[:, sinks].sum(axis=-1, keepdims=True)[:, : min(n_sinks, 1)] for row in (x, y)]
    whole = [np.concatenate(parts, axis=-1) for parts in zip(on_sink, content, strict=True)]
    logs = [[skbio.clr(skbio.closure(row)) for row in rows] for rows in (whole, content)]
    total, inner = (((first - second) ** 2).sum(axis=-1) for first, second in logs)
    split, size = aitchison_split(x, y, sinks), sum((part**2).sum(axis=-1) for part in logs[0])
    for found, wanted in zip(split, (total, total - inner, inner), strict=True):
        assert (np.abs(found - wanted) <= 2e-13 * size).all()
    assert (split.total > 1e-3 * size).all()


@pytest.mark.parametrize("keys", [8, 9, 16, 33, 128])
@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0, 40.0])
def test_the_split_is_orthogonal(keys, spread):
    rng = np.random.default_rng(keys)
    scores = spread * rng.standard_normal((2, 5, 3, keys))
    x, y = np.exp(scores - scores.max(axis=-1, keepdims=True))
    x, y = x / x.sum(axis=-1, keepdims=True), y / y.sum(axis=-1, keepdims=True)
    sinks = np.arange(keys) == 2
    split = aitchison_split(x, y, sinks)
    norms = (clr(x) ** 2).sum(axis=-1) + (clr(y) ** 2).sum(axis=-1)  # one sink: the parts are the keys
    assert (np.abs(split.total - split.sink - split.content) <= 1e-12 * norms).all()
    assert (np.abs(split.total - ((clr(x) - clr(y)) ** 2).sum(axis=-1)) <= 1e-12 * norms).all()
    content = ((clr(x[..., ~sinks]) - clr(y[..., ~sinks])) ** 2).sum(axis=-1)
    assert (np.abs(split.content - content) <= 1e-12 * norms).all()
    close(aitchison_split_from_scores(*scores, sinks), split)


@pytest.mark.parametrize("n_sinks", [0, 1, 3])
def test_rows_and_scores_say_the_same(n_sinks):
    rng = np.random.default_rng(n_sinks)
    scores = 3 * rng.standard_normal((2, 2, 3, 11, 11)) + 40 * rng.standard_normal((2, 2, 3, 11, 1))
    sinks = np.isin(np.arange(11), [0, 4, 7][:n_sinks])
    seen = np.tri(11, dtype=bool)
    rows = softmax(np.where(seen, scores, -np.inf))
    found = aitchison_split_from_scores(*scores, sinks, seen)
    close(found, aitchison_split(*rows, sinks, seen))
    close(found, aitchison_split_from_scores(*scores, sinks, KeyRange.causal(11)), rtol=0)
    if n_sinks:
        assert np.isnan(found.total[..., 0]).all()  # the first row sees its sink and nothing else
    else:
        assert (found.sink == 0).all()
        assert (found.total == found.content).all()
        assert (found.total[..., 0] == 0).all()


def test_scores_go_where_rows_underflow():
    x, y = np.array([[0.0, -2000, -2001, -1999]]), np.array([[0.0, -2000, -2003, -1999]])
    sinks = np.array([True, False, False, False])
    assert np.isnan(aitchison_split(softmax(x), softmax(y), sinks).total).all()
    split = aitchison_split_from_scores(x, y, sinks)
    assert split.content.item() == pytest.approx(2**2 * (1 - 1 / 3))
    assert split.total.item() == pytest.approx(2**2 * (1 - 1 / 4))
    far = aitchison_split_from_scores(x, x - np.array([[3000.0, 0, 0, 0]]), sinks)
    assert far.sink.item() == pytest.approx(3 / 4 * 3000**2)


@pytest.mark.parametrize("step", [2.0**-8, 2.0**-30, 2.0**-50])
def test_several_sinks_that_hardly_move_keep_their_digits(step):
    x = np.array([[0.25, 0.125, -0.25, 0.5, 1.0]])
    y = x + step * np.array([[1, -1, 0, 0, 0]])
    split = aitchison_split_from_scores(x, y, [1, 1, 0, 0, 0])
    with mpmath.workdps(60):
        masses = [mpmath.fsum(mpmath.exp(mpmath.mpf(score)) for score in row[0, :2]) for row in (x, y)]
        wanted = float(mpmath.log(masses[0] / masses[1]) ** 2 * 3 / 4)
    assert split.sink.item() == pytest.approx(wanted, rel=1e-14, abs=0)
    assert split.content.item() == 0


def test_a_constant_on_a_row_of_scores_changes_nothing():
    scores = np.random.default_rng(3).standard_normal((2, 4, 9))
    sinks = np.arange(9) < 2
    wanted = aitchison_split_from_scores(*scores, sinks)
    close(aitchison_split_from_scores(scores[0] + 5, scores[1] - 700, sinks), wanted)


ZEROS = [[0.5, 0.4, 0.1, 0]], [[0.5, 0.39, 0.1, 0.01]]
FIRST = np.array([True, False, False, False])


def test_zeros_are_refused_with_their_count_and_place():
    x = random_rows(np.random.default_rng(4), 2, 3, 4, 5)
    y = x.copy()
    y[1, 2, 0, 3:] = 0
    y[1, 2, 3, 4] = 0
    y /= y.sum(axis=-1, keepdims=True)
    with refused("y", "zero at layer 1, head 2, query 0, key 3 (3 in all)", "common-support", "visible="):
        aitchison_split(x, y, np.arange(5) == 0)
    with refused("x", "zero at layer 1, head 2, query 0, key 3 (3 in all)"):
        aitchison_split(y, x, np.arange(5) == 0)
    with refused("x", "zero at query 0, the sink (1 in all)"):
        aitchison_split([[0, 0.5, 0.5]], A, SINK)
    both = aitchison_split([[0, 0.25, 0.25, 0.5]], [[0.25, 0, 0.25, 0.5]], [True, True, False, False])
    assert np.isfinite(both.total).all()  # several sinks are one part: none of it is zero


def test_common_support_leaves_parts_out_of_the_pair():
    found = aitchison_split(*ZEROS, FIRST, zeros="common-support")
    kept = [np.array(row)[:, :3] / np.array(row)[:, :3].sum() for row in ZEROS]
    close(found, aitchison_split(*kept, SINK))
    lone = aitchison_split([[0, 0.25, 0.75]], [[0.5, 0.25, 0.25]], SINK, zeros="common-support")
    assert lone.sink.item() == 0
    assert lone.total.item() == lone.content.item() == pytest.approx(np.log(3) ** 2 / 2)
    nothing = aitchison_split([[0.5, 0.5, 0]], [[0.5, 0, 0.5]], SINK, zeros="common-support")
    assert np.isnan(nothing).all()
    plain = random_rows(np.random.default_rng(5), 2, 4, 6)
    close(
        aitchison_split(*plain, np.arange(6) < 1, zeros="common-support"),
        aitchison_split(*plain, np.arange(6) < 1),
        rtol=0,
    )


@pytest.mark.parametrize(("delta", "distance"), [(1e-3, "2.0006"), (1e-6, "7.9837"), (1e-9, "13.9660")])
def test_the_answer_under_replacement_is_the_deltas(delta, distance):
    split = aitchison_split(*ZEROS, FIRST, zeros="replace", delta=delta)
    assert f"{np.sqrt(split.total.item()):.4f}" == distance
    assert split.total.item() == pytest.approx(split.sink.item() + split.content.item(), rel=1e-14)


def test_rows_without_content_mass_are_undefined_whatever_becomes_of_zeros():
    x, y = [[1.0, 0, 0], [0.0, 0, 0]], [[0.5, 0.25, 0.25]] * 2
    for zeros, delta in (("refuse", None), ("common-support", None), ("replace", 0.01)):
        for pair in ((x, y), (y, x), (x, x)):
            assert np.isnan(aitchison_split(*pair, SINK, zeros=zeros, delta=delta)).all()


def test_a_key_that_is_not_visible_is_no_zero():
    x, y = random_rows(np.random.default_rng(6), 2, 3, 4)
    hidden = np.array([True, True, False, True])
    kept = [np.where(hidden, row, 0) / row[:, hidden].sum(axis=-1, keepdims=True) for row in (x, y)]
    found = aitchison_split(*kept, FIRST, hidden)
    close(found, aitchison_split(*(row[:, hidden] for row in kept), FIRST[hidden]))
    scores = [np.where(hidden, np.log(row), np.nan) for row in (x, y)]
    close(aitchison_split_from_scores(*scores, FIRST, hidden), found)
    unseen = np.array([False, True, True, True])
    no_sink = aitchison_split(*(row[:, 1:] / row[:, 1:].sum(-1, keepdims=True) for row in (x, y)), [0, 0, 0])
    rows = [row / row[:, 1:].sum(axis=-1, keepdims=True) for row in (x, y)]
    close(aitchison_split(*rows, FIRST, unseen), no_sink)


@pytest.mark.parametrize("small", [5e-324, 1e-310, 1e-300, 1e-17])
def test_the_smallest_weights_have_their_logarithm(small):
    x, y = [[0.5, 0.25, 0.25]], [[small, 0.5, 0.5]]
    gap = np.log(2) - (np.log(small) - np.log(0.5))
    for pair in ((x, y), (y, x)):
        split = aitchison_split(*pair, SINK)
        assert split.sink.item() == pytest.approx(2 / 3 * gap**2, rel=1e-14)
        assert split.content.item() == 0


def test_x_and_y_broadcast():
    x, y = random_rows(np.random.default_rng(7), 4, 1, 3, 5), random_rows(np.random.default_rng(8), 2, 3, 5)
    found = aitchison_split(x, y, np.arange(5) == 0)
    assert found.total.shape == (4, 2, 3)
    single = aitchison_split(x[2, 0], y[1], np.arange(5) == 0)
    np.testing.assert_array_equal(found.content[2, 1], single.content)
    scores = aitchison_split_from_scores(np.log(x), np.log(y), np.arange(5) == 0)
    close(scores, found)
    for call in (aitchison_split, aitchison_split_from_scores):
        with refused("y", "(4, 1, 3, 5)", "shape (3, 2, 5)"):
            call(x, y.swapaxes(0, 1), np.arange(5) == 0)
        with refused("x", "(..., query, key)", "shape (5,)"):
            call(x[0, 0, 0], y, np.arange(5) == 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
@pytest.mark.parametrize("form", FORMS)
def test_any_dtype_and_form(dtype, form):
    raw = [random_rows(np.random.default_rng(seed), 3, 4, 6) + 0.01 for seed in (9, 10)]
    rows = [in_form((row / row.sum(axis=-1, keepdims=True)).astype(dtype), form) for row in raw]
    before = [row.copy() for row in rows]
    wide = np.longdouble if dtype == "longdouble" else np.float64
    wanted = aitchison_split(*(row.astype(wide) for row in before), np.arange(6) == 1)
    for found in (
        aitchison_split(*rows, np.arange(6) == 1),
        aitchison_split(rows[0].tolist(), rows[1], np.arange(6) == 1) if wide == np.float64 else wanted,
    ):
        assert {part.dtype for part in found} == {np.dtype(wide)}
        close(found, wanted, rtol=1e-14)  # NumPy adds in memory order
    with np.errstate(divide="ignore"):
        logs = [np.log(row.astype(wide)) for row in rows]
    assert aitchison_split_from_scores(*logs, np.arange(6) == 1).total.dtype == wide
    for row, original in zip(rows, before, strict=True):
        np.testing.assert_array_equal(row, original)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_arrays_without_elements(shape):
    empty = np.zeros(shape)
    for call in (aitchison_split, aitchison_split_from_scores):
        split = call(empty, empty, np.zeros(shape[-1], bool))
        for part in split:
            assert part.shape == shape[:-1]
            assert np.isnan(part).all()


def test_wrong_input_is_refused():
    rows = np.full((2, 3, 4), 0.25)
    scores = rows.copy()
    scores[1, 2, 3] = -np.inf
    with refused("y", "-inf at head 1, query 2, key 3 (1 in all)", "visible="):
        aitchison_split_from_scores(rows, scores, FIRST)
    with refused("x", "finite scores", "-inf at head 1, query 2, key 3"):
        aitchison_split_from_scores(scores, rows, FIRST)
    with refused("x", "a sum of 2 at head 0, query 0"):
        aitchison_split(2 * rows, rows, FIRST)
    with refused("y", "-0.25 at head 0, query 0, key 0"):
        aitchison_split(rows, -rows, FIRST)
    with refused("sink_mask", "(2, 3, 4)", "shape (3,)"):
        aitchison_split(rows, rows, SINK)
    with refused("zeros", "refuse, common-support, replace", "'epsilon'"):
        aitchison_split(rows, rows, FIRST, zeros="epsilon")
    with refused("delta", "None"):
        aitchison_split(rows, rows, FIRST, zeros="replace")
    with refused("delta", 'none with zeros="refuse"', "0.1"):
        aitchison_split(rows, rows, FIRST, delta=0.1)
