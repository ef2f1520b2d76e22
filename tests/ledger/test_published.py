"""Every statement and figure of the sources has a row, and no row has a figure that nobody published."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from validation.claims import read_claims

CLAIMS = {claim.id: claim for claim in read_claims()}
STATEMENTS = tomllib.loads((Path(__file__).parent / "published.toml").read_text())["statements"]


def numbers(claim):
    """All numbers of a claim's figures, counts as they were counted."""
    return [
        number
        for one in claim.figures
        for number in ((one.value,) if one.count is None else (one.count, one.of))
    ]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement["says"])
def test_a_published_statement_has_its_row_with_its_figures(statement):
    left = Counter(map(float, statement["figures"])) - Counter(
        map(float, numbers(CLAIMS[statement["claim"]]))
    )
    assert not left


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_no_row_has_a_statement_or_figure_that_is_not_published(claim):
    stated = [one["figures"] for one in STATEMENTS if one["claim"] == claim.id]
    assert stated
    assert not set(map(float, numbers(claim))) - {float(number) for each in stated for number in each}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_no_rule_has_a_published_figure_typed_into_it(claim):
    """Judges take figures by their key, and findings print them."""
    assert not re.search(r"published \d", claim.rule)
    assert not [one.key for one in claim.figures if f"{100 * one.value:g}%" in claim.rule.split()]


def test_published_counts_are_shares_of_what_they_are_of():
    counted = [one for claim in CLAIMS.values() for one in claim.figures if one.count is not None]
    assert len(counted) == 8
    assert all(one.value == one.count / one.of for one in counted)


def test_the_published_sum_is_wrong_by_the_odds_law():
    """s r / (s r + 1 - s), the reason for a row that fails."""
    share, ratio, said = (
        CLAIMS["arithmetic"].figure(f"claimed_{name}").value for name in ("share", "ratio", "result")
    )
    assert share * ratio / (share * ratio + 1 - share) == pytest.approx(0.919, abs=5e-4)
    assert said == 0.73


def test_no_figure_stands_a_second_time_in_a_study():
    """Studies take published figures from the ledger; these are odd enough to be known by their digits."""
    odd = ("0.199", "0.977", "0.834", "/ 110", "/ 224", "0.0426", "1.324e-6", "1.204e-4", "7.272e-5", "0.971")
    root = Path(__file__).parents[2] / "validation"
    found = [
        (path.name, digits) for path in root.rglob("*.py") for digits in odd if digits in path.read_text()
    ]
    assert not found
