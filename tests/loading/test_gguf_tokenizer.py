"""The tokenizer that a GGUF file describes, built again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf_files as small
import numpy as np
import pytest

from oracle._checks import InputError
from oracle.loading import load_model
from oracle.loading._gguf_tokenizer import rebuild_tokenizer, tokenizer_settings

FIELDS = small.FIELDS | {
    "tokenizer.ggml.tokens": list(small.TOKENS),
    "tokenizer.ggml.token_type": np.asarray(small.FIELDS["tokenizer.ggml.token_type"], np.int32),
    "tokenizer.ggml.merges": list(small.MERGES),
}


def tokenizer(**changes: Any) -> Any:
    """Rebuilt from FIELDS with `tokenizer.ggml.NAME` changed; None takes a field out."""
    fields = FIELDS | {f"tokenizer.ggml.{name}": value for name, value in changes.items()}
    named = {key: value for key, value in fields.items() if value is not None}
    return rebuild_tokenizer(named, "small.gguf", most=len(small.TOKENS))


def test_merges_are_applied_in_their_order() -> None:
    assert tokenizer().encode("in the on").tokens == ["in", "Ġthe", "Ġ", "on"]


def test_pre_says_whether_digits_stand_alone() -> None:
    assert tokenizer(pre="smollm").encode("in 2024  20").tokens == "in Ġ 2 0 2 4 ĠĠ 2 0".split()
    assert tokenizer(pre="gpt-2").encode("in 2024  20").tokens == "in Ġ2 0 2 4 Ġ Ġ2 0".split()


def test_control_tokens_are_special_and_found_whole() -> None:
    built = tokenizer()
    encoding = built.encode("a<|start|>b<|no|>")
    assert encoding.tokens[:3] == ["a", "<|start|>", "b"]
    assert encoding.ids[1] == 1
    assert built.decode(encoding.ids, skip_special_tokens=True) == "ab<|no|>"
    assert built.get_vocab_size() == len(small.TOKENS)


@pytest.mark.parametrize("kind", [3, 4])
def test_known_differences_to_transformers_own_rebuilding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    """Those that the module lists: white space before numbers, and tokens outside the byte alphabet."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'reference'")
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    types = list(small.FIELDS["tokenizer.ggml.token_type"])
    types[0] = kind
    fields = {
        "tokenizer.ggml.tokens": ("<|\u505c|>", *small.TOKENS[1:]),
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.unknown_token_id": 1,
    }
    path = small.write_gguf(tmp_path / "a.gguf", small.weights(), fields)
    ours = load_model(path).tokenizer
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name).backend_tokenizer
    for text in ("in the on", "a<|start|>the", "\u505c", "the\n2", ""):
        assert ours.encode(text).ids == theirs.encode(text).ids
    assert ours.encode("in  20").tokens == ["in", "ĠĠ", "2", "0"]
    assert theirs.encode("in  20").tokens == ["in", "Ġ", "Ġ2", "0"]
    assert ours.encode("a<|\u505c|>").ids[1:] == [0]
    assert theirs.encode("a<|\u505c|>").ids[1:] == theirs.encode("<|").ids + theirs.encode("\u505c|>").ids


def test_user_defined_tokens_are_found_whole_and_not_special() -> None:
    types = FIELDS["tokenizer.ggml.token_type"].copy()
    types[0] = 4
    built = tokenizer(token_type=types)
    encoding = built.encode("a<|end|>")
    assert encoding.ids[1:] == [0]
    assert built.decode(encoding.ids, skip_special_tokens=True) == "a<|end|>"


@pytest.mark.parametrize(
    ("bos", "eos", "tokens"),
    [
        (None, None, ["in", "Ġthe"]),
        (True, False, ["<|start|>", "in", "Ġthe"]),
        (False, True, ["in", "Ġthe", "<|stop|>"]),
        (True, True, ["<|start|>", "in", "Ġthe", "<|stop|>"]),
    ],
)
def test_bos_and_eos_are_added_where_the_file_says_so(bos: Any, eos: Any, tokens: list[str]) -> None:
    built = tokenizer(add_bos_token=bos, add_eos_token=eos)
    encoding = built.encode("in the")
    assert encoding.tokens == tokens
    spans = [end > start for start, end in encoding.offsets]
    assert spans == [not token.startswith("<") for token in tokens]
    assert built.num_special_tokens_to_add(False) == len(tokens) - 2


def test_offsets_count_characters_and_a_token_holds_the_space_before_it() -> None:
    assert tokenizer().encode("é the").offsets == [(0, 1), (0, 1), (1, 5)]
    assert tokenizer().encode("   ").offsets == [(0, 2), (2, 3)]


def test_no_metadata_no_tokenizer() -> None:
    assert tokenizer(model=None) is None


def test_the_settings_name_tokens_by_role() -> None:
    settings = tokenizer_settings(FIELDS, "small.gguf")
    assert settings["bos_token"] == "<|start|>"
    assert settings["eos_token"] == settings["pad_token"] == "<|stop|>"
    assert settings["unk_token"] == "<|end|>"
    assert settings["add_bos_token"] is False


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "llama"}, r"tokenizer\.ggml\.model: expected gpt2 \(.*; found 'llama'"),
        ({"pre": "llama-bpe"}, r"tokenizer\.ggml\.pre: expected smollm or gpt-2; found 'llama-bpe'"),
        ({"pre": None}, r"tokenizer\.ggml\.pre: expected smollm or gpt-2; found no such field"),
        ({"pre": ["smollm"]}, r"tokenizer\.ggml\.pre"),
        ({"tokens": None}, r"tokenizer\.ggml\.tokens: expected a list of tokens"),
        ({"tokens": [*small.TOKENS[:-1], "a"]}, r"tokens: expected each token once; found 1 "),
        ({"token_type": None}, r"token_type: expected a whole number for each of 268 tokens"),
        ({"token_type": np.ones(3, np.int32)}, r"token_type: expected a whole number for each"),
        ({"token_type": np.ones(268)}, r"token_type: expected a whole number for each"),
        ({"merges": None}, r"merges: expected a list of merges"),
        ({"merges": ["Ġ t", "q q"]}, r"merges: expected pairs of tokens; found 'q q'"),
        ({"merges": ["in"]}, r"merges: expected pairs of tokens; found 'in'"),
        ({"add_bos_token": 1}, r"add_bos_token: expected true or false; found 1"),
        ({"add_bos_token": True, "bos_token_id": None}, r"bos_token_id: expected the token to be added"),
        ({"bos_token_id": 268, "add_bos_token": True}, r"bos_token_id: expected null or a token id"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        tokenizer(**changes)
    assert "\n" not in str(caught.value)


def test_a_token_too_many_for_the_embedding_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    weights = small.weights()
    weights["token_embd.weight"] = weights["token_embd.weight"][:-1]
    path = small.write_gguf(tmp_path / "a.gguf", weights)
    with pytest.raises(InputError, match=r"tokens: expected at most 267.*found 268"):
        load_model(path)
