"""The texts of the embedded series follow their own law, and their tokenizer reads them back."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from oracle import Unavailable
from validation.studies.collapse import demo_texts
from validation.studies.collapse.demo_texts import BOS, Backcopy, read_source, tokenizer_files


@pytest.fixture(scope="module")
def backcopy():
    return Backcopy.make()


def test_after_a_trigger_the_character_before_it_is_copied(backcopy):
    ids = backcopy.draw(np.random.default_rng(0), 2000, 32)
    assert ids.shape == (2000, 32)
    assert (ids[:, 0] == 0).all()
    assert ids[:, 1:].min() == 1
    assert ids.max() == 64
    asked = backcopy.triggers[ids[:, 2:-1]]
    assert (ids[:, 3:] == ids[:, 1:-2])[asked].all()
    assert 0.15 < asked.mean() < 0.35


def test_elsewhere_it_follows_the_table(backcopy):
    assert backcopy.chances[:, 0].max() == 0
    np.testing.assert_allclose(backcopy.chances.sum(axis=1), 1)
    ids = backcopy.draw(np.random.default_rng(1), 40_000, 8)
    before, after = ids[:, 2:-1], ids[:, 3:]
    for token in (13, 40):
        follows = after[(before == token)]
        counts = np.bincount(follows, minlength=65) / len(follows)
        assert not backcopy.triggers[token]
        assert np.abs(counts - backcopy.chances[token]).max() < 5 * np.sqrt(0.06 / len(follows))
    first = np.bincount(ids[:, 1], minlength=65) / len(ids)
    assert np.abs(first - backcopy.chances[0]).max() < 0.01


def test_texts_are_the_same_every_time_and_of_the_length_asked_for(backcopy):
    texts = backcopy.held_out(5, 32)
    assert texts == Backcopy.make().held_out(5, 32)
    assert len(set(texts)) == 5
    assert {len(text) for text in texts} == {31}
    drawn = [backcopy.draw(np.random.default_rng(3), 4, 16) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("bos", [True, False])
def test_the_tokenizer_has_a_token_for_each_character(backcopy, bos):
    files = tokenizer_files(backcopy.characters, bos)
    tokenizer = Tokenizer.from_str(files["tokenizer.json"])
    read = tokenizer.encode("ab-_Z9")
    places = [backcopy.characters.index(character) + bos for character in "ab-_Z9"]
    assert read.ids == [0] * bos + places
    assert read.tokens == [BOS] * bos + list("ab-_Z9")
    assert tokenizer.decode(read.ids) == "ab-_Z9"
    assert (BOS in files["tokenizer_config.json"]) == bos


def test_source_text_is_drawn_in_pieces_and_held_out_from_other_modules():
    source = read_source()
    assert set(source.trained_on) <= set(source.characters)
    assert len(source.trained_on) > 500_000
    tokenizer = Tokenizer.from_str(tokenizer_files(source.characters, False)["tokenizer.json"])
    ids = source.draw(np.random.default_rng(0), 3, 50)
    for text in ids.tolist():
        piece = tokenizer.decode(text)
        assert piece in source.trained_on
        assert tokenizer.encode(piece).ids == text
    texts = source.held_out(4, 100)
    assert {len(text) for text in texts} == {100}
    assert not any(text in source.trained_on for text in texts)


def test_a_python_without_source_text_says_so(monkeypatch):
    monkeypatch.setattr(demo_texts, "_HELD_OUT", ("sys",))
    with pytest.raises(Unavailable, match="no source text of its module sys"):
        read_source()
    monkeypatch.setattr(demo_texts, "_HELD_OUT", ("no_such_module_here",))
    with pytest.raises(Unavailable, match="no_such_module_here"):
        read_source()
