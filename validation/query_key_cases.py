"""Seeded inputs for the measures of queries and keys: grouped heads, masks, caps, short and long texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from oracle import KeyRange
from validation.cases import DTYPES, SINKS, Case, positions

__all__ = ["bad_query_key_cases", "query_key_cases"]


def query_key_cases() -> Iterator[Case]:
    """Queries and keys: grouped heads, causal, windows, caps, masks and ranges, short and long."""
    seen = np.random.default_rng(11).random((7, 11)) < 0.6
    choices: Mapping[str, Mapping[str, Any]] = {
        "plain": {},
        "scale": {"scale": 0.3},
        "causal": {"causal": True},
        "window": {"window": 3},
        "causal window": {"causal": True, "window": 3},
        "softcap": {"softcap": 0.7, "causal": True},
        "mask": {"visible": seen},
        "mask over keys": {"visible": seen[1], "causal": True},
        "mask per text": {"visible": np.stack([seen, ~seen])[:, None]},
        "range": {"visible": KeyRange(np.arange(7) // 2, np.minimum(np.arange(7) * 2, 11))},
        "range and window": {"visible": KeyRange(np.arange(7), np.full(7, 9)), "causal": True, "window": 5},
    }
    for number, (name, options) in enumerate(choices.items()):
        for dtype in DTYPES:
            norm = (None, "head", "kv_head")[number % 3]
            yield _query_key(f"{name}, {dtype}", (2, 4, 7, 5), (2, 2, 11, 5), dtype, norm, **options)
    for name, sinks in {**SINKS, "every key": tuple(range(11))}.items():
        yield _query_key(f"{name}, float32", (3, 7, 5), (3, 11, 5), "float32", "head", sinks, causal=True)
    yield _query_key("one key head, float32", (6, 7, 5), (1, 11, 5), "float32", "kv_head")
    yield _query_key("one token, float32", (2, 1, 5), (1, 1, 5), "float32", "head", causal=True)
    yield _query_key("more queries than keys, float64", (2, 7, 5), (2, 3, 5), "float64", causal=True)
    yield _query_key("one query, float32", (2, 1, 5), (2, 700, 5), "float32", "head", causal=True)
    for dtype in ("float32", "float64"):
        long: dict[str, Any] = {"norm": "head", "causal": True}
        yield _query_key(f"long, {dtype}", (2, 613, 32), (2, 613, 32), dtype, "head")
        yield _query_key(f"long causal, {dtype}", (3, 613, 32), (1, 613, 32), dtype, **long)
        yield _query_key(f"long window, {dtype}", (2, 613, 32), (2, 613, 32), dtype, **long, window=100)
        yield _query_key(f"large scores, {dtype}", (2, 61, 32), (2, 61, 32), dtype, **long, scale=9.0)
    for shapes in (((2, 0, 5), (2, 3, 5)), ((2, 3, 5), (2, 0, 5)), ((0, 2, 3, 5), (0, 2, 3, 5))):
        yield _query_key(f"without elements {shapes[0]}", shapes[0], shapes[1], "float32")
    yield from _at_the_edge_of_numbers()
    yield from _far_apart()
    yield from _never_read()
    case = _query_key("read-only and strided, float32", (4, 14, 5), (2, 22, 5), "float32", "head")
    given = dict(case.arguments)
    for name in ("query", "key"):
        given[name] = given[name][:, ::2]
        given[name].flags.writeable = False
    yield Case(case.name, {**given, "norm": given["norm"][:, ::2], "sink_mask": given["sink_mask"][::2]})


def bad_query_key_cases() -> Iterator[Case]:
    """Calls with queries and keys that must be refused."""
    good = _query_key("good", (2, 4, 5, 3), (2, 2, 7, 3), "float64", "kv_head").arguments
    changes: Mapping[str, Mapping[str, Any]] = {
        "queries without heads": {"query": np.zeros((5, 3))},
        "keys without heads": {"key": np.zeros((7, 3))},
        "no d_head": {"query": np.zeros((2, 4, 5, 0))},
        "heads that no group fits": {"key": np.zeros((2, 3, 7, 3))},
        "another d_head": {"key": np.zeros((2, 2, 7, 4))},
        "another batch": {"key": np.zeros((1, 2, 7, 3))},
        "a query of NaN": {"query": np.full((2, 4, 5, 3), np.nan)},
        "an infinite key": {"key": np.full((2, 2, 7, 3), -np.inf)},
        "norms of other heads": {"norm": np.ones((3, 7))},
        "norms below zero": {"norm": np.full((2, 2, 7), -1.0)},
        "sinks by position": {"sink_mask": [0]},
        "a mask of another shape": {"visible": np.ones(5)},
        "a range too short": {"visible": KeyRange(np.zeros(4, int), np.ones(4, int))},
        "no scale": {"scale": 0.0},
        "a scale of NaN": {"scale": np.nan},
        "a cap below zero": {"softcap": -1.0},
        "no window": {"window": 0},
        "half a window": {"window": 1.5},
        "a window of NaN": {"window": np.nan},
        "a window in words": {"window": "wide"},
        "a scale in words": {"scale": "one"},
        "several scales": {"scale": np.ones(4)},
        "causal in words": {"causal": "no"},
        "a NaN at a key that one query sees": {
            "key": np.where(np.arange(7)[:, None] == 6, np.nan, np.ones((2, 2, 7, 3))),
            "causal": True,
        },
        "scores that overflow, and norms below zero": {
            "query": np.full((2, 4, 5, 3), 1e200),
            "key": np.full((2, 2, 7, 3), 1e200),
            "norm": np.full((2, 2, 7), -1.0),
        },
        "scores that overflow, and sinks by position": {
            "query": np.full((2, 4, 5, 3), 1e200),
            "key": np.full((2, 2, 7, 3), 1e200),
            "sink_mask": [0],
        },
        "a query of NaN, and norms below zero": {
            "query": np.full((2, 4, 5, 3), np.nan),
            "norm": np.full((2, 2, 7), -1.0),
        },
    }
    for name, change in changes.items():
        yield Case(name, {**good, **change})


def _at_the_edge_of_numbers() -> Iterator[Case]:
    """Moderate scores of factors, scales and caps that are not."""
    sizes: Mapping[str, tuple[float, float, Mapping[str, Any]]] = {
        "a scale that queries cannot take, float32": (1e36, 1e-37, {"scale": 1e3}),
        "a scale that keys cannot take, float32": (1e-37, 1e36, {"scale": 1e3}),
        "a scale beyond, float32": (1e-20, 1e-20, {"scale": 1e40}),
        "a scale below, float32": (1e20, 1e20, {"scale": 1e-40}),
        "queries that the scale would drown, float32": (1e-20, 1e38, {"scale": 1e-18}),
        "a cap beyond, float32": (1.0, 1.0, {"softcap": 1e39}),
        "a cap below, float32": (1.0, 1.0, {"softcap": 1e-40}),
        "a scale that queries cannot take, float64": (1e300, 1e-307, {"scale": 1e9}),
        "a scale that keys cannot take, float64": (1e-307, 1e300, {"scale": 1e9}),
        "a cap beyond, float64": (1.0, 1.0, {"softcap": 1.7e308}),
        "a cap below, float64": (1.0, 1.0, {"softcap": 1e-310}),
        "a cap below large scores, float64": (1e5, 1.0, {"softcap": 1e-305}),
    }
    for name, (of_query, of_key, options) in sizes.items():
        case = _query_key(name, (2, 7, 5), (2, 11, 5), name[-7:], "head", causal=True, **options)
        given = dict(case.arguments)
        for argument, size in (("query", of_query), ("key", of_key)):
            given[argument] = given[argument] * given[argument].dtype.type(size)
        yield Case(name, given)


def _far_apart() -> Iterator[Case]:
    """The key that takes the weight has no norm: a share of what is left, below 1e-290 of the row."""
    for gap in (650.0, 690.0, 709.0, 740.0, 760.0):
        keys = np.array([0.0, -gap, -gap - 1, -gap - 2])[:, None]
        given: dict[str, Any] = {"query": np.ones((2, 3, 1)), "key": np.stack([keys, keys[[0, 3, 2, 1]]])}
        given |= {"norm": np.array([0.0, 1, 2, 3]), "sink_mask": positions(4, 0, 2), "scale": 1.0}
        yield Case(f"scores {gap:g} apart, float64", given)
        seen = np.array([[True, True, True, False], [True] * 4, [True, False, True, True]])
        yield Case(f"scores {gap:g} apart, a mask, float64", {**given, "visible": seen, "sink_mask": seen})
    given = {**given, "norm": np.zeros(4), "sink_mask": positions(4, 0)}
    yield Case("no norm at any key, float64", given)


def _never_read() -> Iterator[Case]:
    """Garbage at keys that no query sees, at queries that see no key, and in scores of hidden pairs."""
    real = np.arange(11) >= 3
    masks: Mapping[str, Mapping[str, Any]] = {
        "left padding": {"visible": real, "causal": True},
        "left padding per text": {"visible": np.stack([real, real])[:, None, None], "causal": True},
        "padding range": {"visible": KeyRange(np.full(11, 3), np.full(11, 11)), "causal": True},
        "padding with holes": {"visible": real & (np.arange(11) != 7), "causal": True},
    }
    for number, (name, options) in enumerate(masks.items()):
        for dtype in DTYPES:
            case = _query_key(f"{name} of garbage, {dtype}", (2, 4, 11, 5), (2, 2, 11, 5), dtype, **options)
            for argument in ("query", "key"):
                case.arguments[argument][..., :3, :] = (np.nan, np.inf, -np.inf, 6e4)[number]
            yield case
    case = _query_key("hidden scores too large, float64", (2, 7, 5), (2, 11, 5), "float64", causal=True)
    case.arguments["query"][:] *= np.where(np.arange(7) == 0, 1e150, 1e-200)[:, None]
    case.arguments["key"][:] *= np.where(np.arange(11) < 5, 1e-150, 1e200)[:, None]
    yield case


def _query_key(
    name: str,
    query_shape: tuple[int, ...],
    key_shape: tuple[int, ...],
    dtype: str,
    norm: str | None = None,
    sinks: tuple[int, ...] = (0,),
    **options: Any,
) -> Case:
    rng = np.random.default_rng(sum(query_shape) + key_shape[-2])
    query, key = (rng.standard_normal(shape).astype(dtype) for shape in (query_shape, key_shape))
    of = {"head": query_shape[:-2], "kv_head": key_shape[:-2]}
    norms = None if norm is None else rng.uniform(0.1, 9, (*of[norm], key_shape[-2]))
    n_keys = key_shape[-2]
    given = {"query": query, "key": key, "norm": norms, "sink_mask": positions(n_keys, *sinks[:n_keys])}
    return Case(name, {**given, **options})
