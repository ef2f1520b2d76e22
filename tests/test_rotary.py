"""Rotary positions: frequencies by formula, turns as turns of the plane, stretching beside transformers."""

from __future__ import annotations

import cmath
from typing import Any

import mpmath
import numpy as np
import pytest

from oracle.model import Rotary, RotaryScaling
from oracle.rotary import frequencies, rotate, turns

PLAIN = Rotary(500.0, 6)
LLAMA3 = RotaryScaling(4.0, 32.0, 1.0, 4.0)


def test_frequencies_by_formula() -> None:
    found = frequencies(PLAIN)
    with mpmath.workdps(40):
        for pair in range(3):
            expected = mpmath.power(500, -mpmath.mpf(2 * pair) / 6)
            assert float(abs(found[pair] / expected - 1)) < 4e-16
    wide = frequencies(PLAIN, np.longdouble)
    assert wide.dtype == np.longdouble
    np.testing.assert_allclose(wide, found, rtol=1e-15)


def test_entries_turn_as_complex_numbers() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 10))
    places = np.array([0, 3, 1, 7, 1000])
    found = rotate(x, turns(PLAIN, places, np.float64))
    for head, token, pair in np.ndindex(2, 5, 3):
        turned = complex(x[head, token, pair], x[head, token, pair + 3]) * cmath.exp(
            1j * float(places[token]) * float(frequencies(PLAIN)[pair])
        )
        assert found[head, token, pair] == pytest.approx(turned.real, abs=1e-13)
        assert found[head, token, pair + 3] == pytest.approx(turned.imag, abs=1e-13)
    np.testing.assert_array_equal(found[..., 6:], x[..., 6:])
    np.testing.assert_array_equal(found[:, 0], x[:, 0])


def test_products_depend_on_the_distance_alone() -> None:
    rng = np.random.default_rng(1)
    query, key = rng.normal(size=(2, 1, 1, 6))

    def product(at: int, other: int) -> float:
        pair = (rotate(x, turns(PLAIN, np.array([p]), np.float64)) for x, p in ((query, at), (key, other)))
        return float(np.vdot(*pair))

    assert product(17, 5) == pytest.approx(product(1012, 1000), rel=1e-11)
    assert abs(product(17, 5) - product(18, 5)) > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_the_dtype_stays_and_the_input_too(dtype: str) -> None:
    x = np.random.default_rng(2).normal(size=(3, 4, 6)).astype(dtype)
    x.flags.writeable = False
    tables = turns(PLAIN, np.arange(4), dtype)
    assert {table.dtype for table in tables} == {np.dtype(dtype)}
    assert rotate(x, tables).dtype == dtype
    assert rotate(x[:, :0], turns(PLAIN, np.arange(0), dtype)).shape == (3, 0, 6)


def test_angles_in_float32_are_rounded_once() -> None:
    places = np.array([100_003])
    cosine, sine = turns(PLAIN, places, np.float32)
    angles = places * frequencies(PLAIN)
    np.testing.assert_array_equal(cosine[0], np.cos(angles).astype(np.float32))
    np.testing.assert_array_equal(sine[0], np.sin(angles).astype(np.float32))


@pytest.mark.parametrize(
    ("kind", "scaling"),
    [
        ({"rope_type": "linear", "factor": 3.0}, RotaryScaling(3.0)),
        (
            {
                "rope_type": "llama3",
                "factor": 4.0,
                "original_max_position_embeddings": 32,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
            },
            LLAMA3,
        ),
    ],
)
def test_stretched_frequencies_beside_transformers(kind: dict[str, Any], scaling: RotaryScaling) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra 'reference'")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=2, rope_parameters=kind | {"rope_theta": 500.0}
    )
    theirs, factor = ROPE_INIT_FUNCTIONS[kind["rope_type"]](config)
    ours = frequencies(Rotary(500.0, 32, scaling))
    assert factor == 1
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-6)  # theirs is float32


def test_llama3_leaves_short_waves_stretches_long_ones_and_blends_between() -> None:
    plain, found = (frequencies(Rotary(500.0, 32, kind)) for kind in (None, LLAMA3))
    length = 2 * np.pi / plain
    np.testing.assert_array_equal(found[length < 8], plain[length < 8])
    np.testing.assert_allclose(found[length > 32], plain[length > 32] / 4, rtol=1e-15)
    between = (length > 8) & (length < 32)
    assert between.any()
    assert ((found > plain / 4) & (found < plain))[between].all()
