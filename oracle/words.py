"""Word pieces to words, and the one-row-per-word protocol of the norm-weighting study."""

from __future__ import annotations

import bisect
import itertools
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, at_least_float64, reject
from oracle.measures import weight_share
from oracle.trace import Trace

__all__ = ["OpenedRows", "Unit", "group_words", "merge_words", "open_merged_rows", "open_rows"]

Array = NDArray[Any]

_PUNCTUATION = {"neither": "punctuation", "sink": "sink", "word": "word"}

_ATTACHED = ("Mn", "Mc", "Me", "Cf")
_INVISIBLE = ("Cc", "Cf")
_EMOJI = {"\N{VARIATION SELECTOR-16}", "\N{COMBINING ENCLOSING KEYCAP}"}  # "#" with them is a picture


class Unit(NamedTuple):
    """A word, an outer punctuation run or a sink token, with the token positions it is made of."""

    label: str
    kind: str  # "word", "punctuation" or "sink"
    tokens: tuple[int, ...]


class OpenedRows(NamedTuple):
    """One displayed row per word: which head opens, its link, and the sink share there by weighting.

    All arrays run over the words that have a row. `shares[name]` is the sink share of that word's merged
    row on the head that `attention` opens; `heads[name]` is the (layer, head) that `name` would open.
    """

    words: tuple[str, ...]
    links: tuple[str, ...]
    link_weight: Array  # (word,), the displayed value, in (0, 1]
    link_mass: Array  # (word,), the same link as a part of the whole row
    heads: Mapping[str, NDArray[np.int64]]  # (word, 2)
    shares: Mapping[str, Array]  # (word,)
    undefined: int  # words without a row: no other word, or no content mass in any head


def group_words(trace: Trace, *, punctuation: str = "neither") -> tuple[Unit, ...]:
    """Units of a text by the tokenizer's offsets, in text order; sinks are units by themselves.

    A word is a run without white space, its outer punctuation split off as units of their own and its inner
    punctuation kept (don't is one word). Punctuation is what BERT splits off: the Unicode categories P and
    ASCII's symbols. An emoji is a word; a combining mark, a joiner or a selector goes with the character
    before it; a script without white space is one word from one outer punctuation mark to the next space.
    Padding belongs to no unit. `punctuation` says what those outer runs count as: "neither" sink nor word
    (they stay in the displayed row), "sink", or "word". A trace made from token ids has no text: InputError.
    """
    if punctuation not in _PUNCTUATION:
        reject(
            "punctuation",
            expected=" or ".join(_PUNCTUATION),
            found=repr(punctuation),
            todo="Name one of them.",
        )
    if trace.text is None or trace.offsets is None:
        reject(
            "trace", expected="a trace of a string", found="one of token ids", todo="Run forward on the text."
        )
    text = list(trace.text)
    for start, end in itertools.compress(trace.offsets, trace.sink_mask.tolist()):
        text[start:end] = " " * (end - start)  # a sink that the writer typed parts the words around it
    spans = _spans("".join(text))
    stops = [stop for _, stop, _ in spans]
    members: dict[int, list[int]] = {}
    units: list[tuple[int, Unit]] = []
    for token, (start, end) in enumerate(trace.offsets):
        if trace.sink_mask[token]:
            units.append((token, Unit(trace.tokens[token], "sink", (token,))))
        elif trace.mask[token]:
            best, most = -1, 0
            for span in range(bisect.bisect_right(stops, start), len(spans)):
                begin, stop, _ = spans[span]
                if begin >= end:
                    break
                if min(end, stop) - max(start, begin) > most:
                    best, most = span, min(end, stop) - max(start, begin)
            if most:
                members.setdefault(best, []).append(token)
            else:  # a token that spans no visible character stands alone and is no word
                units.append((token, Unit(trace.tokens[token], "punctuation", (token,))))
    for span, tokens in members.items():
        begin, stop, kind = spans[span]
        units.append((tokens[0], Unit(trace.text[begin:stop], kind, tuple(tokens))))
    kind = _PUNCTUATION[punctuation]
    ordered = [unit for _, unit in sorted(units, key=lambda pair: pair[0])]
    return tuple(unit._replace(kind=kind) if unit.kind == "punctuation" else unit for unit in ordered)


def merge_words(weights: Any, groups: Sequence[Sequence[int]]) -> Array:
    """Sum weights over the key pieces of each word, average them over its query pieces; not normalised.

    `weights` (..., query, key), `groups` the token positions of each word. Returns (..., word, word) in
    float64 (longdouble for longdouble). Weigh first and normalise last: a row of pieces that is normalised
    before the average gives another number. An empty group, a position outside or one
    that a group names twice raises InputError.
    """
    array = at_least_float64("weights", weights)
    count = array.shape[-1] if array.ndim >= 2 else -1
    if count < 0 or array.shape[-2] != count:
        reject(
            "weights", expected="(..., token, token)", found=f"shape {array.shape}", todo="Pass whole rows."
        )
    positions = [np.asarray(group) for group in groups]
    if any(
        p.ndim != 1 or not p.size or p.dtype.kind not in "iu" or p.min() < 0 or p.max() >= count
        for p in positions
    ):
        reject(
            "groups",
            expected=f"one or more positions from 0 to {count - 1} for each word",
            found=f"{[p.tolist() for p in positions]}"[:80],
            todo="Use group_words.",
        )
    twice = [p.tolist() for p in positions if len(np.unique(p)) < len(p)]
    if twice:
        reject(
            "groups",
            expected="each position once in a word",
            found=f"{twice[0]}"[:80],
            todo="Leave out the repeats: a piece that is counted twice weighs double.",
        )
    if not len(groups):
        return np.zeros((*array.shape[:-2], 0, 0), array.dtype)
    first = [group[0] for group in groups]
    several = [(word, group) for word, group in enumerate(groups) if len(group) > 1]
    by_key = np.take(array, first, axis=-1)  # (..., query, word)
    for word, group in several:
        for piece in group[1:]:
            by_key[..., word] += array[..., piece]
    merged = np.take(by_key, first, axis=-2)
    for word, group in several:
        for piece in group[1:]:
            merged[..., word, :] += by_key[..., piece, :]
        merged[..., word, :] /= len(group)
    return merged


def open_rows(weights: Mapping[str, Any], units: Sequence[Unit], layers: Sequence[int]) -> OpenedRows:
    """The row that a viewer opens for every word, among the heads of `layers`, by each weighting.

    `weights` maps "attention" and further weightings to weighted rows (layer, head, query, key). The
    displayed row is the content part renormalised; its link is the largest displayed value whose key is
    a word and not the row's own; the head with the strongest link opens, ties to the lowest (layer,
    head, key). Sink shares of all weightings are read on the head that "attention" opens.
    """
    if "attention" not in weights:
        reject(
            "weights", expected='an entry "attention"', found=", ".join(weights) or "nothing", todo="Add it."
        )
    shapes = {name: np.shape(w) for name, w in weights.items()}
    n_layers = shapes["attention"][0] if len(shapes["attention"]) == 4 else -1
    if n_layers < 0 or len(set(shapes.values())) > 1:
        reject(
            "weights",
            expected="one shape (layer, head, query, key) for all weightings",
            found=", ".join(f"{name} {shape}" for name, shape in shapes.items()),
            todo="Use weighted_rows on the attention of one text.",
        )
    chosen = np.unique(as_array("layers", list(layers)))  # in order: a tie goes to the lowest layer
    if not chosen.size or chosen.dtype.kind not in "iu" or chosen[0] < 0 or chosen[-1] >= n_layers:
        reject(
            "layers",
            expected=f"one or more layers from 0 to {n_layers - 1}",
            found=f"{chosen.tolist()}",
            todo="Name the layers.",
        )
    groups = [unit.tokens for unit in units]
    merged = {name: merge_words(as_array("weights", w)[chosen], groups) for name, w in weights.items()}
    return open_merged_rows(merged, units, chosen.tolist())


def open_merged_rows(merged: Mapping[str, Any], units: Sequence[Unit], layers: Sequence[int]) -> OpenedRows:
    """`open_rows` on rows that `merge_words` has merged already, of all `units` and in their order.

    `merged` maps "attention" and further weightings to (layer, head, word, word), one word for each unit, in
    float64 or longdouble; `layers` are the numbers of the layers on the first axis, rising. Returns what
    `open_rows` returns on the rows of pieces, bit for bit. InputError for sizes that do not fit.
    """
    if "attention" not in merged:
        reject(
            "merged", expected='an entry "attention"', found=", ".join(merged) or "nothing", todo="Add it."
        )
    arrays = {name: at_least_float64("merged", rows) for name, rows in merged.items()}
    attention, numbers = arrays["attention"], as_array("layers", list(layers))
    heads = attention.shape[1] if attention.ndim == 4 else 0
    wanted = (len(numbers), heads, len(units), len(units))
    if not heads or any(rows.shape != wanted for rows in arrays.values()):
        reject(
            "merged",
            expected=f"({len(numbers)} layers, head, {len(units)} units, {len(units)} units) for all",
            found=", ".join(f"{name} {rows.shape}" for name, rows in arrays.items()),
            todo="Pass what merge_words gives for these units and layers.",
        )
    if not len(numbers) or numbers.dtype.kind not in "iu" or (np.diff(numbers) <= 0).any():
        reject(
            "layers",
            expected="one or more layer numbers, rising: a tie goes to the lowest",
            found=f"{numbers.tolist()}",
            todo="Sort the layers.",
        )
    is_sink = np.array([unit.kind == "sink" for unit in units], dtype=bool)
    words = np.array([index for index, unit in enumerate(units) if unit.kind == "word"], dtype=np.intp)
    opened = {name: _open(rows, is_sink, words) for name, rows in arrays.items()}
    have = np.all([~np.isnan(found.shown) for found in opened.values()], axis=0)
    first, kept = opened["attention"].take(have), words[have]
    picked = {name: rows[first.layer, first.head, kept] for name, rows in arrays.items()}  # (word, unit)
    links = first.key.tolist()
    return OpenedRows(
        words=tuple(units[word].label for word in kept.tolist()),
        links=tuple(units[key].label for key in links),
        link_weight=first.shown,
        link_mass=picked["attention"][np.arange(len(kept)), first.key] / picked["attention"].sum(axis=-1),
        heads={
            name: np.stack([numbers[found.layer[have]], found.head[have]], axis=1).astype(np.int64)
            for name, found in opened.items()
        },
        shares={name: weight_share(rows, is_sink) for name, rows in picked.items()},
        undefined=int((~have).sum()),
    )


class _Opened(NamedTuple):
    """The strongest link of every word: where it stands and its displayed value, NaN without one; (word,)."""

    layer: NDArray[np.intp]  # its place on the first axis
    head: NDArray[np.intp]
    key: NDArray[np.intp]
    shown: Array

    def take(self, words: NDArray[np.bool_]) -> _Opened:
        return _Opened(*(column[words] for column in self))


def _open(rows: Array, is_sink: NDArray[np.bool_], words: NDArray[np.intp]) -> _Opened:
    """The largest displayed value on another word, ties to the lowest (layer, head, key)."""
    count = len(words)
    layers, heads, keys = np.zeros((3, count), dtype=np.intp)
    best = np.full(count, np.nan, dtype=rows.dtype)
    if count < 2:
        return _Opened(layers, heads, keys, best)
    own = np.arange(count)
    for layer, whole in enumerate(rows):  # one layer at a time: its heads are all that is copied
        content = np.where(is_sink, 0, whole).sum(axis=-1)[:, words, None]  # (head, word, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = whole[:, words][:, :, words] / content
        shown[:, own, own] = np.nan
        flat = np.where(np.isnan(shown), -np.inf, shown).transpose(1, 0, 2).reshape(count, -1)
        place = flat.argmax(axis=1)  # the first one: the lowest indices
        value = flat[own, place]
        better = (value > best) | (np.isnan(best) & (value > -np.inf))
        layers[better], best[better] = layer, value[better]
        heads[better], keys[better] = place[better] // count, words[place[better] % count]
    return _Opened(layers, heads, keys, best)


def _spans(text: str) -> list[tuple[int, int, str]]:
    """(start, end, kind) of each word and of each outer punctuation run."""
    spans = []
    for run in re.finditer(r"\S+", text):
        start, end = run.span()
        starts = [start, *(place for place in range(start + 1, end) if not _joins(text[place]))]
        clusters = list(itertools.pairwise([*starts, end]))
        inner = [cluster for cluster in clusters if not _is_punctuation(text[slice(*cluster)])]
        first, last = (inner[0][0], inner[-1][1]) if inner else (end, end)
        parts = [(start, first, "punctuation"), (first, last, "word"), (last, end, "punctuation")]
        spans += [part for part in parts if part[1] > part[0]]
    return spans


def _joins(character: str) -> bool:
    """Whether a character is drawn on the one before it: combining marks, joiners, selectors."""
    return unicodedata.category(character) in _ATTACHED


def _is_punctuation(cluster: str) -> bool:
    """One character with what is drawn on it: punctuation as BERT splits it, unless it is an emoji."""
    if _EMOJI & set(cluster):
        return False
    category = unicodedata.category(cluster[0])
    return cluster[0] in string.punctuation or category[0] == "P" or category in _INVISIBLE
