"""Seeded inputs for the distances between heads and for verdicts about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import CONVENTIONS, METRICS, KeyRange
from validation.cases import DTYPES, SINKS, Case, positions

__all__ = [
    "bad_clark_cases",
    "bad_distance_cases",
    "bad_head_cases",
    "bad_verdict_cases",
    "clark_cases",
    "distance_cases",
    "head_cases",
    "verdict_cases",
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


def verdict_cases() -> Iterator[Case]:
    """Pairs of distance matrices: random, tied in many ways, with gaps, groups and margins."""
    rng = np.random.default_rng(21)
    groups = {"no groups": None, "three groups": np.array([0, 1, 2, 0, 1, 2, 2, 0, 1, 0, 0])}
    for kind in ("random", "tied", "nearly tied", "with gaps", "whole numbers"):
        for name, labels in groups.items():
            for margin in (0.0, 0.1, 0.5):
                first, second = (_matrix(rng, kind, 11) for _ in range(2))
                given = {"first": first, "second": second, "groups": labels, "margin": margin}
                yield Case(f"{kind}, {name}, margin {margin}, {first.dtype}", given)
    for size in (0, 1, 2, 3):
        first, second = rng.random((2, size, size))
        yield Case(f"{size} heads, float64", {"first": first, "second": second})
    matrix = _matrix(rng, "random", 7)
    wide = np.repeat(matrix, 2, axis=1)[:, ::2]
    for name, second in {
        "the same": matrix,
        "reversed": -matrix,
        "float32": matrix.astype(np.float32),
        "strided": wide,
        "all equal": np.ones((7, 7)),
        "nothing but gaps": np.full((7, 7), np.nan),
    }.items():
        yield Case(f"{name} as second, float64", {"first": matrix, "second": second})


def bad_distance_cases() -> Iterator[Case]:
    """Calls of `distance_sums` that must be refused."""
    rows = _rows(np.random.default_rng(22), (2, 3, 5, 7))
    given = {"rows": rows, "sink_mask": positions(7, 0)}
    for name, change in _bad_rows(rows).items():
        yield Case(name, {**given, "rows": change})
    other = _rows(np.random.default_rng(23), (2, 3, 4, 6))
    spoiled = other.copy()
    spoiled[1, 2, 3, 4] = -0.5
    two = {"rows": [rows, spoiled], "sink_mask": [positions(7, 0), positions(6, 1)]}
    yield Case("a weight below zero in the second text", two)
    holes = rows.copy()
    holes[0, 1, 2, 3] = holes[1, 0, 4, 5] = 0
    holes /= holes.sum(axis=-1, keepdims=True)
    no_sink = holes.copy()
    no_sink[0, 1, 1, :1] = 0
    no_sink /= no_sink.sum(axis=-1, keepdims=True)
    two_holes = no_sink.copy()
    two_holes[1, 1, 4, 2:4] = 0
    two_holes /= two_holes.sum(axis=-1, keepdims=True)
    scores = np.log(rows)
    lost = scores.copy()
    lost[1, 0, 2, 3] = lost[1, 1, 0, 0] = -np.inf
    changes: Mapping[str, Mapping[str, Any]] = {
        "zeros": {"rows": holes},
        "zeros, the first in a sink": {"rows": no_sink},
        "zeros in the second text": {"rows": [rows, no_sink]},
        "zeros, the aitchison sink alone": {"rows": holes, "metrics": "aitchison_sink"},
        "a delta that leaves nothing": {"rows": two_holes, "zeros": "replace", "delta": 0.5},
        "a delta that leaves less": {"rows": [rows, two_holes], "zeros": "replace", "delta": 0.75},
        "no delta": {"zeros": "replace"},
        "a delta for nothing": {"delta": 1e-3},
        "a delta of one": {"zeros": "replace", "delta": 1.0},
        "an unknown choice for zeros": {"zeros": "ignore"},
        "an unknown metric": {"metrics": ["jsd", "manhattan"]},
        "an unknown convention": {"conventions": "forget"},
        "the sink term without the sink": {"metrics": "aitchison_sink", "conventions": "drop"},
        "scores of minus infinity": {"scores": lost},
        "scores of another shape": {"scores": scores[:, :, 1:]},
        "scores in the second text": {"rows": [rows, rows], "scores": [scores, lost]},
        "queries by position": {"queries": [0, 2]},
        "queries of another length": {"queries": np.ones(6, bool)},
        "no texts": {"rows": []},
        "other heads in the second text": {"rows": [rows, rows[:, :2]]},
        "a list of masks for another number": {"rows": [rows, rows], "sink_mask": [positions(7, 0)] * 3},
        "one matrix": {"rows": rows[0, 0]},
        "five axes": {"rows": rows[None]},
        "sinks of another length": {"sink_mask": np.ones(6, bool)},
        "a mask for each head": {"visible": np.ones((3, 5, 7), bool)},
        "a range too short": {"visible": KeyRange(np.zeros(4, int), np.ones(4, int))},
    }
    for name, change in changes.items():
        yield Case(name, {**given, **change})


def bad_head_cases() -> Iterator[Case]:
    """Calls of `head_distances` that must be refused."""
    for case in bad_distance_cases():
        given = dict(case.arguments)
        given["metric"] = given.pop("metrics", "aitchison")
        given["convention"] = given.pop("conventions", "keep")
        if isinstance(given["metric"], str):
            yield Case(case.name, given)


def bad_clark_cases() -> Iterator[Case]:
    """Calls of `clark2019_distances` that must be refused."""
    rows = _rows(np.random.default_rng(22), (2, 3, 5, 7))
    for name, change in _bad_rows(rows).items():
        yield Case(name, {"rows": change})
    yield Case("queries of another length", {"rows": rows, "queries": np.ones(6, bool)})
    yield Case("a mask of another length", {"rows": rows, "visible": np.ones(6, bool)})


def bad_verdict_cases() -> Iterator[Case]:
    """Calls of `verdict_flips` that must be refused."""
    matrix = np.random.default_rng(24).random((5, 5))
    infinite = matrix.copy()
    infinite[2, 3] = np.inf
    changes: Mapping[str, Mapping[str, Any]] = {
        "not square": {"first": matrix[1:]},
        "another size": {"second": matrix[1:, 1:]},
        "an infinity": {"second": infinite},
        "groups of another length": {"groups": np.zeros(4)},
        "a margin below zero": {"margin": -0.1},
        "a margin of NaN": {"margin": np.nan},
        "words": {"first": [["a"]]},
    }
    for name, change in changes.items():
        yield Case(name, {"first": matrix, "second": matrix, **change})


def _plain() -> Iterator[Case]:
    rng = np.random.default_rng(11)
    for dtype in DTYPES:
        for name, sinks in {**SINKS, "every key": tuple(range(7))}.items():
            yield _case(f"{name}, {dtype}", _rows(rng, (2, 3, 5, 7)), dtype, sinks)
        yield _case(f"one key, {dtype}", _rows(rng, (3, 2, 1)), dtype, ())
        yield _case(f"one head, {dtype}", _rows(rng, (1, 3, 5)), dtype, (1, 2))
        if dtype != "float16":
            yield _case(f"peaked, {dtype}", _rows(rng, (3, 11, 23), spread=4), dtype, (0,))
    yield _case("many keys, float64", _rows(rng, (3, 2, 131)), "float64", (0, 130))
    yield _case("many heads, float64", _rows(rng, (19, 2, 5)), "float64", (0,))
    given = {"rows": _rows(rng, (2, 3, 5, 7)), "sink_mask": positions(7, 0)}
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
    given = {**_case("", _rows(rng, (3, 9, 9)), "float32", ()).arguments, "sink_mask": sinks}
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
    base = _rows(rng, (1, 4, 37))
    for size in (0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.6):
        rows = base * (1 + size * rng.uniform(-1, 1, (3, 4, 37)))
        rows /= rows.sum(axis=-1, keepdims=True)
        yield _case(f"close to {size:g}, float64", rows, "float64", (0,))


def _zeros() -> Iterator[Case]:
    odd = {
        "no mass": [0.0, 0.0, 0.0, 0.0, 0.0],
        "sink only": [1.0, 0.0, 0.0, 0.0, 0.0],
        "no sink mass": [0.0, 0.25, 0.25, 0.5, 0.0],
        "one content key": [0.0, 0.0, 1.0, 0.0, 0.0],
        "thin content": [1.0, 2.0**-14, 2.0**-13, 0.0, 0.0],
        "uneven content": [0.5, 0.5, 2.0**-20, 0.0, 0.0],
        "sum below one": [0.5, 0.25, 0.1240234375, 0.1171875, 0.0],
        "full": [0.5, 0.25, 0.125, 0.0625, 0.0625],
    }
    rows = np.array(list(odd.values()))[:, None]  # each of them a head
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
    rows = _rows(rng, (2, 2, 5, 7)).astype(np.float32)
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


def _bad_rows(rows: Array) -> dict[str, Any]:
    """Rows (2, 3, 5, 7) that no distance is taken of, by what is wrong with them."""
    wrong: dict[str, Any] = {"text instead of rows": [["a", "b"]], "ragged rows": [[0.5, 0.5], [1.0]]}
    for dtype in DTYPES:
        for value in (-0.25, np.nan, np.inf):
            spoiled = rows.astype(dtype)
            spoiled[1, 2, 3, 4] = spoiled[1, 2, 4, 1] = value
            wrong[f"a weight of {value}, {dtype}"] = spoiled
        off = rows.astype(dtype)
        off[0, 1, 2] *= off.dtype.type(1.03125)
        off[1, 0, 3] *= off.dtype.type(0.9375)
        wrong[f"a sum off, {dtype}"] = off
    return wrong


def _case(name: str, rows: Array, dtype: str, sinks: Iterable[int]) -> Case:
    return Case(name, {"rows": rows.astype(dtype), "sink_mask": positions(rows.shape[-1], *sinks)})


def _rows(rng: np.random.Generator, shape: tuple[int, ...], spread: float = 1) -> Array:
    weights = np.exp(spread * rng.standard_normal(shape))
    return weights / weights.sum(axis=-1, keepdims=True)


def _matrix(rng: np.random.Generator, kind: str, size: int) -> Array:
    """Distances (head, head), not symmetric, which a verdict does not ask for."""
    matrix = rng.random((size, size))
    if kind == "tied":
        matrix = np.round(matrix, 1)
    elif kind == "nearly tied":  # around the border of what is tied
        matrix = np.round(matrix, 1) * (1 + rng.uniform(-1.5e-12, 1.5e-12, matrix.shape))
    elif kind == "with gaps":
        matrix[rng.random(matrix.shape) < 0.2] = np.nan
    elif kind == "whole numbers":
        matrix = np.round(5 * matrix).astype(np.int64)
    return matrix
