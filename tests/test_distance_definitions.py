"""The loops that judge the measures, held against numbers that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from validation import distance_definitions as distances
from validation import verdict_definitions as verdicts

A, B, C = (np.array([row]) for row in ([0.9, 0.08, 0.02], [0.9, 0.02, 0.08], [0.5, 0.4, 0.1]))
SINK = np.array([True, False, False])


@pytest.mark.parametrize(
    ("metric", "convention", "to_b", "to_c"),
    [
        ("jsd", "keep", 0.01927, 0.10175),
        ("jsd", "drop", 0.19274, 0.0),
        ("l1", "keep", 0.12, 0.8),
        ("l1", "drop", 1.2, 0.0),
        ("hellinger", "drop", np.sqrt(1 - 2 * np.sqrt(0.16)), 0.0),
        ("cosine", "drop", 1 - 0.32 / 0.68, 0.0),
        ("entropy", "keep", 0.0, 0.943348 - 0.375123),
        ("entropy", "drop", 0.0, 0.0),
        ("aitchison", "keep", 3.843624, 3.218531),
        ("aitchison", "drop", 3.843624, 0.0),
        ("aitchison_sink", "keep", 0.0, 3.218531),
    ],
)
def test_three_rows_by_hand(metric: str, convention: str, to_b: float, to_c: float) -> None:
    for other, wanted in ((B, to_b), (C, to_c)):
        found = distances.row_distances(A, other, SINK, metric, convention)
        assert found[0] == pytest.approx(wanted, abs=6e-6)


def test_two_sink_keys_make_one_part_and_hidden_keys_none() -> None:
    row, sinks, seen = (
        [0.2, 0.3, 0.1, 9.0, 0.4],
        [True, False, True, False, False],
        [True] * 3 + [False, True],
    )
    assert distances.parts_of(row, sinks, seen, "keep") == pytest.approx([0.3, 0.3, 0.4])
    assert distances.parts_of(row, sinks, seen, "drop") == pytest.approx([3 / 7, 4 / 7])
    assert distances.parts_of([0.0, 0.0], [True, False], [True, True], "keep") == []
    assert distances.parts_of([1.0, 0.0], [True, False], [True, True], "drop") == []


def test_entropy_and_its_channels_by_hand() -> None:
    total, binary, content = distances.entropy_split(A, SINK)
    assert total[0] == pytest.approx(0.375123, abs=1e-6)
    assert binary[0] == pytest.approx(-0.9 * np.log(0.9) - 0.1 * np.log(0.1))
    assert content[0] == pytest.approx(-0.8 * np.log(0.8) - 0.2 * np.log(0.2))
    change, by_sink, by_content = distances.entropy_change(A, C, SINK)
    assert by_content[0] == pytest.approx(0, abs=1e-15)  # the content is the same
    assert by_sink[0] == pytest.approx(change[0], abs=1e-15)
    alone = distances.entropy_split(np.array([[1.0, 0.0, 0.0]]), SINK)
    assert [part[0] for part in alone[:2]] == [0, 0]
    assert np.isnan(alone[2][0])


def test_zeros_replaced_by_hand() -> None:
    found = distances.replaced_zeros([[0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]], np.zeros(4, bool), 1 / 16)
    assert np.isnan(found[0]).all()
    assert found[1].tolist() == [0, 0.0625, 0.4375, 0.4375, 0.0625]


def test_triples_by_hand() -> None:
    """From head 0, heads 1 and 2 change places and head 3 is tied with 2 once; the rest is all ties."""
    first, second = np.ones((4, 4)), np.ones((4, 4))
    first[0, 1:] = 1, 2, 3
    second[0, 1:] = 2, 1, 1
    flips = verdicts.verdict_flips(first, second)
    assert flips[2:] == (2, 12, 10, 0)
    assert flips.rate == pytest.approx(2 / 12)
    assert flips.per_anchor.tolist() == pytest.approx([2 / 3, 0, 0, 0])
    assert verdicts.verdict_flips(first, second, margin=0.5)[2:] == (1, 1, 0, 0)
    assert verdicts.verdict_flips(first, second, groups=[0, 0, 1, 0])[2:] == (1, 3, 2, 0)
    second[0, 3] = np.nan
    assert verdicts.verdict_flips(first, second)[2:] == (1, 10, 9, 2)


def test_arccos_by_hand() -> None:
    first, second = np.zeros((4, 4)), np.zeros((4, 4))
    first[0, 1:], second[0, 1:] = (1, 2, 3), (3, 2, 1)
    first[1, [0, 2, 3]], second[1, [0, 2, 3]] = (1, 2, 3), (2, 1, 3)  # rho = 1/2
    rates = verdicts.gaussian_flip_rate(first, second)
    assert rates[:2] == pytest.approx([1, 1 / 3])
    assert np.isnan(rates[2:]).all()


def test_the_preset_by_hand() -> None:
    """Two heads whose rows lie on other keys: n = 2, so that each row is 0.9995 and 0.0005."""
    rows = [np.array([[[1.0, 0.0]], [[0.0, 1.0]]])]
    found = distances.clark2019_distances(rows, [np.ones((1, 2), bool)], [np.ones(1, bool)])
    wanted = np.log(2) + 0.9995 * np.log(0.9995) + 0.0005 * np.log(0.0005)
    assert found == pytest.approx(np.array([[0, wanted], [wanted, 0]]))
