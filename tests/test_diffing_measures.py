"""The diff of the layers: it covers the registry and notices what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from wording import refused

import fastpath
import oracle
from validation import diffing_measures
from validation.diffing_measures import diff_measures
from validation.registry import REGISTRY
from validation.report.document import Check, Table


def split(parts):
    table = next(part for part in parts if isinstance(part, Table))
    (check,) = (part for part in parts if isinstance(part, Check))
    return table, check


def test_the_layers_agree_in_every_measure():
    steps = []
    table, check = split(diff_measures(progress=lambda *step: steps.append(step)))
    assert check.ok, check.found
    records = table.records()
    assert {record["measure"] for record in records} == set(REGISTRY)
    assert {record["dtype"] for record in records} == {"float16", "float32", "float64", "int64"}
    assert all(record["within"] and 0 <= record["used"] <= 1 and record["cases"] for record in records)
    assert steps[-1][1:] == (len(REGISTRY), len(REGISTRY))


def only(monkeypatch, name):
    monkeypatch.setattr(diffing_measures, "REGISTRY", {name: REGISTRY[name]})


def test_a_deviation_is_named_with_its_place_whatever_the_order(monkeypatch):
    only(monkeypatch, "weight_share")
    monkeypatch.setattr(fastpath, "weight_share", lambda **given: oracle.weight_share(**given) + 1e-5)
    for names in (("oracle", "fastpath"), ("fastpath", "oracle")):
        table, check = split(diff_measures(*names))
        assert table.title.startswith("fastpath against oracle")
        assert not check.ok
        assert check.found.startswith("weight_share (no sink, float16) share: outside its bound")
        assert {record["within"] for record in table.records()} == {False}
        float32 = next(record for record in table.records() if record["dtype"] == "float32")
        assert float32["max_absolute"] == pytest.approx(1e-5, rel=1e-6)
        assert float32["used"] == pytest.approx(10, rel=1e-6)


def test_a_measure_that_is_missing_or_raises_is_outside(monkeypatch):
    only(monkeypatch, "weight_share")
    monkeypatch.delattr(fastpath, "weight_share")
    table, check = split(diff_measures())
    assert not check.ok
    assert "MissingImplementation: fastpath has no weight_share" in check.found
    assert {record["within"] for record in table.records()} == {False}


def test_what_cannot_be_measured_stays_in_the_table(monkeypatch):
    only(monkeypatch, "weight_share")
    right, calls = fastpath.weight_share, []

    def once_too_short(**given):
        calls.append(given)
        return right(**given)[..., : None if len(calls) != 2 else 0]

    monkeypatch.setattr(fastpath, "weight_share", once_too_short)
    table, check = split(diff_measures())
    assert not check.ok
    float16 = next(record for record in table.records() if record["dtype"] == "float16")
    assert float16["max_absolute"] is None or np.isnan(float16["max_absolute"])


def test_a_layer_against_itself_and_an_unknown_one_are_refused():
    with refused("layers", "found oracle twice"):
        diff_measures("oracle", "oracle")
    with refused("engine", "'torch'"):
        diff_measures("torch", "oracle")
