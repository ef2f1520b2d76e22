from __future__ import annotations

import mpmath
import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import EntropySplit, KeyRange, entropy_split, sink_share

SINK = np.array([True, False, False])
EPS = float(np.finfo(np.float64).eps)


def exact_split(row, sinks) -> tuple[mpmath.mpf, mpmath.mpf, mpmath.mpf]:
    """Total, binary and content of one row by the definition, with digits enough next to 1e-300."""

    def entropy(parts):
        whole = mpmath.fsum(parts)
        return mpmath.fsum(-p / whole * mpmath.log(p / whole) for p in parts if p)

    with mpmath.workdps(700):
        weights = [mpmath.mpf(float(weight)) for weight in row]
        content = [weight for weight, sink in zip(weights, sinks, strict=True) if not sink]
        sink = mpmath.fsum(weight for weight, s in zip(weights, sinks, strict=True) if s)
        mass = mpmath.fsum(content)
        inner = entropy(content) if mass else mpmath.nan
        return entropy([sink, *content]), entropy([sink, mass]), inner


def test_the_worked_example_is_exact_to_1e_15():
    split = entropy_split([[0.9, 0.08, 0.02]], SINK)
    h = -0.9 * np.log(0.9) - 0.1 * np.log(0.1)
    inner = -0.8 * np.log(0.8) - 0.2 * np.log(0.2)
    assert split.total.item() == pytest.approx(0.375123, abs=5e-7)
    assert abs(split.total.item() - (h + 0.1 * inner)) <= 1e-15
    assert abs(split.binary.item() - h) <= 1e-15
    assert abs(split.content.item() - inner) <= 1e-15


def test_a_row_that_is_all_sink_has_entropy_zero_and_no_content():
    split = entropy_split([[1.0, 0.0, 0.0]], SINK)
    assert (split.total.item(), split.binary.item()) == (0, 0)
    assert np.isnan(split.content).all()


@pytest.mark.parametrize(
    ("row", "sinks", "total", "binary", "content"),
    [
        ([0.0, 0.5, 0.5], [1, 0, 0], np.log(2), 0, np.log(2)),  # no sink mass
        ([0.25, 0.75, 0.0], [0, 0, 0], None, 0, -0.25 * np.log(0.25) - 0.75 * np.log(0.75)),  # no sink
        ([0.0, 1.0, 0.0], [1, 0, 0], 0, 0, 0),  # one content key takes everything
        ([0.0, 0.0, 0.0], [1, 0, 0], np.nan, np.nan, np.nan),  # no mass
        ([0.25, 0.25, 0.5], [1, 1, 1], 0, 0, np.nan),  # every key is a sink
        ([0.25, 0.25, 0.5], [1, 1, 0], np.log(2), np.log(2), 0),  # several sinks are one part
        ([1.0], [1], 0, 0, np.nan),
        ([1.0], [0], 0, 0, 0),
    ],
)
def test_odd_rows(row, sinks, total, binary, content):
    split = entropy_split([row], sinks)
    expected = EntropySplit(*(np.array([v]) for v in (content if total is None else total, binary, content)))
    for found, wanted in zip(split, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * EPS)


@pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-13, 1e-17, 1e-200, 5e-324])
@pytest.mark.parametrize("place", ["sink", "content", "both"])
def test_parts_next_to_nothing_keep_their_relative_accuracy(small, place):
    # A rounded 1 - small would lose `small`, and with it most of these entropies.
    row = {
        "sink": [1 - small, small / 3, small * 2 / 3],
        "content": [small / 2, 1 - small, small / 2],
        "both": [1 - small, small, small * small],
    }[place]
    for sinks in (SINK, ~SINK, np.zeros(3, bool)):
        split = entropy_split([row], sinks)
        for found, wanted in zip(split, exact_split(row, sinks), strict=True):
            np.testing.assert_allclose(found.item(), float(wanted), rtol=8 * EPS, atol=1e-307)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_any_dtype_against_700_digits(dtype):
    rows = random_rows(np.random.default_rng(3), 2, 3, 4, 7).astype(dtype)
    sinks = np.arange(7) % 3 == 0
    split = entropy_split(rows, sinks)
    wide = np.longdouble if dtype == "longdouble" else np.float64
    for name, found in split._asdict().items():
        assert found.dtype == wide
        assert found.shape == (2, 3, 4)
        part = EntropySplit._fields.index(name)
        for place in np.ndindex(found.shape):
            wanted = exact_split(rows[place], sinks)[part]
            assert abs(mpmath.mpf(float(found[place])) - wanted) <= 16 * EPS


def test_the_chain_rule_ties_the_parts_to_the_share():
    rows = random_rows(np.random.default_rng(4), 3, 5, 11)
    sinks = np.arange(11) == 0
    split, share = entropy_split(rows, sinks), sink_share(rows, sinks)
    np.testing.assert_allclose(split.total, split.binary + (1 - share) * split.content, rtol=1e-13)
    assert (split.content <= np.log(10) + EPS).all()
    assert (split.binary <= np.log(2) + EPS).all()


def test_what_is_not_visible_is_no_part():
    rows = np.array([[0.5, 0.25, 0.25, 9.0], [0.5, 0.5, np.nan, -1.0]])
    seen = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    split = entropy_split(rows, [1, 0, 0, 0], seen)
    np.testing.assert_allclose(split.content, [np.log(2), 0], atol=EPS)
    by_range = entropy_split(rows, [1, 0, 0, 0], KeyRange([0, 0], [3, 2]))
    for one, other in zip(split, by_range, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_arrays_without_elements(shape):
    for part in entropy_split(np.zeros(shape), np.zeros(shape[-1], bool)):
        assert part.shape == shape[:-1]
        assert np.isnan(part).all()


def test_wrong_input_is_refused_and_input_stays():
    rows = random_rows(np.random.default_rng(5), 2, 4)
    before = rows.copy()
    rows.flags.writeable = False
    entropy_split(rows, np.arange(4) == 0)
    np.testing.assert_array_equal(rows, before)
    with refused("attention", "a sum of 2"):
        entropy_split([[1.0, 1.0]], [1, 0])
    with refused("sink_mask", "shape (3,)"):
        entropy_split(rows, [1, 0, 0])
