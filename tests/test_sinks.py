from __future__ import annotations

import numpy as np
import pytest
from wording import refused

from oracle import choose_sinks

TOKENS = ("[PAD]", "[CLS]", "cat", "[SEP]", "cat", "[SEP]")
IDS = np.array([0, 2, 9, 3, 9, 3])
REAL = np.array([False, True, True, True, True, True])


def choose(sink, *, mask=REAL, sink_ids=(2, 3)):
    chosen = choose_sinks(sink, TOKENS, IDS, mask, sink_ids)
    assert chosen.dtype == bool
    assert chosen.shape == (6,)
    return np.flatnonzero(chosen).tolist()


@pytest.mark.parametrize(
    ("sink", "places"),
    [
        ("special", [1, 3, 5]),
        ("first", [1]),
        ("none", []),
        ("token:cat", [2, 4]),
        ("token:[SEP]", [3, 5]),
        ("2", [2]),
        ("2, 5", [2, 5]),
        ([2, 5], [2, 5]),
        ((2, 2), [2]),
        (np.array([5, 2], np.uint8), [2, 5]),
        ([], []),
        ([False, False, True, False, False, True], [2, 5]),
        (np.arange(6) == 4, [4]),
    ],
)
def test_every_way_to_name_the_sinks(sink, places):
    assert choose(sink) == places


def test_padding_is_never_a_sink():
    assert choose(np.ones(6, bool)) == [1, 2, 3, 4, 5]
    assert choose("special", sink_ids=(0,)) == []
    assert choose("first", mask=np.zeros(6, bool)) == []


@pytest.mark.parametrize("sink", ["0,1", [0], np.array([1, 0])])
def test_a_position_that_is_padding_is_refused(sink):
    with refused("sink", "position 0, which is padding; the first real token is 1"):
        choose(sink)
    with refused("sink", "there is no real token"):
        choose(sink, mask=np.zeros(6, bool))


def test_a_mask_that_is_given_is_not_changed():
    given = np.ones(6, bool)
    choose(given)
    assert given.all()


def test_special_needs_a_model_that_names_its_special_tokens():
    with refused("sink", "names its special tokens", "none named"):
        choose("special", sink_ids=())


@pytest.mark.parametrize("sink", ["token:dog", "token:", "token:[PAD]"])
def test_a_token_that_does_not_occur_is_refused(sink):
    with refused("sink", repr(sink.removeprefix("token:"))):
        choose(sink)


@pytest.mark.parametrize("sink", ["6", "-1", "0,17", [6], [-1], np.array([0, 100])])
def test_positions_outside_the_text_are_refused(sink):
    with refused("sink", "positions from 0 to 5"):
        choose(sink)


@pytest.mark.parametrize("sink", ["", "cls", "1;2", "1.5", "special,first"])
def test_words_that_mean_nothing_are_refused(sink):
    with refused("sink", "special, first, none, token:TEXT or positions", repr(sink)):
        choose(sink)


@pytest.mark.parametrize("sink", [1.5, [1.5], [[1, 2]], 3, None, [True, False]])
def test_sinks_of_another_kind_or_shape_are_refused(sink):
    with refused("sink"):
        choose(sink)


def test_a_text_without_tokens_has_no_sink():
    nothing = np.zeros(0, bool)
    for sink in ("special", "first", "none", [], nothing):
        assert choose_sinks(sink, (), np.zeros(0, np.int64), nothing, (2,)).shape == (0,)
