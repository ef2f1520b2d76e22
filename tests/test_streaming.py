from __future__ import annotations

import math

import numpy as np
import pytest
from wording import refused

from oracle import InputTypeError, KeyRange, sink_share_from_query_key

SINK = np.array([1, 0, 0, 0, 0, 0, 0], bool)


@pytest.fixture
def given():
    rng = np.random.default_rng(41)
    query, key = rng.standard_normal((2, 4, 5, 3)), rng.standard_normal((2, 2, 7, 3))
    return query, key, rng.uniform(0.1, 3, (2, 2, 7))


def by_definition(query, key, norm, sinks, scale, sees, softcap=None):
    """Sink shares with loops over single numbers; grouped heads as [0, 0, 1, 1]."""
    group = query.shape[-3] // key.shape[-3]
    out = np.full(query.shape[:-1], np.nan)
    for place in np.ndindex(out.shape):
        *batch, head, row = place
        mine = (*batch, head // group)
        weights = {}
        for column in range(key.shape[-2]):
            if not sees(row, column):
                continue
            score = scale * math.fsum(query[place] * key[mine][column])
            if softcap is not None:
                score = softcap * math.tanh(score / softcap)
            weights[column] = math.exp(score) * (1 if norm is None else norm[mine][column])
        if weights:
            on_sink = math.fsum(w for column, w in weights.items() if sinks[column])
            out[place] = on_sink / math.fsum(weights.values())
    return out


@pytest.mark.parametrize("softcap", [None, 0.7])
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("with_norm", [False, True])
def test_against_the_definition(given, with_norm, causal, window, softcap):
    query, key, norm = given
    norm = norm if with_norm else None

    def sees(row, column):
        ahead = column - (row + 2)  # five queries, seven keys: the last stand together
        return (not causal or ahead <= 0) and (window is None or ahead > -window)

    found = sink_share_from_query_key(query, key, norm, SINK, causal=causal, window=window, softcap=softcap)
    expected = by_definition(query, key, norm, SINK, 1 / math.sqrt(3), sees, softcap)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_scale_and_visible_masks_or_ranges(given):
    query, key, norm = given
    seen = np.array([[1, 1, 1, 0, 0, 0, 0], [0] * 7, [0, 1, 1, 1, 1, 1, 1], [1] * 7, [1, 0, 0, 0, 0, 0, 0]])
    expected = by_definition(query, key, norm, SINK, 0.3, lambda row, column: seen[row, column])
    found = sink_share_from_query_key(query, key, norm, SINK, 0.3, visible=seen)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert np.isnan(found[..., 1]).all()
    assert (found[..., 2] == 0).all()
    assert (found[..., 4] == 1).all()
    ranged = KeyRange([0, 3, 1, 0, 0], [3, 3, 7, 7, 1])
    np.testing.assert_array_equal(
        sink_share_from_query_key(query, key, norm, SINK, 0.3, visible=ranged), found
    )


def test_norms_per_head_and_per_key_head_agree(given):
    query, key, norm = given
    repeated = norm[:, [0, 0, 1, 1]]
    np.testing.assert_array_equal(
        sink_share_from_query_key(query, key, norm, SINK),
        sink_share_from_query_key(query, key, repeated, SINK),
    )


def test_more_queries_than_keys_leave_the_first_without_any(given):
    query, key, _ = given
    found = sink_share_from_query_key(query, key[..., :2, :], None, [1, 0], causal=True)
    assert np.isnan(found[..., :3]).all()
    assert (found[..., 3] == 1).all()


def test_large_scores_do_not_overflow_and_longdouble_stays(given):
    query, key, norm = given
    found = sink_share_from_query_key(query * 1e4, key, norm, SINK)
    assert ((found >= 0) & (found <= 1)).all()
    wide = sink_share_from_query_key(query.astype(np.longdouble), key, norm, SINK)
    assert wide.dtype == np.longdouble
    np.testing.assert_allclose(
        wide.astype(float), sink_share_from_query_key(query, key, norm, SINK), rtol=1e-13
    )


@pytest.mark.parametrize(("n_queries", "n_keys"), [(0, 3), (3, 0), (1, 1)])
def test_few_tokens(n_queries, n_keys):
    query, key = np.ones((2, n_queries, 3)), np.ones((1, n_keys, 3))
    found = sink_share_from_query_key(query, key, None, np.ones(n_keys, bool), causal=True)
    assert found.shape == (2, n_queries)
    assert (np.isnan(found) if n_keys == 0 else found == 1).all()


@pytest.mark.parametrize(
    ("change", "argument", "words"),
    [
        ({"query": np.zeros((5, 3))}, "query", "found shape (5, 3)"),
        ({"key": np.zeros((7, 3))}, "key", "key[None]"),
        ({"key": np.zeros((2, 3, 7, 3))}, "key", "a multiple of kv_head"),
        ({"key": np.zeros((2, 0, 7, 3))}, "key", "a multiple of kv_head"),
        ({"key": np.zeros((2, 2, 7, 4))}, "key", "(2, 2, 7, 4)"),
        ({"key": np.zeros((1, 2, 7, 3))}, "key", "(1, 2, 7, 3)"),
        ({"query": np.full((2, 4, 5, 3), np.nan)}, "query", "nan at index (0, 0, 0, 0)"),
        ({"key": np.full((2, 2, 7, 3), np.inf)}, "key", "inf at index"),
        ({"query": np.full((2, 4, 5, 3), 1e300), "key": np.full((2, 2, 7, 3), 1e300)}, "query", "finite"),
        ({"norm": np.ones((3, 7))}, "norm", "attention (2, 4, 5, 7)"),
        ({"norm": np.full((2, 2, 7), -1.0)}, "norm", "at least zero"),
        ({"sink_mask": [0]}, "sink_mask", "(2, 4, 5, 7)"),
        ({"visible": np.ones(5)}, "visible", "(2, 4, 5, 7)"),
        ({"visible": KeyRange([0], [1])}, "visible.start", "each of 5 queries"),
        ({"scale": 0.0}, "scale", "above zero"),
        ({"scale": np.inf}, "scale", "found inf"),
        ({"softcap": -1.0}, "softcap", "Leave it out for none"),
        ({"window": 0}, "window", "at least one"),
        ({"window": 1.5}, "window", "found 1.5"),
        ({"window": np.nan}, "window", "found nan"),
        ({"window": np.inf}, "window", "found inf"),
    ],
)
def test_wrong_input_is_refused(given, change, argument, words):
    query, key, norm = given
    call = {"query": query, "key": key, "norm": norm, "sink_mask": SINK}
    with refused(argument, words):
        sink_share_from_query_key(**(call | change))


@pytest.mark.parametrize(
    ("change", "argument", "words"),
    [
        ({"window": True}, "window", "found True"),
        ({"window": "3"}, "window", "found '3'"),
        ({"window": [3]}, "window", "found [3]"),
        ({"scale": "0.5"}, "scale", "found '0.5'"),
        ({"scale": np.ones(4)}, "scale", "an array of shape (4,)"),
        ({"scale": 1j}, "scale", "found 1j"),
        ({"softcap": object}, "softcap", "Leave it out for none"),
        ({"causal": "no"}, "causal", "found 'no'"),
        ({"causal": None}, "causal", "True or False"),
    ],
)
def test_input_of_a_wrong_type_is_refused(given, change, argument, words):
    query, key, norm = given
    call = {"query": query, "key": key, "norm": norm, "sink_mask": SINK}
    with refused(argument, words, error=InputTypeError):
        sink_share_from_query_key(**(call | change))


def test_numbers_of_any_kind_are_numbers(given):
    query, key, norm = given
    plain = sink_share_from_query_key(query, key, norm, SINK, 0.5, True, 3, 2.0)
    for kind in (np.float32, np.array, np.float64):
        found = sink_share_from_query_key(query, key, norm, SINK, kind(0.5), np.True_, np.int8(3), kind(2.0))
        np.testing.assert_array_equal(found, plain)
    wide = sink_share_from_query_key(query, key, norm, SINK, window=10**30)
    np.testing.assert_array_equal(wide, sink_share_from_query_key(query, key, norm, SINK))
