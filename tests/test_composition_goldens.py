"""Every compositional measure against 50 digits of mpmath (tests/generate_composition_goldens.py)."""

from __future__ import annotations

import json
from typing import Any

import generate_composition_goldens as goldens
import mpmath
import numpy as np
import pytest

from oracle import (
    AitchisonSplit,
    aitchison_split,
    aitchison_split_from_scores,
    clr,
    entropy_change,
    entropy_change_from_scores,
    entropy_split,
    entropy_split_from_scores,
    row_distances,
)

CASES = json.loads(goldens.FILE.read_text(encoding="utf-8"))
ROWS = [case for case in CASES if not case.get("scores")]
SCORES = [case for case in CASES if case.get("scores")]
SQUARES = ("cosine", "jsd", "aitchison", "aitchison_sink")  # they grow with the square of the difference
DTYPES = ("float64", "longdouble")
by_name = {"ids": lambda value: value["name"] if isinstance(value, dict) else str(value)}


def sides(case: dict[str, Any], dtype: str) -> list[np.ndarray]:
    """x and y as one row each, exactly the doubles of the file."""
    return [np.array([[float.fromhex(part) for part in case[side]]], dtype=dtype) for side in "xy"]


def masks(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(case["sinks"], bool), np.array(case.get("visible", [1] * len(case["x"])), bool)


def off(found: Any, wanted: str) -> float:
    """How far a number is from its golden, taken with all its digits."""
    with mpmath.workdps(60):
        found = np.longdouble(found)
        high = float(found)
        return abs(
            float(mpmath.mpf(high) + mpmath.mpf(float(found - np.longdouble(high))) - mpmath.mpf(wanted))
        )


def bound(metric: str, case: dict[str, Any], convention: str, wanted: float, eps: float) -> float:
    """Rounding of the measure, and that of closing the rows, which moves a part by 3 eps of itself.

    A row that sums to exactly one is not moved by closing it; closing its content does round.
    """
    moved = 0.0 if case.get("exact") and convention == "keep" and metric != "entropy" else 8 * eps
    if metric == "entropy":
        return 8 * eps * (1 + np.log(len(case["x"])))
    if metric.startswith("aitchison"):
        return 32 * eps * wanted + moved * np.sqrt(len(case["x"]) * wanted) + moved**2
    return 32 * eps * wanted + (moved * np.sqrt(wanted) + moved**2 if metric in SQUARES else moved)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ROWS, **by_name)
def test_row_distances(case, dtype):
    x, y = sides(case, dtype)
    sinks, seen = masks(case)
    eps = float(np.finfo(x.dtype).eps)
    names = [name for name in case["values"] if "/" in name]
    assert len(names) >= 12
    for name in names:
        metric, convention = name.split("/")
        zeros = {"zeros": "replace", "delta": case["delta"]} if "delta" in case else {}
        found = row_distances(x, y, sinks, metric, convention, seen, **zeros)
        wanted = case["values"][name]
        assert found.dtype == x.dtype
        assert off(found[0], wanted) <= bound(metric, case, convention, float(wanted), eps), name
        assert row_distances(y, x, sinks, metric, convention, seen, **zeros) == found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ROWS, **by_name)
def test_splits_of_rows(case, dtype):
    x, y = sides(case, dtype)
    sinks, seen = masks(case)
    eps = float(np.finfo(x.dtype).eps)
    values, tolerance = case["values"], 8 * eps * (1 + np.log(len(sinks)))
    for name, split in (
        ("entropy_split", entropy_split(x, sinks, seen)),
        ("entropy_change", entropy_change(x, y, sinks, seen)),
    ):
        for part, wanted in zip(split, values.get(name, ()), strict="delta" not in case):
            assert off(part[0], wanted) <= tolerance, name
    if "clr" in values and "delta" not in case:
        content = ~sinks & seen
        kept = np.concatenate([x[:, sinks & seen].sum(axis=-1, keepdims=True), x[:, content]], axis=-1)
        for part, wanted in zip(clr(kept[:, int(not (sinks & seen).any()) :])[0], values["clr"], strict=True):
            assert off(part, wanted) <= 4 * eps * (8 + abs(float(wanted)))
    if "aitchison/keep" in values:
        zeros = {"zeros": "replace", "delta": case["delta"]} if "delta" in case else {}
        split = aitchison_split(x, y, sinks, seen, **zeros)
        check_split(split, case, eps, 8 * eps if not case.get("exact") else 0)


def check_split(split: AitchisonSplit, case: dict[str, Any], eps: float, moved: float) -> None:
    for part, name in zip(split, ("aitchison/keep", "aitchison_sink/keep", "aitchison/drop"), strict=True):
        wanted = case["values"][name]
        value = float(wanted)
        # The sink term of two close rows is a difference of means over all parts: it errs as the total does.
        whole = float(case["values"]["aitchison/keep"])
        assert off(part[0], wanted) <= 32 * eps * whole + moved * np.sqrt(len(case["x"]) * whole) + moved**2
        assert part[0] >= 0
        assert value >= 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", SCORES, **by_name)
def test_splits_of_scores(case, dtype):
    x, y = sides(case, dtype)
    sinks, seen = masks(case)
    eps = float(np.finfo(x.dtype).eps)
    check_split(aitchison_split_from_scores(x, y, sinks, seen), case, eps, 0)
    split = entropy_split_from_scores(x, sinks, seen)
    for part, wanted in zip(split, case["values"]["entropy_split"], strict=True):
        assert part.dtype == x.dtype
        assert off(part[0], wanted) <= 16 * eps * (1 + np.log(len(sinks)))
    change = entropy_change_from_scores(x, y, sinks, seen)
    for part, wanted in zip(change, case["values"]["entropy_change"], strict=True):
        assert part.dtype == x.dtype
        assert off(part[0], wanted) <= 16 * eps * (1 + np.log(len(sinks)))


def test_the_file_is_what_the_generator_writes():
    made = goldens.cases()
    assert [case["name"] for case in made] == [case["name"] for case in CASES]
    for case, stored in list(zip(made, CASES, strict=True))[:: len(CASES) // 7]:
        assert [part.hex() for part in case["x"]] == stored["x"]
        visible = case.get("visible", [1] * len(case["x"]))
        if case.get("scores"):
            values = goldens.score_measures(case["x"], case["y"], case["sinks"], visible)
        else:
            values = goldens.measures(case["x"], case["y"], case["sinks"], visible, case.get("delta"))
        name = "aitchison/keep" if "aitchison/keep" in values else "jsd/keep"
        assert mpmath.nstr(values[name], goldens.DIGITS) == stored["values"][name]


def test_a_golden_that_is_off_by_an_ulp_or_two_is_seen():
    assert off(0.1, "0.1") <= 2**-54
    assert off(np.nextafter(0.1, 1), "0.1") > 2**-57
    assert (
        off(np.longdouble(1) / 3, "0.33333333333333333333333333333333333333333333333333")
        <= np.finfo(np.longdouble).eps
    )
