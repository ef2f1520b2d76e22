"""tokenizer.json and the files beside it that name the special tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from oracle._checks import reject
from oracle.loading._files import one_line, read_object, require_file

__all__ = ["load_tokenizer", "special_ids"]

_NAMED_IN = ("tokenizer_config.json", "special_tokens_map.json")
# What a role is called where no file says so.
_DEFAULTS = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
_ROLES = (*_DEFAULTS, "bos_token")
_SAVE_AGAIN = "Take the one that was saved with the model, or leave it out and pass token ids."


def load_tokenizer(folder: Path) -> Any:
    """The tokenizers.Tokenizer of a model directory, or None where it has no tokenizer.json.

    Fixed padding and truncation, which some files have switched on, are switched off: padding would add
    keys that the text does not have, and a long text must be refused, not cut.
    """
    path = folder / "tokenizer.json"
    if not os.path.lexists(path):
        return None
    require_file(path, _SAVE_AGAIN)
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception for whatever is wrong with the file
        reject(str(path), expected="a tokenizer.json", found=one_line(error), todo=_SAVE_AGAIN)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def special_ids(folder: Path, tokenizer: Any) -> dict[str, int]:
    """Token ids by role (cls_token, sep_token, bos_token), as the files beside the tokenizer name the tokens.

    A role that a file sets to null is left out, and so is one that no file names where the vocabulary lacks
    its usual token. Raises InputError for a token that a file names and the vocabulary lacks.
    """
    if tokenizer is None:
        return {}
    tokens: dict[str, str | None] = dict(_DEFAULTS)
    sources: dict[str, Path] = {}
    for file in reversed(_NAMED_IN):  # the first named has the last word
        path = folder / file
        if os.path.lexists(path):
            named = read_object(path, _SAVE_AGAIN)
            tokens.update({role: _content(path, role, named[role]) for role in _ROLES if role in named})
            sources.update({role: path for role in _ROLES if role in named})
    ids = {role: tokenizer.token_to_id(token) for role, token in tokens.items() if token is not None}
    for role, path in sources.items():
        if ids.get(role, 0) is None:
            reject(
                f"{path}: {role}",
                expected="a token of the vocabulary of tokenizer.json",
                found=repr(tokens[role]),
                todo=_SAVE_AGAIN,
            )
    return {role: token_id for role, token_id in ids.items() if token_id is not None}


def _content(path: Path, role: str, value: Any) -> str | None:
    """A token that is written as its text, as an object with "content", or as null."""
    token = value.get("content") if isinstance(value, dict) else value
    if token is not None and not isinstance(token, str):
        reject(f"{path}: {role}", expected="a token", found=type(token).__name__, todo=_SAVE_AGAIN)
    return token
