"""What the norm-weighting experiment published, beside this model's figures; its arithmetic, done again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import oracle
from validation.claims import Figure, figure
from validation.headline import layer_words
from validation.report.document import Column, Note, Part, Table
from validation.sink_report import SinkReport
from validation.table import WEIGHTINGS
from validation.word_table import WordTable

__all__ = ["SOURCE", "arithmetic", "beside_published", "published"]

SOURCE = (
    "Source of what is called published: a blog experiment on norm-weighted attention; figures as published, "
    "its text is not reproduced here. Its measure: Kobayashi et al., EMNLP 2020, arXiv 2004.10102."
)


_SHOWN = (
    "median_attention",
    "median_value_norm",
    "median_transformed_norm",
    "worst_attention",
    "worst_value_norm",
    "half_attention",
    "half_value_norm",
    "ninety_attention",
    "ninety_value_norm",
    "worse_value_norm",
    "same_head_value_norm",
    "ratio_[CLS]",
    "below_[CLS]",
    "ratio_[SEP]",
    "below_[SEP]",
)


def published() -> Mapping[str, Figure]:
    """The figures by their keys, as they are shown; InputError where they cannot be had.

    Of 4 layers, 16 heads, 256 wide; 14 sentences, 110 words, one row each on the head that a viewer
    would open.
    """
    return {key: figure(key) for key in _SHOWN}


def beside_published(words: WordTable, sinks: SinkReport, figures: Mapping[str, Figure]) -> Table:
    """The 4-layer model's figures, with this model's: its layers as one stated set, and each by itself.

    The last of `words.sets` is all layers together; with a single layer the two columns are the same.
    """
    one, each = words.sets[-1:], [chosen for chosen in words.sets if len(chosen) == 1]
    here = [_figures(words, sets) | _ratios(sinks) for sets in (one, each)]
    columns = (
        Column("figure", "figure"),
        Column("published", "other", ".3f"),
        Column("published_rows", "n", ",d"),
        Column("published_of", "of", ",d"),
        Column("one_set", "one set", ".3f"),
        Column("each_layer", "each layer", ".3f"),
    )
    rows = tuple(
        (one.name, one.value, one.count, one.of, *(side.get(key) for side in here))
        for key, one in figures.items()
    )
    notes = (
        "other: ANOTHER MODEL (4 layers, 16 heads, 256 wide) on other sentences, of a T that is not stated",
        f"here: one row per word over {layer_words(one[0])} as one set, and the rows of each layer together",
        "The two stand side by side for the eye; neither reproduces the other.",
        SOURCE,
    )
    return Table("published", "Published figures of another model, beside this one", columns, rows, notes)


def _figures(words: WordTable, sets: Sequence[tuple[int, ...]]) -> dict[str, float]:
    here: dict[str, float] = {}
    for name in WEIGHTINGS:
        found = words.summary(name, *sets)
        here |= {
            f"median_{name}": found.median,
            f"worst_{name}": found.worst,
            f"half_{name}": found.part(found.above_half),
            f"ninety_{name}": found.part(found.above_ninety),
            f"same_head_{name}": found.part(sum(words.same_head(name, chosen) for chosen in sets)),
        }
        if found.worse is not None:
            here[f"worse_{name}"] = found.part(found.worse)
    return here


def _ratios(sinks: SinkReport) -> dict[str, float]:
    here: dict[str, float] = {}
    for label in ("[CLS]", "[SEP]"):
        values = sinks.ratio_values(label)
        if len(values):
            here[f"ratio_{label}"] = float(np.median(values))
            here[f"below_{label}"] = float((values < 1).mean())
    return here


def arithmetic() -> tuple[Part, ...]:
    """What a ratio of 0.6 does to a row of 95%, by the oracle itself, and what it would take to get 73%."""
    share, published_ratio, result = (
        figure(f"claimed_{name}").value for name in ("share", "ratio", "result")
    )
    row, sinks = [[share, 1 - share]], [True, False]

    def weighted(ratio: float) -> float:
        return float(oracle.sink_share(row, sinks, [ratio, 1.0])[0])

    needed = _odds(result) / _odds(share)
    columns = (
        Column("what", "a row of 95% sink"),
        Column("ratio", "r", ".3f"),
        Column("sink_share", "becomes", ".3f"),
    )
    rows = (
        ("as published: sink norm 0.6 of the content's", published_ratio, result),
        ("by the odds law, measured by the oracle", published_ratio, weighted(published_ratio)),
        ("the ratio that would give 73%", needed, weighted(needed)),
    )
    text = (
        f"The published arithmetic is wrong: a row of {share:.0%} with r = {published_ratio} goes to "
        f"{weighted(published_ratio):.1%}, not to {result:.0%}; that would take r = {needed:.3f}."
    )
    table = Table("arithmetic", "A published sum, done again", columns, rows, (SOURCE,))
    return table, Note("arithmetic", text)


def _odds(share: float) -> float:
    return share / (1 - share)
