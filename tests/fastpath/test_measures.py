"""What the registry's cases do not try: threads, layouts, odd floats, the words of the errors."""

from __future__ import annotations

import tracemalloc

import numba
import numpy as np
import pytest

import fastpath
import oracle
from fastpath import _kernels, measures
from oracle import InputError, InputTypeError, KeyRange

T = 23


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    attention = rng.gamma(0.3, size=(2, 3, T, T)) + 1e-9
    return attention / attention.sum(axis=-1, keepdims=True)


@pytest.fixture
def norms():
    rng = np.random.default_rng(8)
    return {"value_norm": rng.gamma(2, size=(2, 3, T)), "transformed_norm": rng.gamma(2, size=(2, 1, T))}


SINKS = np.isin(np.arange(T), (0, 4, T - 1))


def equal_measures(fast, slow, tolerance):
    pairs = [(fast.shares[name], slow.shares[name]) for name in slow.shares]
    pairs += [(np.log(fast.ratios[name]), np.log(slow.ratios[name])) for name in slow.ratios]
    if slow.entropy is not None:
        pairs += list(zip(fast.entropy, slow.entropy, strict=True))
    assert list(fast.shares) == list(slow.shares)
    assert list(fast.ratios) == list(slow.ratios)
    for found, expected in pairs:
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.skipif(
    numba.config.DISABLE_JIT or numba.get_num_threads() < 2,
    reason="one thread only, of the machine or without the JIT",
)
@pytest.mark.parametrize("masks", ["none", "holes", "sinks per query"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_thread_count_gives_the_same_bits(dtype, masks):
    """Five matrices of four blocks of rows each, the last of them short."""
    rng = np.random.default_rng(10)
    n = 3 * _kernels._ROWS_AT_ONCE + 5
    rows = rng.gamma(0.3, size=(5, n, n)) + 1e-9
    seen = rng.random((n, n)) < 0.8 if masks == "holes" else np.ones((n, n), bool)
    seen[:, 0] = True
    rows = np.where(seen, rows, 0)
    rows /= rows.sum(axis=-1, keepdims=True)
    sinks = rng.random((n, n) if masks == "sinks per query" else n) < 0.1
    norms = {"value_norm": rng.gamma(2, size=(5, n)), "transformed_norm": rng.gamma(2, size=n)}
    before = numba.get_num_threads()
    found = []
    try:
        for threads in (1, before, 1):
            numba.set_num_threads(threads)
            measured = fastpath.row_measures(rows.astype(dtype), sinks, norms, seen, entropies=True)
            found.append([*measured.shares.values(), *measured.ratios.values(), *measured.entropy])
    finally:
        numba.set_num_threads(before)
    for one, *others in zip(*found, strict=True):
        assert all(one.tobytes() == other.tobytes() for other in others)


@pytest.mark.parametrize("third", [False, True])
def test_all_in_one_pass_equals_the_oracle(rows, norms, third):
    if third:  # a third norm takes a second reading
        norms = {**norms, "other": np.arange(1.0, T + 1)}
    fast = fastpath.row_measures(rows, SINKS, norms, entropies=True)
    equal_measures(fast, oracle.row_measures(rows, SINKS, norms, entropies=True), 1e-13)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, ::-1],
        lambda a: a.swapaxes(0, 1).copy().swapaxes(0, 1),
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: np.broadcast_to(a[:1], a.shape),
    ],
    ids=["reversed", "swapped", "fortran", "byteswapped", "broadcast"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_memory_layout_gives_the_same(rows, norms, view, dtype):
    laid_out = view(rows.astype(dtype))
    laid_out.flags.writeable = False
    plain = np.array(laid_out, dtype=dtype, order="C")
    fast = fastpath.row_measures(laid_out, SINKS, norms)
    again = fastpath.row_measures(plain, SINKS, norms)
    for name, share in again.shares.items():
        assert fast.shares[name].tobytes() == share.tobytes()


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e40, 1e300])
def test_norms_that_float32_cannot_hold_are_measured(rows, norms, scale):
    scaled = {name: norm * scale for name, norm in norms.items()}
    fast = fastpath.row_measures(rows.astype(np.float32), SINKS, scaled)
    equal_measures(fast, oracle.row_measures(rows, SINKS, norms), 1e-6)


def test_a_weight_of_minus_zero_is_zero(rows):
    rows[0, 0, 0, 3] = -0.0
    rows[0, 0, 0] /= rows[0, 0, 0].sum()
    np.testing.assert_allclose(
        fastpath.sink_share(rows, SINKS), oracle.sink_share(rows, SINKS), rtol=0, atol=1e-15
    )


@pytest.mark.parametrize(
    ("key", "value"), [(3, -1e-9), (4, -1e-9), (3, np.nan), (0, np.nan), (3, np.inf), (3, -np.inf), (3, 0.5)]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_wrong_weight_is_refused_in_the_words_of_the_oracle(rows, key, value, dtype):
    rows[1, 2, 5, key] = value
    if dtype == np.float16 and value == -1e-9:
        rows[1, 2, 5, key] = -1e-4
    rows = rows.astype(dtype)
    with pytest.raises(InputError) as slow:
        oracle.sink_share(rows, SINKS)
    with pytest.raises(InputError) as fast:
        fastpath.sink_share(rows, SINKS)
    assert str(fast.value) == str(slow.value)
    assert "layer 1, head 2, query 5" in str(fast.value)


def test_what_is_wrong_where_nobody_looks_does_not_matter(rows):
    causal = np.tri(T, dtype=bool)
    visible = rows * causal
    visible /= visible.sum(axis=-1, keepdims=True)
    garbage = np.where(causal, visible, np.nan)
    expected = oracle.sink_share(visible, SINKS)
    for seen in (causal, KeyRange.causal(T), np.broadcast_to(causal, rows.shape)):
        np.testing.assert_allclose(fastpath.sink_share(garbage, SINKS, visible=seen), expected, atol=1e-15)


def test_sinks_and_visibility_of_their_own_for_every_matrix(rows, norms):
    rng = np.random.default_rng(9)
    sinks = rng.random((2, 1, 1, T)) < 0.3
    visible = rng.random((1, 3, T, T)) < 0.7
    visible[..., 0] = True
    rows = np.where(visible, rows, 0)
    rows /= rows.sum(axis=-1, keepdims=True)
    fast = fastpath.row_measures(rows, sinks, norms, visible, entropies=True)
    slow = oracle.row_measures(rows, sinks, norms, visible, entropies=True)
    for name, share in slow.shares.items():
        np.testing.assert_allclose(fast.shares[name], share, atol=1e-13)
    for found, expected in zip(fast.entropy, slow.entropy, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf, 1e308])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_norm_that_no_query_sees_does_not_matter(rows, norms, wrong, dtype):
    seen = np.arange(T) < T - 3
    rows = np.where(seen, rows, 0)
    rows = (rows / rows.sum(axis=-1, keepdims=True)).astype(dtype)
    expected = oracle.row_measures(rows, SINKS, norms, seen)
    for norm in norms.values():
        norm[..., ~seen] = wrong
    for visible in (seen, np.broadcast_to(seen, rows.shape), KeyRange([0] * T, [T - 3] * T)):
        equal_measures(
            fastpath.row_measures(rows, SINKS, norms, visible),
            expected,
            1e-6 if dtype == np.float32 else 1e-13,
        )


def test_a_norm_that_one_query_sees_is_judged_in_the_words_of_the_oracle(rows, norms):
    seen = np.ones(rows.shape, bool)
    seen[..., 5] = False
    seen[1, 2, 3, 5] = True
    norms["value_norm"][..., 5] = np.nan
    rows = np.where(seen, rows, 0)
    rows /= rows.sum(axis=-1, keepdims=True)
    said = []
    for layer in (oracle, fastpath):
        with pytest.raises(InputError, match=r"value_norm: .* nan at layer 1, head 2, key 5") as caught:
            layer.row_measures(rows, SINKS, norms, seen)
        said.append(str(caught.value))
    assert said[0] == said[1]
    norms["value_norm"][1, 2, 5] = 1
    fastpath.row_measures(rows, SINKS, norms, seen)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("total", [0.99, 1.01, 0.99 - 1e-6, 1.01 + 1e-6, 0.985, 1.015])
def test_both_close_or_refuse_the_same_rows_at_the_edge(rows, total, dtype):
    for row in (rows * total).astype(dtype).reshape(-1, 1, T)[:40]:
        said = []
        for layer in (oracle, fastpath):
            try:
                layer.sink_share(row, SINKS)
                said.append("")
            except InputError as error:
                said.append(str(error))
        assert said[0] == said[1]
        if total in (0.99, 1.01):
            assert said[0] == ""
        if abs(total - 1) > 0.0125 or (dtype != np.float16 and total not in (0.99, 1.01)):
            assert "within 0.01" in said[0]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="a million weights, which is minutes without the JIT")
@pytest.mark.parametrize("key", [0, 700])
def test_many_wrong_rows_are_counted_in_little_memory(key):
    rows = np.full((4, 1000, 1000), np.float32(1e-3))
    rows[1, 3:, key] = -1
    rows[2] *= 2
    rows[3, :, key] = -1
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=rf"head 1, query 3, key {key} \(1997 in all\)") as fast:
            fastpath.sink_share(rows, np.arange(1000) == 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * rows.nbytes
    with pytest.raises(InputError) as slow:
        oracle.sink_share(rows, np.arange(1000) == 0)
    assert str(fast.value) == str(slow.value)


def test_longdouble_is_sent_to_the_oracle(rows):
    with pytest.raises(InputTypeError, match=r"use the oracle .--engine oracle"):
        fastpath.sink_share(rows.astype(np.longdouble), SINKS)


def test_integer_rows_are_rows():
    np.testing.assert_array_equal(
        fastpath.sink_share(np.eye(3, dtype=int), [True, False, False]), [1.0, 0.0, 0.0]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_without_mass_pass_on_with_what_their_queries_see(rows, norms, dtype):
    causal = np.tri(T, dtype=bool)
    rows = rows * causal
    rows /= rows.sum(axis=-1, keepdims=True)
    rows[1, 2, 5] = 0
    holes = causal & (np.arange(T) != 2)
    holes[2] = causal[2]
    for seen in (causal, KeyRange.causal(T), holes):
        given = (
            rows
            if seen is not holes
            else rows * holes / np.maximum((rows * holes).sum(-1, keepdims=True), 1e-30)
        )
        weights = oracle.weighted_rows(given, norms["value_norm"], seen).astype(dtype)
        found = fastpath.weight_share(weights, SINKS, seen)
        expected = oracle.weight_share(weights, SINKS, seen)
        assert np.isnan(expected).sum() == 1
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def forms(array):
    """The same numbers in other memory: what a compiler of types tells apart."""
    read_only = array.copy()
    read_only.flags.writeable = False
    yield from (array, read_only, np.asfortranarray(array), np.repeat(array, 2, axis=-1)[..., ::2])
    yield np.broadcast_to(array[:1], array.shape) if array.ndim > 1 else array[::-1]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_one_compilation_serves_every_kind_of_memory(rows, norms):
    seen = np.tri(T, dtype=bool)
    rows = rows * seen
    rows /= rows.sum(axis=-1, keepdims=True)
    for weights in forms(rows.astype(np.float32)):
        for norm, sinks in zip(forms(norms["value_norm"]), forms(SINKS), strict=True):
            fastpath.norm_odds_ratio(weights, sinks, norm, seen)
            for visible in (KeyRange.causal(T), *forms(seen & (np.arange(T) != 2))):
                fastpath.weight_share(weights, sinks, visible)
            fastpath.weight_share(weights, sinks & seen)
    for kernel in (_kernels.ranged_kernel, _kernels.masked_kernel):
        assert len(kernel(np.dtype(np.float32), False).signatures) == 1


def test_results_are_contiguous_and_hold_on_to_nothing_else(rows, norms):
    for entropies in (False, True):
        for some in ({}, dict(list(norms.items())[:1]), norms):
            found = fastpath.row_measures(rows, SINKS, some, entropies=entropies)
            arrays = [*found.shares.values(), *found.ratios.values(), *(found.entropy or ())]
            held = {id(array.base): array.base.nbytes for array in arrays if array.base is not None}
            assert sum(held.values()) <= sum(array.nbytes for array in arrays)
            assert all(array.flags.c_contiguous for array in arrays)
    for array in (
        fastpath.sink_share(rows, SINKS, norms["value_norm"]),
        fastpath.norm_odds_ratio(rows, SINKS, norms["value_norm"]),
        fastpath.weight_share(rows, SINKS),
    ):
        assert array.flags.c_contiguous
        assert array.base is None


PADDED = np.arange(T) < np.array([T - 5, T])[:, None, None, None]


@pytest.mark.parametrize(
    ("sinks", "visible"),
    [
        (SINKS, PADDED),
        (SINKS, np.broadcast_to(PADDED, (2, 3, T, T))),
        (SINKS, PADDED[:, :, ::-1, ::-1] & np.tri(T, dtype=bool)),
        (np.stack([SINKS, np.arange(T) == 1])[:, None, None], PADDED),
        (np.broadcast_to(SINKS, (2, 3, T, T)), None),
    ],
    ids=["padding", "stretched", "left padding, causal", "sinks per text", "stretched sinks"],
)
@pytest.mark.parametrize("layout", ["whole", "strided"])
def test_masks_of_each_text_are_ranges(rows, norms, sinks, visible, layout, monkeypatch):
    """None of them may fall to the kernel for any masks, which is several times slower."""
    monkeypatch.setattr(measures, "masked_kernel", None)
    rows = rows if visible is None else np.where(visible, rows, 0)
    total = rows.sum(axis=-1, keepdims=True)
    rows = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    given = rows if layout == "whole" else np.repeat(rows, 2, axis=-1)[..., ::2]
    fast = fastpath.row_measures(given, sinks, norms, visible, entropies=True)
    slow = oracle.row_measures(rows, sinks, norms, visible, entropies=True)
    for name, share in slow.shares.items():
        np.testing.assert_allclose(fast.shares[name], share, atol=1e-13)
    for name, ratio in slow.ratios.items():
        np.testing.assert_allclose(fast.ratios[name], ratio, rtol=1e-12)
    for found, expected in zip(fast.entropy, slow.entropy, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="millions of weights, which is minutes without the JIT")
@pytest.mark.parametrize("hole", [False, True])
def test_a_mask_of_each_text_is_not_copied_for_its_heads(hole):
    rows = np.full((2, 12, 400, 400), 1 / 300, np.float32)
    seen = np.broadcast_to(np.arange(400) < 300, (2, 1, 400, 400)).copy()
    if hole:
        seen[..., 299], seen[..., 399] = False, True
    fastpath.sink_share(rows[:, :1], np.arange(400) == 0, visible=seen)
    tracemalloc.start()
    try:
        fastpath.sink_share(rows, np.arange(400) == 0, visible=seen)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * seen.size  # once for every head would be twelve
