"""Rows drawn from a bulk result: which ones, and what is noticed in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from wording import refused

import fastpath
import oracle
from validation.report.document import Check, Note
from validation.table import RowTable, join_tables, tabulate
from validation.verify import Verification, verify

SINKS = np.arange(13) == 0
ALL = np.ones((13, 13), bool)


def text(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    rows = rng.random((2, 3, 13, 13)) + 0.01
    rows = (rows / rows.sum(axis=-1, keepdims=True)).astype(dtype)
    return rows, SINKS, ALL, {"value_norm": rng.uniform(0.1, 9, (2, 3, 13))}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layer", [oracle, fastpath])
def test_a_right_result_holds_and_tells_its_largest_deviation(layer, dtype):
    given = text(dtype=dtype)
    check = verify(tabulate(*given, measures=layer), *given, 20, seed=3)
    assert isinstance(check, Check)
    assert check.ok
    assert check.expected.startswith("20 of 72 rows, drawn with seed 3")
    assert check.found.startswith("largest deviation ")
    assert ("0.0e+00" in check.found) == (layer is oracle)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: replace(table, shares={**table.shares, "attention": table.shares["attention"] + 2e-6}),
        lambda table: replace(table, shares={**table.shares, "value_norm": table.shares["attention"]}),
        lambda table: replace(table, ratios={"value_norm": table.ratios["value_norm"] * (1 + 2e-5)}),
        lambda table: replace(table, ratios={"value_norm": np.full(len(table), np.nan)}),
        lambda table: replace(table, head=(table.head + 1) % 3),
    ],
)
def test_a_wrong_result_does_not_hold(spoil):
    given = text()
    check = verify(spoil(tabulate(*given, measures=fastpath)), *given, 10)
    assert isinstance(check, Check)
    assert not check.ok
    assert check.found.startswith("10 rows outside their bound; text 0, layer ")


def test_one_wrong_row_is_found_when_it_is_drawn():
    given = text()
    table = tabulate(*given)
    wrong = table.shares["attention"].copy()
    wrong[41] += 1e-3
    spoiled = replace(table, shares={**table.shares, "attention": wrong})
    place = [int(getattr(table, name)[41]) for name in ("layer", "head", "query")]
    check = verify(spoiled, *given, 72)
    assert not check.ok
    where = "text 0, layer {}, head {}, query {}".format(*place)
    assert check.found.startswith(f"1 rows outside their bound; {where}, share of attention: outside")
    few = [verify(spoiled, *given, 7, seed=seed).ok for seed in range(40)]
    assert 1 <= few.count(False) <= 12  # 7 of 72 rows: about 4 draws of 40


def places(verification):
    return [drawn.place for drawn in verification._drawn]


def test_the_draw_is_the_seeds_and_covers_all_texts():
    def run(seed):
        verification = Verification(60, seed)
        for number in range(4):
            given = text(number)
            verification.add(tabulate(*given, text=number), *given)
        return verification

    first = places(run(1))
    assert first == places(run(1)) != places(run(2))
    assert len(set(first)) == 60
    counts = [sum(place.startswith(f"text {number},") for place in first) for number in range(4)]
    assert min(counts) >= 5  # 15 expected of each
    assert run(1).part().expected.startswith("60 of 288 rows, drawn with seed 1")


def test_every_row_has_the_same_chance():
    given = text()
    table = tabulate(*given, layers=[0])
    hits = np.zeros(len(table))
    position = {
        (int(layer), int(head), int(query)): row
        for row, (layer, head, query) in enumerate(zip(table.layer, table.head, table.query, strict=True))
    }
    for seed in range(200):
        verification = Verification(6, seed)
        verification.add(table, *given)
        for place in places(verification):
            numbers = [int(part.split()[1]) for part in place.split(", ")[1:4]]
            hits[position[tuple(numbers)]] += 1
    expected = 200 * 6 / len(table)
    assert ((hits - expected) ** 2 / expected).sum() < 2 * len(table)


def test_more_than_there_is_takes_all_and_nothing_claims_nothing():
    given = text()
    assert verify(tabulate(*given), *given, 1000).expected.startswith("72 of 72 rows")
    assert isinstance(verify(join_tables([]), *given, 5), Note)
    assert isinstance(join_tables([]), RowTable)
    with refused("verify", "at least one row", "found 0"):
        Verification(0)
