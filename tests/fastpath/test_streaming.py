"""What the registry's cases do not try: threads, memory, layouts, tiles, weights too small for float32."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest
from wording import refused

import fastpath
import oracle
from fastpath._streaming_kernel import CHANNELS, KEYS, QUERIES
from oracle import InputError, InputTypeError, KeyRange

EPS32 = float(np.finfo(np.float32).eps)
JIT = not numba.config.DISABLE_JIT
LONG = 2 * KEYS + 37 if JIT else 41  # three tiles; with the JIT off, seconds instead of minutes
SHORT = 19


def given(n_queries, n_keys, dtype="float32", heads=(4, 2), d_head=7, seed=3):
    rng = np.random.default_rng(seed)
    query = rng.standard_normal((2, heads[0], n_queries, d_head)).astype(dtype)
    key = rng.standard_normal((2, heads[1], n_keys, d_head)).astype(dtype)
    norm = rng.uniform(0.1, 3, (2, heads[0], n_keys))
    return {"query": query, "key": key, "norm": norm, "sink_mask": np.arange(n_keys) % 300 == 0}


def both(arguments, **options):
    return [layer.sink_share_from_query_key(**(arguments | options)) for layer in (fastpath, oracle)]


def bound(arguments, scale=None):
    query, key = (np.asarray(arguments[name], np.float64) for name in ("query", "key"))
    key = np.repeat(key, query.shape[-3] // key.shape[-3], axis=-3)
    score = np.abs(query @ key.swapaxes(-1, -2)).max(initial=0) * (scale or query.shape[-1] ** -0.5)
    eps = EPS32 if arguments["query"].dtype.itemsize <= 4 else float(np.finfo(float).eps)
    return (1e-6 if eps == EPS32 else 4 * key.shape[-2] * eps) + 2 * eps * float(score)


def agree(arguments, **options):
    before = {name: value.copy() for name, value in arguments.items() if isinstance(value, np.ndarray)}
    found, expected = both(arguments, **options)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound(arguments, options.get("scale")))
    for name, value in before.items():
        np.testing.assert_array_equal(arguments[name], value)
    return found


OPTIONS = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"causal": True, "window": SHORT},
    "window ahead": {"window": 5},
    "cap": {"softcap": 0.9, "causal": True},
    "scale": {"scale": 3.0},
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", OPTIONS)
def test_several_tiles_and_blocks(name, dtype):
    agree(given(SHORT, LONG, dtype), **OPTIONS[name])


@pytest.mark.parametrize("n_queries", [1, 2, QUERIES - 1, QUERIES, QUERIES + 1, 2 * QUERIES + 3])
@pytest.mark.parametrize("n_keys", [1, 63, 64, 65])
def test_every_edge_of_blocks_and_lanes(n_queries, n_keys):
    agree(given(n_queries, n_keys, heads=(2, 1)), causal=True)
    agree(given(n_queries, n_keys, heads=(2, 1)))


@pytest.mark.skipif(not JIT, reason="a tile has hundreds of keys, which is minutes without the JIT")
@pytest.mark.parametrize("n_keys", [KEYS - 1, KEYS, KEYS + 1, 2 * KEYS])
def test_every_edge_of_tiles(n_keys):
    arguments = given(n_keys, n_keys, heads=(2, 2))
    agree(arguments)
    agree(arguments, causal=True)
    agree(arguments, causal=True, window=KEYS)
    agree(arguments, visible=KeyRange.causal(n_keys, window=3))


@pytest.mark.parametrize("d_head", [1, CHANNELS - 1, CHANNELS, CHANNELS + 1, 3 * CHANNELS])
def test_any_width_of_heads(d_head):
    agree(given(5, 11, d_head=d_head), causal=True)


@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1), (6, 2)])
def test_grouped_heads_and_norms_of_either(heads):
    arguments = given(5, 11, heads=heads)
    agree(arguments)
    agree(arguments | {"norm": arguments["norm"][:, : heads[1]]})
    agree(arguments | {"norm": None})


def test_sinks_none_one_several_all_and_one_set_for_each_query():
    arguments = given(5, 11)
    for sinks in ([], [0], [3, 4, 10], range(11)):
        agree(arguments | {"sink_mask": np.isin(np.arange(11), list(sinks))})
    rng = np.random.default_rng(5)
    agree(arguments | {"sink_mask": rng.random((5, 11)) < 0.5})
    agree(arguments | {"sink_mask": rng.random((2, 4, 1, 11)) < 0.5, "norm": None})


@pytest.mark.parametrize("shape", [(11,), (1, 11), (5, 11), (4, 5, 11), (2, 1, 5, 11), (2, 4, 1, 11)])
def test_masks_of_every_shape(shape):
    seen = np.random.default_rng(6).random(shape) < 0.6
    if len(shape) > 1:
        seen[..., 0, :] = False
    found = agree(given(5, 11), visible=seen, causal=True)
    assert len(shape) == 1 or np.isnan(found[..., 0]).all()


def test_a_masked_key_may_have_any_score():
    arguments = given(5, 11)
    arguments["key"][..., 4, :] *= 1e4
    seen = np.arange(11) != 4
    first = agree(arguments, visible=seen, scale=0.1)
    arguments["key"][..., 4, :] = 0
    np.testing.assert_array_equal(first, agree(arguments, visible=seen, scale=0.1))


@pytest.mark.parametrize(("n_queries", "n_keys"), [(0, 3), (3, 0), (0, 0), (4, 1)])
def test_few_tokens(n_queries, n_keys):
    found = agree(given(n_queries, n_keys), causal=True)
    assert found.shape == (2, 4, n_queries)
    assert np.isnan(found).sum() == (8 * (n_queries - n_keys) if n_queries > n_keys else 0)


def test_no_heads_and_no_batch():
    arguments = given(5, 11)
    agree(
        {name: value[:0] if name in ("query", "key", "norm") else value for name, value in arguments.items()}
    )
    agree(
        {name: value[1] if name in ("query", "key", "norm") else value for name, value in arguments.items()}
    )


def test_layouts_read_only_and_strided():
    arguments = given(5, 11)
    expected = fastpath.sink_share_from_query_key(**arguments)
    for name in ("query", "key", "norm"):
        strided = np.zeros(
            (*arguments[name].shape[:-1], 2 * arguments[name].shape[-1]), arguments[name].dtype
        )
        strided[..., ::2] = arguments[name]
        arguments[name] = strided[..., ::2]
        arguments[name].flags.writeable = False
    np.testing.assert_array_equal(agree(arguments), expected)
    arguments["query"] = np.ascontiguousarray(arguments["query"].swapaxes(1, 2)).swapaxes(1, 2)
    arguments["key"] = arguments["key"].astype(arguments["key"].dtype.newbyteorder())
    np.testing.assert_array_equal(agree(arguments), expected)


def test_bfloat16_and_integers():
    bfloat16 = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes").bfloat16
    arguments = given(5, 11)
    arguments |= {name: arguments[name].astype(bfloat16) for name in ("query", "key")}
    found = fastpath.sink_share_from_query_key(**arguments)
    wide = arguments | {name: arguments[name].astype(np.float32) for name in ("query", "key")}
    np.testing.assert_array_equal(found, agree(wide))
    whole = {name: (3 * wide[name]).astype(np.int64) for name in ("query", "key")}
    agree(arguments | whole)


def test_weights_too_small_for_float32_are_computed_in_float64():
    arguments = given(5, 11)
    query = arguments["query"][:, ::2, 0]
    arguments["key"][..., 3, :] = 100 * query / (query**2).sum(axis=-1, keepdims=True)
    arguments["norm"][..., 3] = 0
    found = agree(arguments, scale=2.0)  # this key scores 200 in query 0, the others little
    assert ((found[:, ::2, 0] > 0) & (found[:, ::2, 0] < 1)).all()
    tiny = arguments["norm"] * np.where(np.arange(11) < 5, 1e-250, 1)
    agree(arguments | {"norm": tiny}, visible=KeyRange([0] * 5, [5, 4, 3, 2, 5]))
    agree(arguments | {"norm": np.zeros(11)})


def test_products_too_large_for_float32_are_computed_in_float64():
    arguments = given(5, 11)
    arguments["query"] *= np.float32(1e25)
    arguments["key"] *= np.float32(1e20)
    found, expected = both(arguments, scale=1e-45)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_products_too_large_for_float64_are_refused_in_the_oracles_words():
    arguments = given(5, 11, "float64")
    arguments |= {name: arguments[name] * 1e160 for name in ("query", "key")}
    said = []
    for layer in (fastpath, oracle):
        with pytest.raises(InputError) as error:
            layer.sink_share_from_query_key(**arguments)
        said.append(str(error.value))
    assert said[0] == said[1]
    near = given(5, 11, "float64")
    near["query"] *= 1e305  # the worst case would overflow, these do not
    np.testing.assert_allclose(*both(near, scale=1e-305), rtol=1e-12)


def test_longdouble_is_the_oracles_alone():
    arguments = given(5, 11)
    for name in ("query", "key"):
        with refused(name, "use the oracle (--engine oracle)", error=InputTypeError):
            fastpath.sink_share_from_query_key(**(arguments | {name: arguments[name].astype(np.longdouble)}))


@pytest.mark.skipif(
    numba.config.DISABLE_JIT or numba.get_num_threads() < 2,
    reason="one thread only, of the machine or without the JIT",
)
def test_the_number_of_threads_changes_no_bit():
    arguments = given(100, LONG)
    most = numba.get_num_threads()
    results = []
    try:
        for threads in (1, 2, most, 1):
            numba.set_num_threads(threads)
            results.append(fastpath.sink_share_from_query_key(**arguments, causal=True))
    finally:
        numba.set_num_threads(most)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_chunks_of_heads_change_no_bit(monkeypatch):
    arguments = given(20, 30, heads=(6, 3))
    whole = fastpath.sink_share_from_query_key(**arguments)
    monkeypatch.setattr(fastpath.streaming, "_CHUNK_BYTES", 1)
    np.testing.assert_array_equal(fastpath.sink_share_from_query_key(**arguments), whole)


# --- memory: in a process of its own, since a peak never falls ----------------------------------------

GROWTH = textwrap.dedent(
    """
    import sys
    import numpy as np
    import fastpath
    from validation.bench.child import peak_memory

    def call(T):
        rng = np.random.default_rng(0)
        query, key = (rng.standard_normal((12, T, 32), dtype=np.float32) for _ in range(2))
        norm, sinks = rng.uniform(0.1, 3, (12, T)), np.arange(T) == 0
        OPTIONS
        before = peak_memory()
        shares = fastpath.sink_share_from_query_key(query, key, norm, sinks, **options)
        assert np.isfinite(shares).all()
        return (peak_memory() - before) / 2**20

    call(64)
    print(call(int(sys.argv[1])))
    """
)


def growth(T, options):
    """Growth of the peak of resident memory over one call with 12 heads after a small one, in MiB."""
    script = GROWTH.replace("OPTIONS", f"options = dict({options})")
    root = str(Path(fastpath.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": root, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(T)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


MASKED = {
    "causal": "causal=True",
    "padding": "visible=np.arange(T) < T - 7",
    "padding of each head": "visible=np.arange(T) < T - np.arange(1, 13)[:, None, None], causal=True",
    "a hole": "visible=np.arange(T) != 7, causal=True",
    "a hole of each head": "visible=np.arange(T) != np.arange(1, 13)[:, None, None]",
}


linux = pytest.mark.skipif(
    not (JIT and Path("/proc/self/status").exists()), reason="reads the peak as Linux reports it, compiled"
)


@linux
@pytest.mark.parametrize("options", MASKED.values(), ids=MASKED)
def test_memory_grows_with_the_text_and_not_with_its_square(options):
    assert growth(4096, options) < 32  # the rows would take 768 MiB, a mask of each head 192


@linux
@pytest.mark.slow
@pytest.mark.parametrize("options", ["", *MASKED.values()], ids=["plain", *MASKED])
def test_memory_of_a_long_text(options, capsys):
    grown = growth(16384, options)
    with capsys.disabled():
        print(f"\n12 heads, 16384 tokens, {options or 'plain'}: the peak grew by {grown:.1f} MiB")
    assert grown <= 64  # the rows would take 12 GiB


@pytest.mark.parametrize("hidden", ["causal", "range", "mask", "holes"])
def test_a_norm_that_nobody_sees_does_not_matter(hidden):
    rng = np.random.default_rng(5)
    query, key = rng.normal(size=(2, 2, 7, 4)).astype(np.float32)
    norm = rng.gamma(2, size=(2, 7))
    visible = np.ones((7, 7), dtype=bool)
    options = {}
    if hidden == "causal":  # three queries, aligned with the last keys, see no more than two keys each
        query = query[:, :3]
        options = {"causal": True, "window": 2}
        unseen, visible = [0, 1, 2], None
    elif hidden == "range":
        unseen = [6]
        visible = oracle.KeyRange(np.zeros(7, int), np.full(7, 6))
    else:
        unseen = [3] if hidden == "holes" else [6]
        visible[:, unseen] = False
        visible[2, 0] = hidden != "holes"
    wrong = norm.copy()
    wrong[:, unseen] = np.nan
    sinks = np.arange(7) == 0
    given = (query, key, wrong, sinks)
    clean = fastpath.sink_share_from_query_key(query, key, norm, sinks, visible=visible, **options)
    fast = fastpath.sink_share_from_query_key(*given, visible=visible, **options)
    assert fast.tobytes() == clean.tobytes()
    slow = oracle.sink_share_from_query_key(*given, visible=visible, **options)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=2e-6)


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_one_compilation_serves_every_kind_of_memory():
    arguments = given(5, 11)
    kernel = fastpath.streaming.streaming_kernel(np.dtype(np.float32))
    fastpath.sink_share_from_query_key(**arguments)
    before = len(kernel.signatures)
    for seen in (np.ones(11, bool), np.arange(11) != 3, np.ones((4, 5, 11), bool) & (np.arange(11) != 3)):
        for visible in (seen, np.asfortranarray(seen), np.repeat(seen, 2, axis=-1)[..., ::2]):
            visible.flags.writeable = False
            fastpath.sink_share_from_query_key(**arguments, visible=visible)
            fastpath.sink_share_from_query_key(**arguments | {"norm": None, "sink_mask": visible})
    assert len(kernel.signatures) == before == 1


def test_terms_that_overflow_are_refused_unless_nobody_sees_them():
    arguments = given(5, 11, "float64")
    for name, channel in (("query", 0), ("key", 1)):  # finite by chance: each infinite term meets a zero
        arguments[name][..., :2] = 0
        arguments[name][..., channel] = 1e300
    with refused("query", "Divide them by a common factor"):
        fastpath.sink_share_from_query_key(**arguments, scale=1e20)
    hidden = given(5, 11, "float64")
    hidden["query"][..., 0, :] = hidden["key"][..., 4:, :] = 1e200
    visible = np.ones((5, 11), bool)
    visible[0, 4:], visible[1:] = False, np.arange(11) < 4
    for seen in (visible, visible[None], KeyRange(np.zeros(5, int), np.full(5, 4))):
        agree_at_all = both(hidden, visible=seen, scale=1e-200)
        np.testing.assert_allclose(*agree_at_all, rtol=0, atol=1e-12)


def test_ranges_of_their_own_for_every_head():
    arguments = given(5, 11)
    start = np.arange(4)[:, None, None]
    agree(arguments, visible=(np.arange(11) >= start) & (np.arange(11) < 11 - start), causal=True)
    agree(arguments, visible=np.arange(11) >= np.array([2, 0])[:, None, None, None], window=3)
