"""Which layer measures, and when its compilation is announced."""

from __future__ import annotations

import numba
import pytest
from wording import refused

import fastpath
import oracle
from validation import engines
from validation.engines import load_engine


@pytest.fixture(autouse=True)
def _nobody_listens_afterwards():
    yield
    engines._telling.clear()


def test_the_layers_by_name():
    assert load_engine("oracle") is oracle
    assert load_engine("fastpath") is fastpath
    with refused("engine", "oracle or fastpath", "'torch'"):
        load_engine("torch")


def test_a_real_compilation_is_told_once_and_a_ready_function_is_not():
    said = []
    load_engine("fastpath", lambda: said.append("compiling"))
    numba.njit(lambda x: x + 1)(1)
    numba.njit(lambda x: x + 2)(1)
    assert said == ["compiling"]
    load_engine("fastpath", lambda: said.append("again"))
    ready = numba.njit(lambda x: x + 3)
    ready(1)
    assert said == ["compiling", "again"]
    load_engine("fastpath", lambda: said.append("not this time"))
    ready(2)
    assert said == ["compiling", "again"]


def test_the_oracle_compiles_nothing():
    said = []
    load_engine("oracle", lambda: said.append("compiling"))
    numba.njit(lambda x: x + 4)(1)
    assert said == []
