"""What is said about position 0 of a causal model's texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracle_models import random_model
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

from oracle.beginnings import beginning_notes
from oracle.inputs import Tokens, read_tokens
from oracle.model import Model

BOS = 1


def causal(bos_id: int | None = BOS, *, adds: bool = True, tokenizer: bool = True) -> Model:
    """A causal model; its byte-level vocabulary lacks most bytes, its tokenizer adds the BOS or not."""
    letters = {token: index for index, token in enumerate(["<pad>", "<s>", "Ġ", *"abcdefgh"])}
    built = Tokenizer(models.BPE(letters, []))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.add_special_tokens([AddedToken("<s>", normalized=False)])
    if adds:
        built.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", BOS)])
    model = random_model(tokenizer=built if tokenizer else None)
    config = replace(model.config, causal=True, bos_id=bos_id, sink_ids=())
    return replace(model, config=config)


def notes(model: Model, text: Any, real: Any = None) -> tuple[str, ...]:
    read = read_tokens(model, text, False)
    mask = np.ones(len(read.ids), bool) if real is None else np.asarray(real, bool)
    return (*read.notes, *beginning_notes(model, read, mask))


def test_a_bos_that_the_tokenizer_adds_is_said() -> None:
    assert notes(causal(), "a b") == ("position 0 is the BOS <s> (id 1), which the tokenizer adds",)


def test_a_bos_that_the_writer_typed_is_said() -> None:
    assert notes(causal(adds=False), "<s>a") == (
        "the text itself contains <s> (token 0); the model reads it as a BOS",
        "position 0 is the BOS <s> (id 1), which the text begins with",
    )
    assert notes(causal(), [1, 3]) == ("position 0 is the BOS <s> (id 1), which the text begins with",)


def test_no_bos_is_a_warning() -> None:
    expected = "WARNING: position 0 is not the BOS, which would be <s> (id 1): the tokenizer adds none"
    assert notes(causal(adds=False), "a b") == (expected,)
    expected = "WARNING: position 0 is not the BOS, which would be <s> (id 1): the ids begin with none"
    assert notes(causal(), [3, 4]) == (expected,)
    expected = "WARNING: position 0 is not the BOS, which would be id 1: the ids begin with none"
    assert notes(causal(tokenizer=False), [3, 4]) == (expected,)


def test_two_bos_are_a_warning() -> None:
    said = notes(causal(), "<s>a")
    assert said[0] == "the text itself contains <s> (token 1); the model reads it as a BOS"
    assert said[1] == "position 0 is the BOS <s> (id 1), which the tokenizer adds"
    assert said[2].startswith("WARNING: a second BOS, <s> (id 1), follows at position 1")
    assert len(notes(causal(), [1, 1, 3])) == 2
    assert len(notes(causal(), [1, 3, 1])) == 1


def test_padding_is_no_beginning() -> None:
    assert notes(causal(), [0, 0, 1, 3], [0, 0, 1, 1])[0].startswith("position 0 is the BOS")
    assert notes(causal(), [1, 1, 3, 3], [0, 0, 1, 1])[0].startswith("WARNING: position 0 is not the BOS")
    assert notes(causal(), [1, 1], [0, 0]) == ()


def test_one_token_is_no_two() -> None:
    assert notes(causal(), [1]) == ("position 0 is the BOS <s> (id 1), which the text begins with",)


def test_a_model_without_bos_says_so() -> None:
    assert notes(causal(None), "a") == (
        "the model names no BOS: position 0 is the first token of the text itself",
    )


def test_other_models_have_no_such_notes() -> None:
    model = replace(causal(), config=replace(causal().config, causal=False, bos_id=None))
    read = Tokens(np.array([3, 4]), ("a", "b"))
    assert beginning_notes(model, read, np.ones(2, bool)) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a\u0016b zz",
            "WARNING: characters that the vocabulary lacks are left out: 3, the first U+0016 at character 1",
        ),
        (
            "z",
            "WARNING: characters that the vocabulary lacks are left out: 1, the first U+007A at character 0",
        ),
    ],
)
def test_characters_that_the_vocabulary_lacks_are_counted(text: str, said: str) -> None:
    assert notes(causal(), text)[0] == said


def test_white_space_is_no_character_that_is_left_out() -> None:
    assert len(notes(causal(), "a \n b")) == 1
    assert len(read_tokens(causal(), "", False).notes) == 0
