"""The tokenizer that the metadata of a GGUF file describes, built again.

Known differences to what transformers (5.24) builds from the same file:
- it takes `tokenizer.ggml.pre` smollm, like every other name it does not know, for GPT-2's rule, which
  splits no digits off: the white space before a number is cut in another way ("  10" is "Ġ Ġ 1 0" there,
  "ĠĠ 1 0" here and in the model's own tokenizer), and a name that is not known is refused here;
- it leaves out control and user-defined tokens that are spelled outside the byte alphabet, so that they are
  cut like any other text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle._checks import reject
from oracle.families._config import Fields
from oracle.loading._files import one_line

__all__ = ["rebuild_tokenizer", "tokenizer_settings"]

_MODEL, _PRE = "tokenizer.ggml.model", "tokenizer.ggml.pre"
_TOKENS, _TYPES, _MERGES = (f"tokenizer.ggml.{name}" for name in ("tokens", "token_type", "merges"))
# `tokenizer.ggml.pre` to whether digits are split one by one before GPT-2's own rule splits the rest.
_DIGITS_APART = {"smollm": True, "gpt-2": False}
_CONTROL, _USER_DEFINED = 3, 4
_ROLES = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
_TODO = "Take a directory with the tokenizer.json that was saved with the model."


def rebuild_tokenizer(metadata: Mapping[str, Any], source: str, *, most: int) -> Any:
    """The tokenizers.Tokenizer of a GGUF file, or None where the file has none.

    Byte-level BPE, with the pre-tokenizer that `tokenizer.ggml.pre` names. Control tokens are special and,
    like user-defined ones, found whole in a text; a BOS or EOS is put around a text only where the file says
    so (add_bos_token, add_eos_token). A byte that the vocabulary lacks is left out of the text, as in
    llama.cpp. Another kind of tokenizer, an unknown `pre` and more tokens than `most`, the rows of the
    embedding, raise InputError by name.
    """
    if _MODEL not in metadata:
        return None
    from tokenizers import AddedToken, Tokenizer, decoders, models

    fields = Fields(metadata, source)
    pre = fields.get(_PRE)
    if not _is(fields.get(_MODEL), "gpt2"):
        fields.refuse(_MODEL, expected="gpt2 (byte-level BPE), the only kind that is rebuilt", todo=_TODO)
    if not any(_is(pre, known) for known in _DIGITS_APART):
        fields.refuse(_PRE, expected=" or ".join(_DIGITS_APART), todo=_TODO)
    tokens = _tokens(fields)
    if len(tokens) > most:
        expected = f"at most {most}, the rows of the embedding"
        reject(f"{source}: {_TOKENS}", expected=expected, found=str(len(tokens)), todo=_TODO)
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    if len(vocabulary) < len(tokens):
        found = f"{len(tokens) - len(vocabulary)} that stand there twice"
        reject(f"{source}: {_TOKENS}", expected="each token once", found=found, todo=_TODO)
    added = [
        AddedToken(token, special=kind == _CONTROL, normalized=False)
        for token, kind in zip(tokens, _types(fields, len(tokens)), strict=True)
        if kind in (_CONTROL, _USER_DEFINED)
    ]
    try:
        tokenizer = Tokenizer(models.BPE(vocabulary, _merges(fields, vocabulary), fuse_unk=False))
        tokenizer.pre_tokenizer = _splitter(_DIGITS_APART[pre])
        tokenizer.decoder = decoders.ByteLevel()
        for token in added:  # ids are the vocabulary's own
            (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
        ends = _ends(fields, tokens)
        if ends is not None:
            tokenizer.post_processor = ends
    except Exception as error:  # the library raises plain Exception for whatever is wrong
        reject(source, expected="a tokenizer that can be rebuilt", found=one_line(error), todo=_TODO)
    return tokenizer


def tokenizer_settings(metadata: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What stands in tokenizer_config.json: tokens by role, and whether BOS and EOS are added."""
    fields = Fields(metadata, source)
    tokens = _tokens(fields)
    named = {role: _id(fields, name, len(tokens)) for role, name in _ROLES.items()}
    roles = {f"{role}_token": tokens[token_id] for role, token_id in named.items() if token_id is not None}
    switches = {f"add_{end}_token": _added(fields, end) for end in ("bos", "eos")}
    return {"tokenizer_class": "PreTrainedTokenizerFast", **roles, **switches}


def _is(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _tokens(fields: Fields) -> list[str]:
    tokens = fields.get(_TOKENS)
    if not isinstance(tokens, list) or not tokens:
        fields.refuse(_TOKENS, expected="a list of tokens", todo=_TODO)
    return tokens


def _types(fields: Fields, count: int) -> list[int]:
    types = fields.get(_TYPES)
    if not isinstance(types, np.ndarray) or types.dtype.kind not in "iu" or len(types) != count:
        fields.refuse(_TYPES, expected=f"a whole number for each of {count} tokens", todo=_TODO)
    return types.tolist()


def _merges(fields: Fields, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    merges = fields.get(_MERGES)
    if not isinstance(merges, list):
        fields.refuse(_MERGES, expected="a list of merges", todo=_TODO)
    pairs = []
    for merge in merges:
        left, _, right = merge.partition(" ")
        if not (left in vocabulary and right in vocabulary and left + right in vocabulary):
            found = ascii(merge[:60])
            reject(f"{fields.source}: {_MERGES}", expected="pairs of tokens", found=found, todo=_TODO)
        pairs.append((left, right))
    return pairs


def _splitter(digits_apart: bool) -> Any:
    from tokenizers import pre_tokenizers

    # llama.cpp puts no space before a byte-level text, whatever add_space_prefix says.
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, byte_level]) if digits_apart else byte_level


def _ends(fields: Fields, tokens: list[str]) -> Any:
    """What puts BOS and EOS around a text, or None where the file asks for neither."""
    from tokenizers import processors

    wanted = {end: _id(fields, end, len(tokens)) for end in ("bos", "eos") if _added(fields, end)}
    for end, token_id in wanted.items():
        if token_id is None:
            fields.refuse(f"tokenizer.ggml.{end}_token_id", expected="the token to be added", todo=_TODO)
    if not wanted:
        return None
    before = ["bos:0"] if "bos" in wanted else []
    after = ["eos:0"] if "eos" in wanted else []
    return processors.TemplateProcessing(
        single=[*before, "$A:0", *after],
        special_tokens=[
            {"id": end, "ids": [token_id], "tokens": [tokens[token_id]]}
            for end, token_id in wanted.items()
            if token_id is not None
        ],
    )


def _id(fields: Fields, name: str, count: int) -> int | None:
    return fields.token_id(f"tokenizer.ggml.{name}_token_id", None, vocab_size=count)


def _added(fields: Fields, end: str) -> bool:
    field = f"tokenizer.ggml.add_{end}_token"
    value = fields.get(field, False)
    if type(value) is not bool:
        fields.refuse(field, expected="true or false", todo=_TODO)
    return value
