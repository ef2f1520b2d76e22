"""The norm-weighting study: does weighting attention by value norms make the sink share collapse?

After a blog experiment on a 4-layer model, whose measure is that of Kobayashi et al., EMNLP 2020
(arXiv 2004.10102); its question is asked again of another model. Question and rule stand here as
constants, so that no result can change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from oracle._checks import InputError
from oracle.model import Model
from validation.choices import parse_layers
from validation.claims import figure
from validation.gathering import gather
from validation.headline import (
    LABELS,
    Summary,
    headline_tables,
    layer_words,
    length_words,
    row_notes,
    summarise,
)
from validation.progress import Progress, silent
from validation.report.document import Check, Column, Note, Part, Table
from validation.studies.published_norm_weighting import SOURCE, arithmetic, beside_published, published
from validation.table import WEIGHTINGS, RowTable
from validation.word_table import PROTOCOL, WordTable
from validation.wording import percent

__all__ = ["QUESTION", "RULE", "Moves", "overall", "run", "verdict"]

QUESTION = (
    "If attention is weighted by the norm of what each key hands on, does the sink share collapse, so that a "
    "viewer that hides the sink tokens needs no warning?"
)
RULE = (
    "Read from the one-row-per-word table, for each weighting, layer by layer. A layer has collapsed if "
    "it had word rows above 50% under attention and no row of the one-row-per-word table stays above 50% "
    "under the weighting. It stays if one of them is still above; it rose if none of them is, or there "
    "were none, and another row is above 50% that was not. A layer without such a row before and after "
    "had none to begin with and says nothing. The sink share as a whole has collapsed only if every layer "
    "that had such rows has none left and no layer rose. Stated before the run; the headline's median and "
    "share of rows above 50% stand beside the verdict."
)
_NORMS = WEIGHTINGS[1:]
_NAMED = ("doctor", "nurse", "scissors", "trophy", "suitcase")
_ODDS_BOUND = 1e-12  # shares are quotients of sums of at most 512 float64 terms: a few times 1e-14 at most


class Moves(NamedTuple):
    """Word rows of one layer above 50%: under attention, then and still, and only under the weighting."""

    words: int
    before: int
    stay: int
    rose: int


def verdict(moves: Moves) -> str:
    """RULE on one layer: "collapsed", "stays", "rose", "none" (to begin with) or "no rows"."""
    if not moves.words:
        return "no rows"
    if moves.stay:
        return "stays"
    if moves.rose:
        return "rose"
    return "collapsed" if moves.before else "none"


def overall(verdicts: Sequence[str]) -> str:
    """RULE on the verdicts of all layers: "collapsed", "not collapsed", "none" or "no rows"."""
    said = set(verdicts)
    if said & {"stays", "rose"}:
        return "not collapsed"
    return next((answer for answer in ("collapsed", "none") if answer in said), "no rows")


def run(
    model: Model,
    texts: Sequence[str],
    progress: Progress = silent,
    layers: str | Sequence[int] | None = None,
    truncate: bool = False,
    punctuation: str = "neither",
) -> tuple[Part, ...]:
    """The whole study on any texts, with the model's special tokens as the sink.

    Every layer is a stated set of the one-row-per-word protocol by itself; all of them as one set are shown
    beside them and are no part of the verdict. `punctuation` is "neither" sink nor word, "sink" or "word" in
    the one-row-per-word tables. Raises InputError as `gather` does; published figures that
    cannot be had are said to be missing, and nothing else is.
    """
    chosen = parse_layers(layers, model.config.n_layers)
    single = [(layer,) for layer in chosen]
    words = WordTable([*single, chosen] if len(chosen) > 1 else single, punctuation)
    found = gather(model, texts, layers=chosen, truncate=truncate, progress=progress, each=words.add)
    T = length_words(words.lengths)
    try:
        beside: tuple[Part, ...] = (beside_published(words, found.sinks, published()), *arithmetic())
        depth = _depth()
    except InputError as error:
        beside, depth = (), Note("not_run", f"NOT RUN: published figures beside these: {error}")
    notes = [
        "words: those with a row, of which part is a share; undef.: words without one (no other word in the "
        "text, or no content mass in any head), left out",
        "r>1: rows that got worse; same head: words on which the weighting opens the head of attention",
    ]
    if punctuation != "neither":
        notes.append(f"outer punctuation counts as {punctuation} in this table and its verdict")
    if len(chosen) > 1:
        notes.append(
            f"{layer_words(chosen)} as one set: a positional head wins nearly always; not in the verdict"
        )
    return (
        Note("question", f"Question: {QUESTION}"),
        Note("rule", f"Rule: {RULE}"),
        Note("source", SOURCE),
        found.sinks.note(),
        *row_notes(found.table),
        *headline_tables(found.table, found.head_summed),
        *found.sinks.ratio_tables(),
        *(
            words.table(
                name,
                f"One row per word, {T}",
                notes * (name == WEIGHTINGS[-1]),
                PROTOCOL * (name == WEIGHTINGS[0]),
            )
            for name in WEIGHTINGS
        ),
        *_verdicts(words, single, found.table),
        *_links(words, single),
        *beside,
        _odds_law(found.table),
        depth,
        *found.notes,
    )


def _depth() -> Note:
    """What one model cannot show."""
    layers = [f"{figure(f'depth_{end}').value:.0f}" for end in ("from", "to")]
    return Note(
        "depth",
        "Not testable by one model: whether the effect depends on depth, and whether it carries over from "
        f"{layers[0]} layers to {layers[1]}. One model has one depth, and its layers are no models of "
        "different depth.",
    )


def _verdicts(words: WordTable, single: Sequence[tuple[int, ...]], table: RowTable) -> tuple[Part, ...]:
    """The rule applied to every layer and to all of them, and the answer in a sentence per weighting."""
    columns = (
        Column("layer", "layer"),
        Column("weighting", "weighting"),
        Column("words", "words", ",d"),
        Column("above_half_before", "before", ",d"),
        Column("above_half_after", "after", ",d"),
        Column("worst", "worst", ".1%"),
        Column("headline_median", "median", ".1%"),
        Column("headline_share_above_half", ">50%", ".1%"),
        Column("verdict", "verdict"),
    )
    rows: list[tuple[Any, ...]] = []
    said: list[Note] = []
    for name in _NORMS:
        moves = {one[0]: _moves(words, name, one) for one in single}
        answers = {layer: verdict(moved) for layer, moved in moves.items()}
        answer = overall(list(answers.values()))
        beside = summarise(table.shares[name][np.isin(table.layer, list(moves))])
        for one in single:
            layer = one[0]
            here = summarise(table.shares[name][table.layer == layer])
            worst = words.summary(name, one).worst
            rows.append(_cells(str(layer), name, moves[layer], worst, here, answers[layer]))
        whole = Moves(*(sum(counts) for counts in zip(*moves.values(), strict=True)))
        worst = words.summary(name, *single).worst
        rows.append(_cells("sum", name, whole, worst, beside, answer))
        start = summarise(table.shares["attention"])
        said.append(_sentence(name, answer, moves, answers, worst, (start, beside)))
    notes = (
        "before, after: rows of the one-row-per-word table above 50% under attention and under the weighting",
        "median, >50%: the headline's, content queries of all heads",
        "sum: counts added up, worst and headline over all layers; its verdict follows from the layers'",
        "stays: a row that was above 50% still is; rose: none of those is, but another one; none: no row was "
        "to begin with, so nothing could collapse",
        "The rule is one of the worst case: a single row above 50% suffices for stays, so more texts make "
        "stays likelier.",
    )
    return Table("verdicts", "Verdict by the rule", columns, tuple(rows), notes), *said


def _moves(words: WordTable, name: str, layers: tuple[int, ...]) -> Moves:
    before, after = (words.shares(weighting, layers) for weighting in ("attention", name))
    known, high = ~np.isnan(after), before > 0.5
    counts = (known, high, high & (after > 0.5), ~high & (after > 0.5))
    return Moves(*(int(rows.sum()) for rows in counts))


def _cells(
    label: str, name: str, moves: Moves, worst: float, beside: Summary, answer: str
) -> tuple[Any, ...]:
    after = moves.stay + moves.rose
    headline = (beside.median, beside.part(beside.above_half))
    return (label, LABELS[name], moves.words, moves.before, after, worst, *headline, answer)


def _sentence(
    name: str,
    answer: str,
    moves: Mapping[int, Moves],
    answers: Mapping[int, str],
    worst: float,
    headline: tuple[Summary, Summary],
) -> Note:
    """The answer, the counts of every layer behind it, and the headline before and after."""
    key, start = f"verdict_{name}", f"Verdict, {LABELS[name]}"
    words = {
        "not collapsed": "the sink share has not collapsed",
        "collapsed": "the sink share has collapsed",
        "none": "no row was above 50% to begin with",
        "no rows": "no word has a row, so there is no verdict",
    }[answer]
    if answer == "no rows":
        return Note(key, f"{start}: {words}.")
    counts = []
    for layer, moved in moves.items():
        if moved.before:
            some = f"{moved.stay:,}" if moved.stay else "none"
            counts.append(f"{some} of {moved.before:,} in layer {layer}")
    parts = [f"still above 50% of those word rows that were: {', '.join(counts)}"] if counts else []
    rose = [f"{moved.rose:,} in layer {layer}" for layer, moved in moves.items() if moved.rose]
    if rose:
        parts.append(f"rows that rose above 50%: {', '.join(rose)}")
    for which, what in (("none", "none to begin with"), ("no rows", "no word has a row")):
        layers = [layer for layer, said in answers.items() if said == which]
        if layers:
            parts.append(f"{what} in {layer_words(layers)}")
    medians = " to ".join(percent(summary.median) for summary in headline)
    halves = " to ".join(percent(summary.part(summary.above_half)) for summary in headline)
    text = "; ".join(parts)
    return Note(
        key,
        f"{start}: {words}. {text[0].upper()}{text[1:]} (worst row {percent(worst)}). "
        f"Headline: the median goes from {medians}, rows above 50% from {halves}.",
    )


def _links(words: WordTable, single: Sequence[tuple[int, ...]]) -> tuple[Table, ...]:
    """What a viewer would show: the named words in the last layer, and the rows with the most sink."""
    columns = (
        Column("text", "text", "d"),
        Column("layer", "layer", "d"),
        Column("head", "head", "d"),
        Column("word", "word"),
        Column("link", "link"),
        Column("shown", "shown", ".3f"),
        Column("of_row", "of row", ".4f"),
        Column("sink_share", "sink", ".1%"),
    )
    last = words.links(single[-1])
    named = [link for link in last if link.word.lower() in _NAMED][:8]
    every = [link for one in single for link in words.links(one)]
    worst = sorted(every, key=lambda link: -link.sink_share)[:5]
    note = ("shown: the displayed value, with the sink hidden; of row: the same link in the whole row",)
    tables = []
    if named:
        title = (
            f"Displayed links of {', '.join(sorted({link.word for link in named}))} in layer {single[-1][0]}"
        )
        chosen = "chosen by name, not by value: nouns that a reader links in the bundled sentences 1 to 3"
        tables.append(Table("links_named", title, columns, tuple(map(tuple, named)), (chosen, *note)))
    if worst:
        title = "The displayed links with the most sink in their row, any layer"
        tables.append(Table("links_most_sink", title, columns, tuple(map(tuple, worst)), note))
    return tuple(tables)


def _odds_law(table: RowTable) -> Check:
    """odds(s') = r odds(s) on every headline row, written without division: s' (1 - s) = r s (1 - s')."""
    share, worst, rows = table.shares["attention"], 0.0, 0
    for name in _NORMS:
        ratio, after = table.ratios[name], table.shares[name]
        known = np.isfinite(ratio) & ~np.isnan(after)
        left, right = after * (1 - share), ratio * share * (1 - after)
        off = np.abs(left - right)[known]
        rows += int(known.sum())
        worst = max(worst, float(off.max()) if off.size else 0.0)
    return Check(
        "odds_law",
        f"odds(s') = r odds(s) within {_ODDS_BOUND:g} on every row with an r",
        f"largest deviation {worst:.1e} on {rows:,} rows",
        worst <= _ODDS_BOUND,
    )
