"""Texts that the embedded series are trained on and measured at: drawn from seeds, or Python's own source.

Two kinds. "backcopy" is the bigram text of Guo et al. 2024 (arXiv 2410.13835): every character follows from
the one before it by a table of chances, except after a trigger, where the character before that is copied. A
head has something to do at triggers only and puts its weight on the first token elsewhere: a sink.
"source" is the source text of Python's standard library, where the same small models form none.
"""

from __future__ import annotations

import json
import string
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import Unavailable

__all__ = ["BOS", "Backcopy", "Source", "read_source", "tokenizer_files"]

Array = NDArray[np.int64]

BOS = "<s>"
_CHARACTERS = string.ascii_letters + string.digits + "-_"  # none of them a blank: a text is one word
_TRIGGERS = 12
_EVENNESS = 4.0  # of the chances: with more even ones, weight on content that nobody asks for costs more
_TABLE_SEED, _HELD_OUT_SEED = 2410, 13835

_TRAINED_ON = (
    "argparse",
    "ast",
    "calendar",
    "collections",
    "configparser",
    "csv",
    "dataclasses",
    "datetime",
    "difflib",
    "doctest",
    "enum",
    "functools",
    "heapq",
    "inspect",
    "json.decoder",
    "json.encoder",
    "logging",
    "pathlib",
    "pickle",
    "random",
    "shutil",
    "statistics",
    "subprocess",
    "tarfile",
    "tempfile",
    "threading",
    "traceback",
    "typing",
    "unittest.case",
    "zipfile",
)
_HELD_OUT = ("fractions", "textwrap", "contextlib")


class Backcopy(NamedTuple):
    """The bigram text with triggers: token 0 is BOS, token t the character `characters[t - 1]`."""

    characters: str
    chances: NDArray[np.float64]  # (token, token): of the next one; the row of BOS is that of the first
    triggers: NDArray[np.bool_]  # (token,)

    @classmethod
    def make(cls) -> Backcopy:
        """64 characters, the chances of their followers drawn once (Dirichlet), and 12 triggers."""
        count = len(_CHARACTERS)
        chances = np.zeros((count + 1, count + 1))
        chances[:, 1:] = np.random.default_rng(_TABLE_SEED).dirichlet(np.full(count, _EVENNESS), count + 1)
        triggers = np.zeros(count + 1, bool)
        triggers[1 : _TRIGGERS + 1] = True
        return cls(_CHARACTERS, chances, triggers)

    def draw(self, rng: np.random.Generator, count: int, context: int) -> Array:
        """Token ids of `count` texts, (text, token), each beginning with BOS."""
        ids = np.zeros((count, context), np.int64)
        sums = self.chances.cumsum(axis=1)
        for place in range(1, context):
            before = ids[:, place - 1]
            chance = rng.random(count)
            follows = (chance[:, None] >= sums[before]).sum(axis=1).clip(max=len(self.characters))
            copies = self.triggers[before] & (place > 2)
            ids[:, place] = np.where(copies, ids[:, place - 2], follows)
        return ids

    def held_out(self, count: int, context: int) -> tuple[str, ...]:
        """Texts to measure at, without the BOS that the tokenizer adds."""
        ids = self.draw(np.random.default_rng(_HELD_OUT_SEED), count, context)[:, 1:]
        return tuple("".join(self.characters[token - 1] for token in text) for text in ids.tolist())


class Source(NamedTuple):
    """Source text, its white space drawn together, to train on and to measure at; a token is a character."""

    characters: str
    trained_on: str
    held_out_text: str

    def draw(self, rng: np.random.Generator, count: int, context: int) -> Array:
        """Token ids of `count` pieces from anywhere in the text, (text, token)."""
        codes = np.frombuffer(self.trained_on.encode("ascii"), np.uint8).astype(np.int64) - ord(" ")
        starts = rng.integers(len(codes) - context + 1, size=count)
        return codes[starts[:, None] + np.arange(context)]

    def held_out(self, count: int, context: int) -> tuple[str, ...]:
        """Pieces of modules that are not trained on, evenly spread."""
        starts = np.linspace(0, len(self.held_out_text) - context, count).astype(int)
        return tuple(self.held_out_text[start : start + context] for start in starts.tolist())


def read_source() -> Source:
    """The text of some modules of this Python; raises Unavailable where one of them has no source."""
    printable = "".join(map(chr, range(ord(" "), ord("~") + 1)))
    return Source(printable, _text_of(_TRAINED_ON), _text_of(_HELD_OUT))


def tokenizer_files(characters: str, bos: bool) -> dict[str, str]:
    """tokenizer.json and tokenizer_config.json with one token for each character, and a BOS as token 0."""
    first = [BOS] if bos else []
    vocabulary = {token: place for place, token in enumerate([*first, *characters])}
    special = {"id": 0, "content": BOS, "special": True, "normalized": False}
    special |= {"single_word": False, "lstrip": False, "rstrip": False}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    begin = {"SpecialToken": {"id": BOS, "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [begin, sequence],
        "pair": [begin, sequence, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {BOS: {"id": BOS, "ids": [0], "tokens": [BOS]}},
    }
    tokenizer = {
        "version": "1.0",
        "added_tokens": [special] if bos else [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "."},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": template if bos else None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    named = {"bos_token": BOS} if bos else {}
    return {"tokenizer.json": json.dumps(tokenizer), "tokenizer_config.json": json.dumps(named)}


def _text_of(modules: tuple[str, ...]) -> str:
    texts = []
    for module in modules:
        spec = find_spec(module)
        place = Path(spec.origin) if spec is not None and spec.origin else None
        if place is None or place.suffix != ".py" or not place.is_file():
            raise Unavailable(f"This Python has no source text of its module {module}.")
        texts += place.read_text(encoding="utf-8").split()
    return "".join(character if " " <= character <= "~" else "?" for character in " ".join(texts))
