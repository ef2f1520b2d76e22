"""Seeded inputs for the distances between heads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import CONVENTIONS, METRICS, KeyRange
from validation.cases import DTYPES, ODD_ROWS, SINKS, Case, positions
from validation.random_rows import closed_rows

__all__ = [
    "clark_cases",
    "closed_rows",
    "distance_cases",
    "head_cases",
]

Array = NDArray[Any]

_PLAIN = METRICS[:6]


def distance_cases() -> Iterator[Case]:
    """Calls of `distance_sums`: plain, masked, several texts, scores, close rows, zeros, odd memory."""
    yield from _plain()
    yield from _masked()
    yield from _texts()
    yield from _close()
    yield from _zeros()
    yield from _odd_memory()


def head_cases() -> Iterator[Case]:
    """The same for `head_distances`, each with one metric and convention in turn."""
    pairs = [(metric, convention) for metric in METRICS for convention in CONVENTIONS][:-1]
    for number, case in enumerate(distance_cases()):
        given = dict(case.arguments)
        metrics, conventions = given.pop("metrics", METRICS), given.pop("conventions", CONVENTIONS)
        some = [pair for pair in pairs if pair[0] in metrics and pair[1] in conventions]
        metric, convention = some[number % len(some)]
        yield Case(case.name, {**given, "metric": metric, "convention": convention})


def clark_cases() -> Iterator[Case]:
    """The same for `clark2019_distances`, which knows no sink."""
    for case in distance_cases():
        keep = {name: case.arguments[name] for name in ("visible", "queries") if name in case.arguments}
        yield Case(case.name, {"rows": case.arguments["rows"], **keep})


def _plain() -> Iterator[Case]:
    rng = np.random.default_rng(11)
    for dtype in DTYPES:
        for name, sinks in {**SINKS, "every key": tuple(range(7))}.items():
            yield _case(f"{name}, {dtype}", closed_rows(rng, (2, 3, 5, 7)), dtype, sinks)
        yield _case(f"one key, {dtype}", closed_rows(rng, (3, 2, 1)), dtype, ())
        yield _case(f"one head, {dtype}", closed_rows(rng, (1, 3, 5)), dtype, (1, 2))
        if dtype != "float16":
            yield _case(f"peaked, {dtype}", closed_rows(rng, (3, 11, 23), spread=4), dtype, (0,))
    yield _case("many keys, float64", closed_rows(rng, (3, 2, 131)), "float64", (0, 130))
    yield _case("many heads, float64", closed_rows(rng, (19, 2, 5)), "float64", (0,))
    given = {"rows": closed_rows(rng, (2, 3, 5, 7)), "sink_mask": positions(7, 0)}
    for metric in ("jsd", "root_jsd", "cosine", "aitchison_sink"):
        convention = "keep" if metric == "aitchison_sink" else "drop"
        yield Case(f"{metric} alone, float64", {**given, "metrics": metric, "conventions": convention})


def _masked() -> Iterator[Case]:
    rng = np.random.default_rng(12)
    causal, real = np.tri(9, dtype=bool), np.arange(9) < 6
    seen = rng.random((9, 9)) < 0.6
    seen[4] = False
    masks: Mapping[str, Any] = {
        "causal": causal,
        "causal range": KeyRange.causal(9),
        "window range": KeyRange.causal(9, 4),
        "padding": real[:, None] & real,
        "padding over keys": real,
        "left padding, causal": causal & ~real[::-1, None] & ~real[::-1],
        "any mask": seen,
    }
    for number, (name, visible) in enumerate(masks.items()):
        mask = visible
        if isinstance(visible, KeyRange):
            mask = (visible.start[:, None] <= np.arange(9)) & (np.arange(9) < visible.stop[:, None])
        dtype = DTYPES[1 + number % 2]
        scores = rng.normal(size=(2, 2, 9, 9))
        weights = np.where(mask, np.exp(scores), 0)
        total = weights.sum(axis=-1, keepdims=True)
        rows = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        rows[~np.broadcast_to(mask, rows.shape)] = (np.nan, -3.0, 0.0)[number % 3]
        scores[~np.broadcast_to(mask, rows.shape)] = -np.inf
        given = {**_case("", rows, dtype, (0, 5)).arguments, "visible": visible}
        yield Case(f"{name}, {dtype}", given)
        yield Case(f"{name}, scores, {dtype}", {**given, "scores": scores})
    sinks = np.zeros((9, 9), bool)
    sinks[np.arange(9), np.arange(9) // 2] = True
    given = {**_case("", closed_rows(rng, (3, 9, 9)), "float32", ()).arguments, "sink_mask": sinks}
    yield Case("sinks per query, float32", given)


def _texts() -> Iterator[Case]:
    rng = np.random.default_rng(13)
    shapes = ((2, 3, 5, 7), (2, 3, 4, 4), (2, 3, 6, 3))
    scores = [2 * rng.normal(size=shape) for shape in shapes]
    rows = [np.exp(part) / np.exp(part).sum(axis=-1, keepdims=True) for part in scores]
    sinks = [positions(shape[-1], 0, shape[-1] - 1) for shape in shapes]
    queries = [np.arange(shape[-2]) % 2 == 1 for shape in shapes]
    given = {"rows": rows, "sink_mask": sinks}
    yield Case("texts, float64", given)
    yield Case("texts, queries, float64", {**given, "queries": queries})
    yield Case("texts, scores, float64", {**given, "scores": scores, "queries": queries})
    causal = np.tri(4) * rows[1]
    some = [rows[0], causal / causal.sum(axis=-1, keepdims=True), rows[2]]
    yield Case(
        "texts, one causal, float64", {**given, "rows": some, "visible": [None, KeyRange.causal(4), None]}
    )
    single = {"rows": rows[0].astype(np.float32), "sink_mask": sinks[0]}
    yield Case("queries, float32", {**single, "queries": queries[0]})
    yield Case("no query, float32", {**single, "queries": np.zeros(5, bool)})
    yield Case("scores, float32", {**single, "scores": scores[0].astype(np.float32)})
    far = scores[0].copy()
    far[..., ::2] *= 300
    yield Case("scores far apart, float32", {**single, "scores": far})


def _close() -> Iterator[Case]:
    """Heads that are equal, close to some degree, and around the border where the kernel takes more care."""
    rng = np.random.default_rng(14)
    base = closed_rows(rng, (1, 4, 37))
    for size in (0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.6):
        rows = base * (1 + size * rng.uniform(-1, 1, (3, 4, 37)))
        rows /= rows.sum(axis=-1, keepdims=True)
        yield _case(f"close to {size:g}, float64", rows, "float64", (0,))


def _zeros() -> Iterator[Case]:
    rows = np.array([*ODD_ROWS.values(), (0.5, 0.25, 0.125, 0.0625, 0.0625)])[:, None]  # each of them a head
    choices: Mapping[str, Mapping[str, Any]] = {
        "no logarithms": {"metrics": _PLAIN},
        "common support": {"zeros": "common-support"},
        "replaced": {"zeros": "replace", "delta": 1e-3},
    }
    for dtype in DTYPES:
        for place, sinks in enumerate(((0,), (), (0, 2), (0, 1, 2, 3, 4))):
            for name, choice in choices.items():
                case = _case(f"odd heads {place}, {name}, {dtype}", rows, dtype, sinks)
                yield case._replace(arguments={**case.arguments, **choice})
    undefined = {"rows": rows[[0, 1, 7]], "sink_mask": positions(5, 0)}
    yield Case("undefined heads, float64", undefined)
    yield Case(
        "a zero that does not count, float64",
        {
            "rows": np.concatenate([rows[[7, 7]], rows[[3, 6]]], axis=1),
            "sink_mask": positions(5, 0),
            "queries": np.array([True, False]),
        },
    )
    yield Case(
        "nothing made up for rows without content, float64",
        {
            "rows": rows[[0, 1, 7, 7]],
            "sink_mask": positions(5, 0),
            "metrics": ("aitchison", "aitchison_sink"),
            "zeros": "replace",
            "delta": 0.3,  # for each of four parts it would leave less than nothing
        },
    )
    tiny = np.array([[1.0, 1e-30, 2e-30, 1e-9], [1.0, 1e-38, 1e-40, 1e-3], [1e-30, 0.5, 0.5, 1e-20]])
    for dtype in ("float32", "float64"):
        yield _case(f"tiny weights, {dtype}", tiny[:, None], dtype, (0,))
    small = np.where(tiny < 0.5, tiny * 1e-260, tiny)
    yield _case("smallest normal weights, float64", small[:, None], "float64", (0,))
    unit = 5e-324  # the smallest weight there is: 1 / unit is beyond all numbers
    least = [[1, unit, 0, 0], [1, unit, 3 * unit, 0], [1, 2**-1040, 2**-1030, 0], [0.5, 0.5, unit, 0]]
    for n_sinks, rows in ((1, np.array(least)), (2, np.array(least)[:3, [0, 3, 1, 2]])):
        case = _case(f"subnormal content, sinks {n_sinks}, float64", rows[:, None], "float64", range(n_sinks))
        yield case._replace(arguments={**case.arguments, "zeros": "common-support"})


def _odd_memory() -> Iterator[Case]:
    rng = np.random.default_rng(15)
    for shape in ((0, 3, 3), (2, 0, 3, 3), (2, 0, 3), (2, 3, 0)):
        yield _case(f"without elements {shape}, float32", np.zeros(shape), "float32", ())
    rows = closed_rows(rng, (2, 2, 5, 7)).astype(np.float32)
    rows.flags.writeable = False
    forms = {
        "column-major": np.asfortranarray(rows),
        "strided": np.repeat(rows, 2, axis=-1)[..., ::2],
        "backwards": np.ascontiguousarray(rows[..., ::-1])[..., ::-1],
        "broadcast": np.broadcast_to(rows[:1, :1], rows.shape),
    }
    for name, form in forms.items():
        yield Case(f"{name}, float32", {"rows": form, "sink_mask": positions(7, 0, 6)})
    whole = np.eye(4, 7, dtype=np.int64).reshape(2, 2, 7)
    yield Case("whole numbers", {"rows": whole, "sink_mask": positions(7, 0), "metrics": _PLAIN})


def _case(name: str, rows: Array, dtype: str, sinks: Iterable[int]) -> Case:
    return Case(name, {"rows": rows.astype(dtype), "sink_mask": positions(rows.shape[-1], *sinks)})
