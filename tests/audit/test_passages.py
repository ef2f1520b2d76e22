"""The bundled passages are twenty, of the promised length, and no two alike."""

from itertools import combinations

import oracle
from validation.audit.passages import load_passages


def test_there_are_twenty_and_each_fills_its_line():
    passages = load_passages()
    assert len(passages) == 20
    assert all(text == text.strip() and "  " not in text for text in passages)
    assert all(text.isprintable() for text in passages)


def test_each_has_100_to_130_word_pieces(minilm):
    lengths = [len(minilm.tokenizer.encode(text).ids) for text in load_passages()]
    assert min(lengths) >= 100
    assert max(lengths) <= 130


def test_no_word_is_unknown_to_the_bundled_model(minilm):
    assert not any("[UNK]" in minilm.tokenizer.encode(text).tokens for text in load_passages())


def test_no_two_passages_share_much():
    words = [{word.lower() for word in text.split() if len(word) > 5} for text in load_passages()]
    assert all(len(a & b) <= min(len(a), len(b)) / 5 for a, b in combinations(words, 2))


def test_a_pass_over_one_of_them_sees_all_of_it(minilm):
    text = load_passages()[7]
    trace = oracle.forward(minilm, text)
    assert len(trace.tokens) == len(minilm.tokenizer.encode(text).ids)
