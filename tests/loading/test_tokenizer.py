"""Tokenizers as they are loaded, and which token ids are special."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_texts import TEXTS
from tokenizers import Tokenizer

from oracle._checks import InputError
from oracle.loading import fetch_model, load_model
from oracle.model import Model


def test_fixed_padding_and_truncation_are_switched_off(bert_folder: Path) -> None:
    plain = Tokenizer.from_file(str(bert_folder / "tokenizer.json"))
    assert len(plain.encode("cat").ids) == len(plain.encode("cat " * 30).ids) == 8
    tokenizer = load_model(bert_folder).tokenizer
    assert tokenizer.encode("the cat").tokens == ["[CLS]", "the", "cat", "[SEP]"]
    assert len(tokenizer.encode("cat " * 30).ids) == 32


def test_the_bundled_tokenizer_neither_pads_nor_cuts(minilm: Model) -> None:
    assert len(minilm.tokenizer.encode("a").ids) == 3
    assert len(minilm.tokenizer.encode("a " * 1000).ids) == 1002


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_token_ids_equal_those_of_transformers(minilm: Model, theirs: Any, text: str) -> None:
    ours = minilm.tokenizer.encode(text).ids
    assert ours == theirs(text)["input_ids"]
    assert len(ours) >= 2


@pytest.fixture(scope="module")
def theirs(minilm: Model) -> Any:
    """The tokenizer that transformers makes from the same files."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'reference'")
    return transformers.AutoTokenizer.from_pretrained(fetch_model("minilm-l6"))


def test_a_model_without_tokenizer(bert_folder: Path, bert_config: dict[str, Any]) -> None:
    (bert_folder / "tokenizer.json").unlink()
    model = load_model(bert_folder)
    assert model.tokenizer is None
    assert model.config.sink_ids == ()
    (bert_folder / "config.json").write_text(json.dumps(bert_config | {"cls_token_id": 5, "sep_token_id": 4}))
    assert load_model(bert_folder).config.sink_ids == (5, 4)


@pytest.mark.parametrize(
    ("tokenizer_config", "special_tokens_map", "sinks"),
    [
        (None, None, (2, 3)),
        ({}, {}, (2, 3)),
        ({"cls_token": "[MASK]"}, None, (4, 3)),
        ({"cls_token": {"content": "[MASK]", "lstrip": False}}, None, (4, 3)),
        (None, {"sep_token": "[PAD]"}, (2, 0)),
        ({"sep_token": "[SEP]"}, {"sep_token": "[PAD]"}, (2, 3)),
        ({"cls_token": None, "sep_token": None}, None, ()),
        ({"cls_token": "[SEP]"}, None, (3,)),
    ],
)
def test_special_tokens_are_those_that_the_files_name(
    bert_folder: Path, tokenizer_config: Any, special_tokens_map: Any, sinks: tuple[int, ...]
) -> None:
    if tokenizer_config is not None:
        (bert_folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    if special_tokens_map is not None:
        (bert_folder / "special_tokens_map.json").write_text(json.dumps(special_tokens_map))
    assert load_model(bert_folder).config.sink_ids == sinks


@pytest.mark.parametrize("value", [7, ["[CLS]"], {"content": 3}])
def test_a_special_token_that_is_no_text(bert_folder: Path, value: Any) -> None:
    (bert_folder / "tokenizer_config.json").write_text(json.dumps({"cls_token": value}))
    with pytest.raises(InputError, match=r"tokenizer_config\.json: cls_token"):
        load_model(bert_folder)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
def test_a_special_token_that_the_vocabulary_lacks_is_refused(bert_folder: Path, file: str) -> None:
    (bert_folder / file).write_text(json.dumps({"cls_token": "<none>"}))
    with pytest.raises(InputError, match=rf"{file}: cls_token.*'<none>'"):
        load_model(bert_folder)
