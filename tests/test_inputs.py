from __future__ import annotations

import numpy as np
import pytest
from oracle_models import CLS, SEP, UNK, letter_tokenizer, random_model
from tokenizers import Tokenizer, models
from wording import refused

from oracle import InputTypeError
from oracle.inputs import Tokens, check_length, check_mask, check_token_types, read_tokens

torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')

LAST = 60


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=letter_tokenizer(), max_positions=11)


@pytest.fixture(scope="module")
def mute():
    return random_model()


def test_a_text_gets_the_special_tokens_of_its_tokenizer(model):
    read = read_tokens(model, "Ab c!", truncate=False)
    assert read.tokens == ("[CLS]", "a", "##b", "c", "!", "[SEP]")
    assert read.ids.tolist() == [CLS, 4, 31, 6, 57, SEP]
    assert read.ids.dtype == np.int64
    assert read.offsets == ((0, 0), (0, 1), (1, 2), (3, 4), (4, 5), (0, 0))
    assert read.text == "Ab c!"
    assert read.notes == ()


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_text_without_characters_is_its_special_tokens(model, text):
    assert read_tokens(model, text, truncate=False).ids.tolist() == [CLS, SEP]


def test_special_tokens_that_the_writer_typed_are_reported(model):
    read = read_tokens(model, "a [SEP] b", truncate=False)
    assert read.ids.tolist() == [CLS, 4, SEP, 5, SEP]
    assert read.notes == ("the text itself contains [SEP] (token 2); it counts as a special token",)


def test_offsets_count_characters_also_after_an_emoji(model):
    read = read_tokens(model, "😀 b", truncate=False)
    assert read.ids.tolist() == [CLS, UNK, 5, SEP]
    assert read.offsets[1:3] == ((0, 1), (2, 3))


def test_truncation_keeps_the_special_tokens(model):
    read = read_tokens(model, "a b c d e f g h i j k l m", truncate=True)
    assert read.tokens == ("[CLS]", *"abcdefghi", "[SEP]")
    assert read_tokens(model, "a b", truncate=True).tokens == ("[CLS]", "a", "b", "[SEP]")


def test_without_truncation_nothing_is_cut(model):
    assert len(read_tokens(model, "a " * 40, truncate=False).ids) == 42


def test_text_without_a_tokenizer_is_refused(mute):
    with refused("text", "random has no tokenizer", "Pass token ids"):
        read_tokens(mute, "hello", truncate=False)


def test_a_lone_surrogate_is_refused(model):
    with refused("text", "valid Unicode", "surrogates not allowed"):
        read_tokens(model, "a\ud800b", truncate=False)


def test_a_tokenizer_of_another_checkpoint_is_refused():
    other = random_model(vocab_size=7, tokenizer=letter_tokenizer())
    with refused("tokenizer", "ids below 7", "30"):
        read_tokens(other, "a ba", truncate=False)


@pytest.mark.parametrize(
    "ids",
    [
        [3, 0, LAST],
        (3, 0, LAST),
        np.array([3, 0, LAST], np.int32),
        np.array([3, 0, LAST], np.uint8),
        np.array([3, 9, 0, 9, LAST])[::2],
        torch.tensor([3, 0, LAST]),
    ],
)
def test_token_ids_of_any_integer_kind(mute, ids):
    read = read_tokens(mute, ids, truncate=False)
    assert read.ids.tolist() == [3, 0, LAST]
    assert read.ids.dtype == np.int64
    assert read.tokens == ("#3", "#0", f"#{LAST}")
    assert read.text is None
    assert read.offsets is None


def test_token_ids_are_named_by_the_tokenizer_where_there_is_one(model):
    assert read_tokens(model, [CLS, 4, SEP], truncate=False).tokens == ("[CLS]", "a", "[SEP]")


def test_no_token_ids_are_no_tokens(mute):
    for nothing in ([], np.zeros(0, np.int64)):
        read = read_tokens(mute, nothing, truncate=False)
        assert read.ids.shape == (0,)
        assert read.tokens == ()


def test_truncation_of_ids_keeps_the_first_positions(model):
    assert read_tokens(model, np.arange(20), truncate=True).ids.tolist() == list(range(11))


@pytest.mark.parametrize("wrong", [-1, LAST + 1, 10**12])
def test_ids_outside_the_vocabulary_are_refused(mute, wrong):
    with refused("token_ids", "ids from 0 to 60", f"{wrong} at token 1"):
        read_tokens(mute, [4, wrong], truncate=False)


@pytest.mark.parametrize("wrong", [-1, LAST + 1, 10**6])
def test_ids_of_tokens_that_were_read_before_are_checked_alike(mute, wrong):
    with refused("token_ids", "ids from 0 to 60", f"{wrong} at token 1"):
        read_tokens(mute, Tokens(np.array([4, wrong]), ("a", "b")), truncate=False)
    with refused("text_or_token_ids", "(token,)", error=InputTypeError):
        read_tokens(mute, Tokens(np.array([4.5]), ("a",)), truncate=False)
    with refused("tokens", "a spelling for each of 2 ids", "1"):
        read_tokens(mute, Tokens(np.array([4, 5]), ("a",)), truncate=False)


def test_tokens_that_were_read_before_are_cut_like_their_text_or_their_ids(model):
    text = "a b c d e f g h i j k l m"
    for given in (text, np.arange(20)):
        cut, whole = (read_tokens(model, given, truncate) for truncate in (True, False))
        again = read_tokens(model, whole, truncate=True)
        assert again.ids.tolist() == cut.ids.tolist()
        assert again.tokens == cut.tokens
        kept = read_tokens(model, cut, truncate=True)
        assert (kept.ids.tolist(), kept[1:]) == (cut.ids.tolist(), cut[1:])


@pytest.mark.parametrize("given", [[[1, 2]], 7, [1.0, 2.0], np.array([True])])
def test_ids_of_another_kind_or_shape_are_type_errors(mute, given):
    with refused("text_or_token_ids", "(token,)", error=InputTypeError):
        read_tokens(mute, given, truncate=False)


def test_several_texts_at_once_are_a_type_error(model):
    with refused("text_or_token_ids", "one text at a time", error=InputTypeError):
        read_tokens(model, ["a b", "c"], truncate=False)


@pytest.mark.parametrize("given", [None, b"hello", {"a": 1}])
def test_what_is_neither_text_nor_ids_is_a_type_error(mute, given):
    with refused("token_ids", error=InputTypeError):
        read_tokens(mute, given, truncate=False)


def test_masks():
    assert check_mask(None, 3).tolist() == [True] * 3
    for given in ([0, 1, 1], [False, True, True], np.array([0.0, 1.0, 1.0]), torch.tensor([0, 1, 1])):
        mask = check_mask(given, 3)
        assert mask.dtype == bool
        assert mask.tolist() == [False, True, True]


@pytest.mark.parametrize("given", [[1, 1], [1, 1, 2], [[1, 1, 1]], [1, np.nan, 1], [-1, 0, 1]])
def test_other_masks_are_refused(given):
    with refused("mask", "each of 3 tokens"):
        check_mask(given, 3)


def test_token_types(mute):
    assert check_token_types(mute, None, 2).tolist() == [0, 0]
    assert check_token_types(mute, [2, 0], 2).tolist() == [2, 0]
    assert check_token_types(mute, np.zeros(0, int), 0).shape == (0,)


@pytest.mark.parametrize("given", [[0], [0, 3], [-1, 0], [0.0, 1.0], [[0, 1]]])
def test_other_token_types_are_refused(mute, given):
    with refused("token_types", "an integer below 3 for each of 2 tokens"):
        check_token_types(mute, given, 2)


def test_a_text_longer_than_the_positions_is_refused_with_both_lengths(model):
    check_length(model, 11)
    with refused("text", "at most 11 tokens", "12 tokens", "truncate"):
        check_length(model, 12)


def test_a_tokenizer_that_cannot_read_the_text_is_an_input_error():
    tokenizer = Tokenizer(models.WordPiece({"a": 0, "b": 1}, unk_token="[UNK]"))
    model = random_model(tokenizer=tokenizer)
    for truncate in (False, True):
        assert read_tokens(model, "a", truncate).ids.tolist() == [0]
        with refused("tokenizer", "the tokenizer of random", "UNK", "belongs to this checkpoint"):
            read_tokens(model, "a donkey", truncate)


def test_truncation_needs_room_for_the_special_tokens():
    tiny = random_model(tokenizer=letter_tokenizer(), max_positions=1)
    with refused("truncate", "(1 more)", "1, the positions of random"):
        read_tokens(tiny, "a b", truncate=True)
    pair = random_model(tokenizer=letter_tokenizer(), max_positions=2)
    assert read_tokens(pair, "a b", truncate=True).tokens == ("[CLS]", "[SEP]")
