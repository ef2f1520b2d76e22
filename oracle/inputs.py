"""What people hand to a forward pass (text, token ids, masks) made ready, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, reject, reject_type
from oracle.model import Model

__all__ = ["Tokens", "check_length", "check_mask", "check_token_types", "cut_tokens", "read_tokens"]

Array = NDArray[Any]


class Tokens(NamedTuple):
    """A text as a model reads it; `text` and `offsets` are None when token ids were given."""

    ids: NDArray[np.int64]  # (token,)
    tokens: tuple[str, ...]
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing of the text's own: no id was given, or all tokens are those that the tokenizer adds."""
        if self.offsets is None:
            return not len(self.ids)
        return not any(end > start for start, end in self.offsets)  # added tokens span no characters


def read_tokens(model: Model, text_or_token_ids: Any, truncate: bool) -> Tokens:
    """Tokenize a string with the model's own tokenizer, or check token ids against its vocabulary.

    Tokens that were read before are checked alike; where `truncate` would have cut them they are read again.
    """
    if isinstance(text_or_token_ids, Tokens):
        return _read_again(model, text_or_token_ids, truncate)
    if isinstance(text_or_token_ids, str):
        return _tokenize(model, text_or_token_ids, [model.config.max_positions if truncate else None])[0]
    if isinstance(text_or_token_ids, (list, tuple)) and any(isinstance(x, str) for x in text_or_token_ids):
        reject_type(
            "text_or_token_ids",
            expected="one string, or integer token ids of shape (token,)",
            found="a sequence of strings",
            todo="Run forward on one text at a time.",
        )
    ids = _check_ids(model, text_or_token_ids)
    if truncate:
        ids = ids[: model.config.max_positions]
    return Tokens(ids, _names(model, ids))


def cut_tokens(model: Model, text: str, lengths: Sequence[int]) -> list[Tokens]:
    """The beginning of a text in each of several lengths, the tokens that the tokenizer adds included.

    The text is tokenized once for all of them. Raises InputError where it has fewer tokens, the model has
    fewer positions, or nothing of the text's own is left beside the added tokens.
    """
    whole = len(read_tokens(model, text, False).ids)
    most = min(whole, model.config.max_positions)
    added = model.tokenizer.num_special_tokens_to_add(False)
    for length in lengths:
        if not added < length <= most:
            reject(
                "length",
                expected=f"more than {added} and at most {most:,} tokens: the text has {whole:,}, "
                f"{model.name} {model.config.max_positions:,} positions",
                found=f"{length:,}",
                todo="Cut at other lengths, or take a longer text.",
            )
    return _tokenize(model, text, lengths)


def check_mask(mask: Any, count: int) -> NDArray[np.bool_]:
    """The mask of real tokens, (token,): all True by default; zeros and ones are taken for False and True."""
    if mask is None:
        return np.ones(count, dtype=bool)
    real = as_array("mask", mask)
    if real.shape != (count,) or not np.isin(real, (0, 1)).all():
        reject(
            "mask",
            expected=f"one True or False for each of {count} tokens",
            found=f"shape {real.shape}, values {np.unique(real)[:4].tolist()}",
            todo="Mark real tokens True and padding False.",
        )
    return real.astype(bool)


def check_token_types(model: Model, token_types: Any, count: int) -> NDArray[np.int64]:
    """Token types (token,), zeros by default (one segment)."""
    if token_types is None:
        return np.zeros(count, dtype=np.int64)
    table = model.embeddings.token_types
    types, known = as_array("token_types", token_types), 1 if table is None else len(table)
    integers = types.dtype.kind in "iu"
    if types.shape != (count,) or not integers or (count and not 0 <= types.min() <= types.max() < known):
        reject(
            "token_types",
            expected=f"an integer below {known} for each of {count} tokens",
            found=f"{types.dtype} of shape {types.shape}, values {np.unique(types)[:4].tolist()}",
            todo="Give the segment of each token, 0 for the first.",
        )
    return types.astype(np.int64)


def check_length(model: Model, count: int) -> None:
    """Refuse more tokens than the model has positions; nothing is ever cut in silence."""
    if count > model.config.max_positions:
        reject(
            "text",
            expected=f"at most {model.config.max_positions} tokens, the positions of {model.name}",
            found=f"{count} tokens",
            todo="Split the text, or cut it on purpose with truncate (--truncate).",
        )


def _read_again(model: Model, read: Tokens, truncate: bool) -> Tokens:
    """Tokens that were read before, checked and cut as their text, or their ids, would be."""
    ids = _check_ids(model, read.ids)
    if len(read.tokens) != len(ids):
        reject(
            "tokens",
            expected=f"a spelling for each of {len(ids)} ids",
            found=str(len(read.tokens)),
            todo="Read the text again.",
        )
    if truncate and len(ids) > model.config.max_positions:
        return read_tokens(model, ids if read.text is None else read.text, truncate)
    return read._replace(ids=ids)


def _check_ids(model: Model, given: Any) -> NDArray[np.int64]:
    """Token ids (token,) that the model has."""
    ids = as_array("token_ids", given)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        reject_type(
            "text_or_token_ids",
            expected="a string, or integer token ids of shape (token,)",
            found=f"{ids.dtype} of shape {ids.shape}",
            todo="For several texts call forward_batch.",
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= model.config.vocab_size))
    if wrong.size:
        reject(
            "token_ids",
            expected=f"ids from 0 to {model.config.vocab_size - 1}",
            found=f"{ids[wrong[0]]} at token {wrong[0]}",
            todo="Use ids of this model's own tokenizer.",
        )
    return ids.astype(np.int64)


def _tokenize(model: Model, text: str, lengths: Sequence[int | None]) -> list[Tokens]:
    """A string as the model reads it, cut to each of `lengths` tokens; None is the whole."""
    tokenizer = model.tokenizer
    if tokenizer is None:
        reject(
            "text",
            expected=f"token ids, because {model.name} has no tokenizer",
            found="a string",
            todo="Pass token ids, or put the model's tokenizer.json beside its weights.",
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        reject(
            "text", expected="valid Unicode", found=str(error), todo="Decode the file with its own encoding."
        )
    added = tokenizer.num_special_tokens_to_add(False)
    rooms = [None if length is None else length - added for length in lengths]
    room = min((room for room in rooms if room is not None), default=0)
    if room < 0:
        reject(
            "truncate",
            expected=f"positions for the tokens that the tokenizer adds to every text ({-room} more)",
            found=f"{model.config.max_positions}, the positions of {model.name}",
            todo="Pass token ids, or use the tokenizer.json that belongs to this checkpoint.",
        )
    try:
        encodings = _encodings(tokenizer, text, rooms)
    except Exception as error:  # the library raises plain Exception, for a missing [UNK] among others
        reject(
            "tokenizer",
            expected=f"the tokenizer of {model.name} to read every text",
            found=" ".join(str(error).split())[:300],
            todo="Give texts that its vocabulary can spell, or use the tokenizer.json that belongs to this "
            "checkpoint.",
        )
    return [_tokens_of(model, text, *each) for each in zip(encodings, lengths, strict=True)]


def _encodings(tokenizer: Any, text: str, rooms: Sequence[int | None]) -> list[Any]:
    """The text with so many tokens of its own, for each of `rooms`."""
    found: dict[int | None, Any] = {None: tokenizer.encode(text)} if None in rooms else {}
    if cuts := sorted({room for room in rooms if room is not None}, reverse=True):
        plain = tokenizer.encode(text, add_special_tokens=False)
        for room in cuts:  # the longest first, as the rest is cut off for good
            plain.truncate(room)
            found[room] = tokenizer.post_process(plain)
    return [found[room] for room in rooms]


def _tokens_of(model: Model, text: str, encoding: Any, length: int | None) -> Tokens:
    """What the tokenizer gave, checked against the model; `length` is None where it is the whole text."""
    ids = np.asarray(encoding.ids, dtype=np.int64)
    if ids.size and ids.max() >= model.config.vocab_size:
        reject(
            "tokenizer",
            expected=f"ids below {model.config.vocab_size}, the rows of the embedding",
            found=f"{ids.max()}",
            todo="Use the tokenizer.json that belongs to this checkpoint.",
        )
    offsets = tuple((int(start), int(end)) for start, end in encoding.offsets)
    notes = _literal_specials(model, ids, encoding.tokens, offsets)
    if length is None:
        notes += _left_out(model, text, offsets)
    return Tokens(ids, tuple(encoding.tokens), text, offsets, notes)


def _literal_specials(model: Model, ids: Array, tokens: Any, offsets: Any) -> tuple[str, ...]:
    """Special tokens that the writer typed: they span characters, those that the tokenizer adds span none."""
    config = model.config
    counts = {token_id: "it counts as a special token" for token_id in config.sink_ids}
    if config.bos_id is not None:
        counts.setdefault(config.bos_id, "the model reads it as a BOS")
    return tuple(
        f"the text itself contains {tokens[place]} (token {place}); {counts[token_id]}"
        for place, token_id in enumerate(ids.tolist())
        if token_id in counts and offsets[place][1] > offsets[place][0]
    )


def _left_out(model: Model, text: str, offsets: Any) -> tuple[str, ...]:
    """Characters that no token spans: a byte-level vocabulary may lack some bytes, and says nothing of it."""
    if not model.config.causal:  # BERT kin drop accents and control characters on purpose
        return ()
    spanned = np.zeros(len(text) + 1, dtype=np.int64)  # where tokens begin, less where they end
    for start, end in offsets:
        spanned[start] += 1
        spanned[end] -= 1
    lost = [place for place in np.flatnonzero(np.cumsum(spanned[:-1]) == 0) if not text[place].isspace()]
    if not lost:
        return ()
    first = f"U+{ord(text[lost[0]]):04X} at character {lost[0]}"
    return (f"WARNING: characters that the vocabulary lacks are left out: {len(lost):,}, the first {first}",)


def _names(model: Model, ids: Array) -> tuple[str, ...]:
    if model.tokenizer is None:
        return tuple(f"#{token_id}" for token_id in ids.tolist())
    return tuple(model.tokenizer.id_to_token(token_id) or f"#{token_id}" for token_id in ids.tolist())
