"""Layers and weightings as users write them."""

import pytest

from oracle import InputError
from validation.choices import ALL_WEIGHTINGS, parse_layers, parse_weightings


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("0,3-5", (0, 3, 4, 5)),
        (" 5 , 1-2 ", (1, 2, 5)),
        ("2,2,1-3", (1, 2, 3)),
        ("4-4", (4,)),
        ("all", (0, 1, 2, 3, 4, 5)),
        (None, (0, 1, 2, 3, 4, 5)),
        ([5, 0], (0, 5)),
        (range(2), (0, 1)),
    ],
)
def test_layers(text, layers):
    assert parse_layers(text, 6) == layers


@pytest.mark.parametrize(
    "text",
    ["", ",", "a", "1,", "-1", "6", "0-6", "5-3", "1-", "-", "1--2", "1.5", "0-99999999999", [], [-1], [6]],
)
def test_wrong_layers_are_refused_in_one_line(text):
    with pytest.raises(InputError) as caught:
        parse_layers(text, 6)
    message = str(caught.value)
    assert message.startswith("layers: expected layers from 0 to 5, such as 0,4-5; found ")
    assert repr(text) in message
    assert "\n" not in message


def test_weightings():
    assert parse_weightings(None) == parse_weightings("all") == ALL_WEIGHTINGS
    assert parse_weightings("value_norm, attention") == ("attention", "value_norm")
    assert parse_weightings(["head_summed_norm"]) == ("head_summed_norm",)
    assert parse_weightings("all", ("attention",)) == ("attention",)


@pytest.mark.parametrize("text", ["", "norm", "attention,,value_norm", []])
def test_wrong_weightings_are_refused(text):
    with pytest.raises(InputError, match="weighting: expected names from attention, value_norm"):
        parse_weightings(text)


def test_a_weighting_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="expected names from attention; found 'value_norm'"):
        parse_weightings("value_norm", ("attention",))
