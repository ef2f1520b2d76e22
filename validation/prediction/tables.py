"""The tables and sentences of a prediction."""

from __future__ import annotations

from collections.abc import Sequence

from validation.metric_names import metric_name
from validation.prediction.frozen import Predictor
from validation.prediction.judging import ABSTAINED, CONFIRMED, FAILED, RULES, Judged
from validation.prediction.statistics import Statistics
from validation.report.document import Column, Note, Table

__all__ = ["closing_note", "predictor_notes", "rate_tables", "statistics_table"]

_NAMES = {
    "sink_share": "mean sink share of the heads",
    "sink_spread": "its standard deviation between heads",
    "content_entropy": "mean content entropy over mean log n",
    "content_keys": "n, content keys of a row",
}


def predictor_notes(predictor: Predictor, fitted_on_this: bool) -> tuple[Note, ...]:
    """Which predictor it is, and that a model it was fitted on is no test of it."""
    models = " and ".join(model["name"] for model in predictor.data["models"])
    sha256, made = predictor.frozen
    form = predictor.data["form"]
    said = f"Predictor: fitted on {models} alone, frozen on {made}, SHA-256 {sha256[:16]}: {form}."
    notes = [Note("predictor", said)]
    if fitted_on_this:
        said = (
            "The predictor was fitted on this very model: what follows says how well it fits, not predicts."
        )
        notes.append(Note("fitted_on_this", said))
    return tuple(notes)


def statistics_table(predictor: Predictor, statistics: Statistics, context: str) -> Table:
    """What the prediction is made from, beside the ranges that were fitted."""
    columns = (
        Column("statistic", "statistic"),
        Column("value", "here", ".3f"),
        Column("low", "fitted from", ".3f"),
        Column("high", "to", ".3f"),
        Column("inside", "inside"),
    )
    outside = predictor.outside(statistics)
    rows = tuple(
        (_NAMES[name], value, *predictor.ranges[name], "no" if name in outside else "yes")
        for name, value in statistics._asdict().items()
    )
    title = "Statistics under keep, which are all that a prediction is made from"
    return Table("statistics", title, columns, rows, (context,))


def rate_tables(judged: Sequence[Judged], context: str) -> tuple[Table, ...]:
    """Prediction, observation, floors, law and verdict of every metric; all of it once more for JSON."""
    columns = (
        Column("metric", "metric"),
        Column("predicted", "predicted", ".1%"),
        Column("tolerance", "±", ".0%"),
        Column("observed", "observed", ".1%"),
        Column("floor_keep", "floor keep", ".1%"),
        Column("floor_keep_high", "to", ".1%"),
        Column("floor_drop", "floor drop", ".1%"),
        Column("law", "law", ".1%"),
        Column("verdict", "verdict"),
    )
    more = (
        Column("floor_drop_high", "to", ".1%"),
        Column("triples", "triples", ",d"),
        Column("why_not", "why not"),
    )
    rows, details = [], []
    for one in judged:
        keep, drop = one.floors
        predicted = one.prediction
        cells = (
            *(metric_name(one.metric), predicted.rate, predicted.tolerance, one.observed),
            *(keep.median, keep.high, drop.median, one.law, one.verdict),
        )
        rows.append(cells)
        details.append((*cells, drop.high, one.triples, predicted.why_not))
    notes = (
        "floor: the same flips between random halves of the texts under one convention, median and most",
        "law: arccos(rho) / pi from both conventions, mean over the anchors; nothing in it is fitted",
        *_why_not(judged),
        context,
    )
    title = "Flips between keep and drop: predicted and observed"
    return (
        Table("predictions", title, columns, tuple(rows), notes, RULES),
        Table("prediction_details", title, (*columns, *more), tuple(details), shown=False),
    )


def closing_note(judged: Sequence[Judged], subject: str, context: str, fitted_on_this: bool = False) -> Note:
    """How many metrics were confirmed, abstained from and failed, by name; and whether that is a test."""
    by = {
        verdict: [metric_name(one.metric) for one in judged if one.verdict == verdict]
        for verdict in (CONFIRMED, ABSTAINED, FAILED)
    }
    counts = "; ".join(
        f"{len(names)} {verdict}" + (f" ({', '.join(names)})" if names else "")
        for verdict, names in by.items()
    )
    if fitted_on_this:
        counts += ". No test: the predictor was fitted on this model"
    return Note("closing", f"{subject}: {counts}. ({context})")


def _why_not(judged: Sequence[Judged]) -> tuple[str, ...]:
    """One line for each reason to abstain, with the metrics that it holds for."""
    reasons: dict[str, list[str]] = {}
    for one in judged:
        if one.prediction.why_not:
            reasons.setdefault(one.prediction.why_not, []).append(metric_name(one.metric))
    everywhere = len(judged)
    return tuple(
        f"abstained ({'all' if len(names) == everywhere else ', '.join(names)}): {why}"
        for why, names in reasons.items()
    )
