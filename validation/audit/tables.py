"""The tables of an audit: distances, flips with their floors, counts, anchors, zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.distances import CONVENTIONS
from validation.audit.distances import Distances
from validation.audit.flips import ALL, LEAST_MARGIN, MARGIN, WITHIN, Analysis, pair_values
from validation.audit.rule import MIN_SPLITS, RULE
from validation.metric_names import metric_name
from validation.report.document import Column, Table
from validation.wording import counted

__all__ = ["Missing", "anchor_table", "count_table", "distance_table", "flip_tables", "sensitivity_table"]

Array = NDArray[Any]
Missing = Mapping[str, str]  # metrics that were not computed, and why

_METRIC = Column("metric", "metric")
_SCOPES = {
    ALL: ("verdicts", "all triples of heads"),
    WITHIN: ("verdicts_within", "triples within a layer"),
    MARGIN: ("verdicts_margin", f"triples with both margins above {LEAST_MARGIN:.0%} of the anchor's median"),
}
_FLOOR = (
    "floor: the same flips between random halves of the texts under one convention; median, least and most "
    "of the splits. Half the texts are noisier than all, so it is rather too high than too low."
)
_MARGINS = (
    "margins are shares of the distances as they stand, of squares (cosine, JSD, Aitchison) or not (others). "
    "10% of a square is about 5% of its root, so that this table does not compare metrics with each other; "
    "'sink alone' is judged by all pairs of heads, with a margin or without"
)
_LAW = (
    "law: arccos(rho) / pi, mean over the anchors: what the flips would be, were the two distances jointly "
    "Gaussian with the correlation rho that they have"
)


def flip_tables(analysis: Analysis, missing: Missing, context: str) -> tuple[Table, ...]:
    """Flips between keep and drop with the floors of both, for each kind of triple."""
    return tuple(_flip_table(analysis, missing, context, scope) for scope in _SCOPES)


def distance_table(analysis: Analysis, missing: Missing, context: str) -> Table:
    """How large the distances are under either convention, and how they go together."""
    distances = analysis.distances
    columns = (
        _METRIC,
        Column("median_keep", "median keep", ".4g"),
        Column("median_drop", "median drop", ".4g"),
        Column("correlation", "correlation", ".3f"),
        Column("pairs", "pairs", ",d"),
    )
    rows = []
    for metric in analysis.flips:
        keep, drop = (distances.mean(metric, convention) for convention in CONVENTIONS)
        medians = (analysis.median(metric, convention) for convention in CONVENTIONS)
        rows.append((metric_name(metric), *medians, _correlation(keep, drop), len(pair_values(keep))))
    rows += [(metric_name(metric), *[None] * 4) for metric in missing]
    notes = (
        "JSD in nats, entropy |dH| in nats, Aitchison the mean squared distance; means over the pooled rows",
        *_sink_part(distances),
        *_whys(missing),
        context,
    )
    title = "Distances between heads, and keep against drop over all pairs"
    return Table("distances", title, columns, tuple(rows), notes)


def count_table(analysis: Analysis, context: str) -> Table:
    """How many triples every rate is of, and what was left out."""
    columns = (
        _METRIC,
        Column("scope", "triples"),
        Column("triples", "judged", ",d"),
        Column("flipped", "flipped", ",d"),
        Column("tied", "tied", ",d"),
        Column("undefined", "undefined", ",d"),
        Column("rows_left_out_keep", "row pairs left out, keep", ",d"),
        Column("rows_left_out_drop", "row pairs left out, drop", ",d"),
    )
    rows = []
    for metric, scoped in analysis.flips.items():
        lost = [analysis.distances.left_out(metric, convention) for convention in CONVENTIONS]
        for scope in _SCOPES:
            found = scoped[scope]
            counts = (found.triples, found.flipped, found.tied, found.undefined)
            rows.append((metric_name(metric), scope, *counts, *lost))
    notes = (
        "a triple is an anchor and two other heads; tied (1e-12 relative) in either matrix it is no flip; "
        "undefined triples are left out",
        "a pair of rows is left out where either row is undefined under that convention",
        context,
    )
    return Table("verdict_counts", "What the flips are of", columns, tuple(rows), notes)


def anchor_table(analysis: Analysis, context: str) -> Table:
    """How the flips are spread over the anchors."""
    columns = (
        _METRIC,
        Column("least", "least", ".1%"),
        Column("median", "median", ".1%"),
        Column("worst", "worst", ".1%"),
        Column("worst_head", "worst anchor"),
        Column("law_there", "law there", ".1%"),
        Column("floor", "floor", ".1%"),
    )
    rows = []
    for metric, scoped in analysis.flips.items():
        rates = scoped[ALL].per_anchor
        if np.isnan(rates).all():
            continue
        worst = int(np.nanargmax(rates))
        layer, head = analysis.distances.heads[worst]
        spread = (float(np.nanmin(rates)), float(np.nanmedian(rates)), float(rates[worst]))
        floor = max(analysis.floors[metric, convention][ALL].median for convention in CONVENTIONS)
        rows.append(
            (metric_name(metric), *spread, f"L{layer} H{head}", float(analysis.law[metric][worst]), floor)
        )
    notes = ("floor: the larger median of keep and drop over all anchors, as above", context)
    title = "Flips between keep and drop by anchor, all triples"
    return Table("anchors", title, columns, tuple(rows), notes)


def sensitivity_table(analysis: Analysis, chosen: float | None, context: str) -> tuple[Table, ...]:
    """What Aitchison's distances become with other numbers in the place of zeros; nothing without such."""
    impossible = analysis.distances.impossible
    if not analysis.against and not impossible:
        return ()
    columns = (
        Column("delta", "delta", ".0e"),
        Column("median_keep", "median d², keep", ".4g"),
        Column("median_drop", "median d², drop", ".4g"),
        Column("flips", "flips keep/drop", ".1%"),
        Column("flips_keep", "against chosen, keep", ".1%"),
        Column("flips_drop", "against chosen, drop", ".1%"),
    )
    rows = []
    for delta in sorted({*analysis.against, *impossible}, reverse=True):
        if delta in impossible:
            rows.append((delta, *[None] * 5))
            continue
        found = analysis.against[delta]
        medians = (analysis.median_again(delta, convention) for convention in CONVENTIONS)
        rows.append((delta, *medians, *(found[name].rate for name in ("both", "keep", "drop"))))
    notes = (
        f"chosen: {chosen:g}. Zeros become delta, the other parts are scaled down; where these rows differ "
        "the answer is the delta's",
        *(f"{delta:.0e} is not possible: {why}" for delta, why in sorted(impossible.items(), reverse=True)),
        context,
    )
    title = "Aitchison's distance by what replaces zeros"
    return (Table("zeros_sensitivity", title, columns, tuple(rows), notes),)


def _flip_table(analysis: Analysis, missing: Missing, context: str, scope: str) -> Table:
    key, which = _SCOPES[scope]
    columns = [_METRIC, Column("flips", "flips", ".1%")]
    for convention in CONVENTIONS:
        columns += [
            Column(f"floor_{convention}", f"floor {convention}", ".1%"),
            Column(f"floor_{convention}_low", "from", ".1%"),
            Column(f"floor_{convention}_high", "to", ".1%"),
        ]
    with_law = scope == ALL
    columns += [Column("law", "law", ".1%")] * with_law + [Column("verdict", "verdict")]
    rows = []
    for metric, scoped in analysis.flips.items():
        cells: list[Any] = [metric_name(metric), scoped[scope].rate]
        for convention in CONVENTIONS:
            floor = analysis.floors[metric, convention][scope]
            cells += [floor.median, floor.low, floor.high]
        law = analysis.law[metric]
        cells += [float(np.nanmean(law)) if not np.isnan(law).all() else float("nan")] * with_law
        rows.append((*cells, analysis.verdict(metric, scope)))
    empty = [None] * (len(columns) - 2)
    rows += [(metric_name(metric), *empty, "not computed") for metric in missing]
    intro = (_FLOOR, _LAW, *RULE) if with_law else (_MARGINS,) if scope == MARGIN else ()
    notes = (_split_words(analysis), *_whys(missing), context)
    title = f"Verdicts that flip when the sink is dropped: {which}"
    return Table(key, title, tuple(columns), tuple(rows), notes, intro)


def _split_words(analysis: Analysis) -> str:
    """How many splits the floors are of, and whether that is enough."""
    if not analysis.drawn:
        return "one text cannot be split: no floor, and so nothing is concluded"
    few = ", too few to conclude anything" if analysis.drawn < MIN_SPLITS else ""
    return f"floors over {counted(analysis.drawn, 'different split')} of the texts{few}"


def _whys(missing: Missing) -> tuple[str, ...]:
    return tuple(f"{metric_name(metric)} not computed: {why}" for metric, why in missing.items())


def _sink_part(distances: Distances) -> tuple[str, ...]:
    """How much of Aitchison's squared distance under keep is the sink's, over all pairs."""
    if "aitchison_sink" not in distances.metrics:
        return ()
    values = [distances.mean(name, "keep") for name in ("aitchison_sink", "aitchison")]
    sink, total = (float(pair_values(value).sum()) for value in values)
    if not total > 0:
        return ()
    return (f"of Aitchison's squared distance under keep {sink / total:.1%} is the sink's, over all pairs",)


def _correlation(first: Array, second: Array) -> float:
    """Pearson's, over the pairs that are defined in both; NaN where one side does not vary."""
    upper = np.triu_indices(len(first), 1)
    pair = np.array([first[upper], second[upper]])
    pair = pair[:, ~np.isnan(pair).any(axis=0)]
    if pair.shape[1] < 2 or (np.ptp(pair, axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(pair)[0, 1])
