"""Texts that people bring, each standing for a kind."""

from __future__ import annotations

TEXTS = {
    "empty": "",
    "blank": "   ",
    "punctuation": "...!!!",
    "one word of 130 letters": "a" * 130,
    "emoji": "a \N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4} day",
    "CJK": "\u6ce8\u610f\u529b\u306e\u6c88\u307f",
    "combining marks": "cafe\u0301 n\u0303",
    "zero-width joiner": "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL} a\u200db",
    "literal [SEP]": "the [SEP] in a text",
    "literal <s>": "<s> and </s> too",
    "special tokens only": "[CLS][SEP]",
    "a file in cp1252": b"na\xefve \x93quotes\x94 \x96 100\x80".decode("cp1252"),
    "a line of 100,000 words": "sink " * 100_000,
    "a sentence": "The trophy doesn't fit into the brown suitcase because it's too large.",
}
