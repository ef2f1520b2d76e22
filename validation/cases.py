"""Seeded inputs for the measures of rows: plain, masked, and the odd rows that people bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import KeyRange
from validation.random_rows import closed_rows

__all__ = [
    "DTYPES",
    "ODD_ROWS",
    "SINKS",
    "Case",
    "bad_row_cases",
    "positions",
    "row_cases",
    "texts_of",
    "weight_cases",
]

Array = NDArray[Any]

DTYPES = ("float16", "float32", "float64")
SINKS: Mapping[str, tuple[int, ...]] = {"no sink": (), "one sink": (0,), "several sinks": (0, 3, 6)}
ODD_ROWS: Mapping[str, tuple[float, ...]] = {
    "no mass": (0.0, 0.0, 0.0, 0.0, 0.0),
    "sink only": (1.0, 0.0, 0.0, 0.0, 0.0),
    "no sink mass": (0.0, 0.25, 0.25, 0.5, 0.0),
    "one content key": (0.0, 0.0, 1.0, 0.0, 0.0),
    "thin content": (1.0, 2.0**-14, 2.0**-13, 0.0, 0.0),
    "uneven content": (0.5, 0.5, 2.0**-20, 0.0, 0.0),
    "sum below one": (0.5, 0.25, 0.1240234375, 0.1171875, 0.0),
}
"""Rows of five keys whose sink is the first, exact in float16."""


class Case(NamedTuple):
    """One call: its arguments by name, the first of them the array whose dtype sets the precision."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the first argument; of its first text, where it is a list of texts."""
        return np.asarray(texts_of(self.arguments)[0]).dtype


def texts_of(arguments: Mapping[str, Any]) -> list[Any]:
    """The first argument of a call as a list of texts."""
    first = next(iter(arguments.values()))
    return list(first) if isinstance(first, (list, tuple)) else [first]


def positions(n_keys: int, *places: int) -> NDArray[np.bool_]:
    """A mask over keys, (key,), that is true at `places`."""
    return np.isin(np.arange(n_keys), places)


def row_cases() -> Iterator[Case]:
    """Attention rows with sinks, a norm and what is visible: plain, masked, odd, and odd in memory."""
    yield from _plain_rows()
    yield from _masked_rows()
    yield from _odd_rows()
    yield from _odd_memory()


def weight_cases() -> Iterator[Case]:
    """Weights that need not sum to one: those of `row_cases` rescaled, and rows of nothing but NaN."""
    for number, case in enumerate(row_cases()):
        given = dict(case.arguments)
        rows = given.pop("attention")
        given.pop("norm", None)
        yield Case(case.name, {"weights": rows * rows.dtype.type((0.125, 3, 40)[number % 3]), **given})
    for dtype in DTYPES:
        rows = closed_rows(np.random.default_rng(7), (3, 5, 7)).astype(dtype)
        rows[1, 2:4] = np.nan
        yield Case(f"rows of NaN, {dtype}", {"weights": rows, "sink_mask": positions(7, 0)})
    for size in (1e-30, 1e30):
        rows = (closed_rows(np.random.default_rng(8), (3, 5, 7)) * size).astype(np.float32)
        yield Case(f"weights of {size:g}, float32", {"weights": rows, "sink_mask": positions(7, 0, 6)})
    for dtype in DTYPES:  # alone they are numbers of that dtype, their sum is none
        rows = np.full((2, 5, 9), np.finfo(dtype).max, dtype)
        rows[0, :, 3:] /= np.arange(1, 6, dtype=dtype)[:, None]
        rows[1, 2], rows[1, 3] = 0.25, np.nan
        given = {"weights": rows, "sink_mask": positions(9, 0, 4)}
        yield Case(f"a sum too large, {dtype}", given)
        yield Case(f"a masked sum too large, {dtype}", {**given, "visible": np.arange(9) % 3 != 1})


def bad_row_cases(argument: str = "attention") -> Iterator[Case]:
    """Calls that must be refused; `argument` names the rows, "attention" or "weights"."""
    good = closed_rows(np.random.default_rng(5), (2, 3, 5, 7))
    sinks = positions(7, 0)
    for dtype in DTYPES:
        for value in (-0.25, np.nan, np.inf, -np.inf):
            rows = good.astype(dtype)
            rows[1, 2, 3, 4] = rows[1, 2, 4, 1] = value
            yield Case(f"a weight of {value}, {dtype}", {argument: rows, "sink_mask": sinks})
        if argument == "attention":
            rows = good.astype(dtype)
            rows[0, 1, 2] *= rows.dtype.type(1.03125)
            rows[1, 0, 3] *= rows.dtype.type(0.9375)
            yield Case(f"a sum off, {dtype}", {argument: rows, "sink_mask": sinks})
    visible = np.ones((5, 7), bool)
    visible[:, 2] = False
    masked = good.copy()
    masked[0, 0, 1, 3] = -0.5
    masked[..., 2] = np.nan
    yield Case("a negative weight behind a mask", {argument: masked, "sink_mask": sinks, "visible": visible})
    changes: Mapping[str, Mapping[str, Any]] = {
        "a single row": {argument: good[0, 0, 0]},
        "text instead of rows": {argument: [["a", "b"]]},
        "ragged rows": {argument: [[0.5, 0.5], [1.0]]},
        "sinks by position": {"sink_mask": [0]},
        "sinks by positions": {"sink_mask": [0, 4]},
        "sinks of another length": {"sink_mask": np.ones(6, bool)},
        "no sinks at all": {"sink_mask": None},
        "a mask of another shape": {"visible": np.ones((3, 7), bool)},
        "a mask of fractions": {"visible": np.full(7, 0.5)},
        "a range too short": {"visible": KeyRange(np.zeros(4, int), np.ones(4, int))},
        "a range below zero": {"visible": KeyRange(np.full(5, -1), np.ones(5, int))},
        "a range past the keys": {"visible": KeyRange(np.zeros(5, int), np.full(5, 8))},
        "a range of fractions": {"visible": KeyRange(*np.array([[0.0] * 5, [7.0] * 5]))},
    }
    for name, change in changes.items():
        yield Case(name, {argument: good, "sink_mask": sinks, **change})
    yield from _several_wrong(argument, good, changes)
    if argument == "attention":
        norms = {"of another length": np.ones((2, 3, 6)), "of other heads": np.ones((2, 5, 7))}
        for name, value in {"below zero": -1.0, "of NaN": np.nan, "of infinity": np.inf}.items():
            norms[name] = np.ones((2, 3, 7))
            norms[name][1, 2, 3] = value
        for name, norm in norms.items():
            yield Case(f"norms {name}", {argument: good, "sink_mask": sinks, "norm": norm})


def _several_wrong(argument: str, good: Array, changes: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    """Calls with more than one wrong argument: both layers have to blame the same one."""
    wrong = good.copy()
    wrong[0, 1, 2, 3] = np.nan
    off = good.copy()
    off[1, 0, 3] *= 1.5
    sinks, all_seen = positions(7, 0), np.ones((5, 7), bool)
    given: dict[str, Any]
    for place, rows in (("a weight of NaN", wrong), ("a sum off", off)):
        for name in ("sinks by position", "a mask of another shape", "a range past the keys"):
            yield Case(f"{place} and {name}", {argument: rows, "sink_mask": sinks, **changes[name]})
        if argument == "attention":
            given = {argument: rows, "sink_mask": sinks, "visible": all_seen}
            yield Case(f"{place} and norms of another length", {**given, "norm": np.ones((2, 3, 6))})
            yield Case(f"{place} and norms below zero", {**given, "norm": -np.ones((2, 3, 7))})
    if argument == "attention":
        given = {argument: good, "sink_mask": [0], "norm": np.ones((2, 3, 6))}
        yield Case("sinks by position and norms of another length", given)
        yield Case("these and a mask of another shape", {**given, "visible": all_seen[:3]})


def _plain_rows() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for dtype in DTYPES:
        for name, sinks in {**SINKS, "every key": tuple(range(7))}.items():
            yield _row_case(f"{name}, {dtype}", closed_rows(rng, (2, 3, 5, 7)), dtype, sinks)
        yield _row_case(f"one key, {dtype}", closed_rows(rng, (2, 3, 1)), dtype, (0,))
        yield _row_case(f"one matrix, {dtype}", closed_rows(rng, (5, 7)), dtype, (1, 2))
        yield _row_case(f"past every block, {dtype}", closed_rows(rng, (2, 3, 1543)), dtype, (0, 700, 1542))
        yield _row_case(f"peaked, {dtype}", closed_rows(rng, (3, 67, 67), spread=6), dtype, (0,))


def _masked_rows() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    causal, real = np.tri(13, dtype=bool), np.arange(13) < 9
    seen = rng.random((13, 13)) < 0.5
    seen[:, 2] = True
    seen[5] = False
    masks: Mapping[str, Any] = {
        "causal": causal,
        "causal range": KeyRange.causal(13),
        "window range": KeyRange.causal(13, 4),
        "window": causal & ~np.tri(13, k=-4, dtype=bool),
        "padding": real[:, None] & real,
        "left padding, causal": causal & ~real[:, None] & ~real,
        "padding over keys": real,
        "padding per text": np.stack([real, ~real])[:, None, None],
        "any range": KeyRange(np.arange(13) // 2, (np.arange(13) * 5) % 14),
        "any mask": seen,
        "a mask per head": rng.random((3, 13, 13)) < 0.7,
        "left padding per text, causal": causal & np.stack([~real, real])[:, None, None],
        "a hole per text": np.stack([np.arange(13) != 4, np.arange(13) != 7])[:, None, None],
        "a stretched mask": np.broadcast_to(causal, (2, 3, 13, 13)),
    }
    for name, visible in masks.items():
        for dtype in DTYPES:
            mask = _as_mask(visible, 13)
            rows = closed_rows(rng, (2, 3, 13, 13), spread=2)
            rows = np.where(mask, rows, 0)
            total = rows.sum(axis=-1, keepdims=True)
            rows = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
            rows[~np.broadcast_to(mask, rows.shape)] = (np.nan, -3.0, 0.0)[len(name) % 3]
            yield _row_case(f"{name}, {dtype}", rows, dtype, (0, 5), visible=visible)
    sinks = np.zeros((13, 13), bool)
    sinks[np.arange(13), np.arange(13) // 2] = True
    for dtype in DTYPES:
        given = dict(_row_case("", closed_rows(rng, (2, 3, 13, 13)), dtype, ()).arguments)
        yield Case(f"sinks per query, {dtype}", {**given, "sink_mask": sinks})
        each = np.stack([positions(13, 0, 8), positions(13, 0, 4, 5)])[:, None, None]
        yield Case(f"sinks per text, {dtype}", {**given, "sink_mask": each})
        some = np.arange(13) < np.array([9, 13])[:, None, None, None]
        rows = np.where(some, given["attention"], 0).astype(np.float64)
        rows = (rows / rows.sum(axis=-1, keepdims=True)).astype(dtype)
        given |= {"attention": rows, "norm": given["norm"][:, :1], "visible": some, "sink_mask": each}
        yield Case(f"padding and sinks per text, {dtype}", given)


def _odd_rows() -> Iterator[Case]:
    rows = np.array([[*ODD_ROWS.values(), (0.5, 0.25, 0.125, 0.0625, 0.0712890625)]])  # and a sum above one
    for dtype in DTYPES:
        for place, sinks in enumerate(((0,), (), (0, 2), (0, 1, 2, 3, 4))):
            yield _row_case(f"odd rows {place}, {dtype}", rows, dtype, sinks)
        for name, norm in {
            "sink": [0.0, 1, 2, 3, 4],
            "content": [1.0, 0, 0, 0, 0],
            "every": [0.0] * 5,
        }.items():
            given = dict(_row_case("", rows, dtype, (0,)).arguments)
            yield Case(f"zero norm of {name}, {dtype}", {**given, "norm": np.array(norm)})
    tiny = np.array([[1.0, 1e-30, 2e-30, 0.0], [1.0, 1e-38, 1e-40, 0.0], [1e-30, 0.5, 0.5, 1e-20]])
    for dtype in ("float32", "float64"):
        yield _row_case(f"tiny weights, {dtype}", tiny, dtype, (0,))
    yield _row_case(
        "smallest normal weights, float64", np.where(tiny < 0.5, tiny * 1e-270, tiny), "float64", (0,)
    )
    for dtype in DTYPES:
        yield _row_case(f"uniform, {dtype}", np.full((2, 520), 1 / 520), dtype, (0,))
        half = np.where(np.arange(520) == 3, 0.5, 0.5 / 519)
        yield _row_case(f"half on the sink, {dtype}", half[None], dtype, (3,))
    for size in (3e-10, 1.2532567e-30, 7.019872e-36, 1.3e-38):  # of what float16 has none
        thin = np.where(np.arange(119) == 0, 1, size)[None]
        for dtype in ("float32", "float64"):
            given = {"attention": thin.astype(dtype), "sink_mask": positions(119, 0)}
            yield Case(f"equal thin content {size:g}, {dtype}", given)
    uneven: Mapping[str, Any] = {
        "one huge norm": [1, 1, 1, 1e60],
        "a huge and two tiny norms": [1e-200, 1e-200, 1, 1e200],
        "tiny norms": [1e-300, 2e-300, 3e-300, 0],
        "a huge norm at another head": [[1, 1, 1, 1], [1, 1, 1, 1e300]],
    }
    for name, norms in uneven.items():
        for dtype in DTYPES:
            causal = np.tri(4) / np.arange(1, 5)[:, None]
            given = dict(_row_case("", np.stack([causal] * 2), dtype, (0,)).arguments)
            yield Case(f"{name}, {dtype}", {**given, "norm": np.array(norms, float)})
    thin = np.array([[1, 1e-30, 1e-30], [1, 2e-40, 3e-40]])
    for dtype in ("float32", "float64"):
        given = {"attention": thin.astype(dtype), "sink_mask": positions(3, 0)}
        yield Case(f"thin weights of tiny norms, {dtype}", {**given, "norm": np.array([1, 2, 3]) * 1e-300})
        yield Case(f"subnormal content, {dtype}", {**given, "norm": np.array([1, 0.1, 0.3])})
    subnormal = np.array([[1.0, 5e-324, 0.0], [5e-324, 1.0, 0.0]])
    given = {"attention": subnormal, "sink_mask": positions(3, 0)}
    yield Case("subnormal weights, float64", {**given, "norm": np.array([3.0, 0.7, 1e-5])})


def _odd_memory() -> Iterator[Case]:
    rng = np.random.default_rng(4)
    for shape in ((0, 5), (5, 0), (2, 0, 3, 3), (0, 2, 3, 3), (2, 3, 4, 0)):
        yield _row_case(f"without elements {shape}", np.zeros(shape), "float32", ())
    for dtype in DTYPES:
        given = dict(_row_case("", closed_rows(rng, (2, 3, 5, 7)), dtype, (0, 6)).arguments)
        rows = given["attention"]
        rows.flags.writeable = False
        forms = {
            "column-major": np.asfortranarray(rows),
            "strided": np.repeat(rows, 2, axis=-1)[..., ::2],
            "backwards": np.ascontiguousarray(rows[..., ::-1])[..., ::-1],
            "broadcast": np.broadcast_to(rows[:1, :1], rows.shape),
        }
        for name, form in forms.items():
            yield Case(f"{name}, {dtype}", {**given, "attention": form})


def _row_case(name: str, rows: Array, dtype: str, sinks: tuple[int, ...], *, visible: Any = None) -> Case:
    """Rows rounded to `dtype`, and norms from 0.1 to 9, one for each key of each head."""
    norm = np.random.default_rng(rows.size).uniform(0.1, 9, (*rows.shape[:-2], rows.shape[-1]))
    given = {"attention": rows.astype(dtype), "sink_mask": positions(rows.shape[-1], *sinks), "norm": norm}
    return Case(name, given if visible is None else {**given, "visible": visible})


def _as_mask(visible: Any, n_keys: int) -> NDArray[np.bool_]:
    if not isinstance(visible, KeyRange):
        return np.asarray(visible)
    keys = np.arange(n_keys)
    return (visible.start[:, None] <= keys) & (keys < visible.stop[:, None])
