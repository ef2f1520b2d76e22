"""Numbers in words: no rounding may claim none or all."""

import pytest

from validation.wording import counted, percent


@pytest.mark.parametrize(
    ("share", "form", "text"),
    [
        (0, ".1%", "0.0%"),
        (1 / 12_744, ".1%", "<0.1%"),
        (0.00049, ".1%", "<0.1%"),
        (0.0006, ".1%", "0.1%"),
        (0.459, ".1%", "45.9%"),
        (0.9994, ".1%", "99.9%"),
        (0.99999998, ".1%", ">99.9%"),
        (1, ".1%", "100.0%"),
        (0.004, ".0%", "<1%"),
        (0.996, ".0%", ">99%"),
        (1.5, ".1%", "150.0%"),
        (float("nan"), ".1%", "–"),
    ],
)
def test_percentages(share, form, text):
    assert percent(share, form) == text


def test_counts_with_their_noun():
    assert [counted(n, "text") for n in (0, 1, 2, 1_200)] == ["0 texts", "1 text", "2 texts", "1,200 texts"]
    assert counted(2, "entry", "entries") == "2 entries"
