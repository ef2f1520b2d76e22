"""Where it does not matter whether the sink is kept: a map over metrics and layers, and a sentence each."""

from __future__ import annotations

import math

from validation.audit.context import Context
from validation.audit.flips import ALL, WITHIN, Analysis, Scope
from validation.audit.rule import (
    CANNOT_SAY,
    DEPENDS,
    FLOOR_TOO_HIGH,
    MIN_SPLITS,
    MIN_TRIPLES,
    SAFE,
    SINK_ALONE,
    highest,
)
from validation.audit.tables import Missing
from validation.headline import layer_words
from validation.metric_names import metric_name
from validation.report.document import Column, Note, Table
from validation.wording import counted, percent

__all__ = ["cell", "closing_notes", "safety_tables"]

_SIGNS = {SAFE: "≤", DEPENDS: ">", CANNOT_SAY: "?"}


def safety_tables(analysis: Analysis, context: str) -> tuple[Table, ...]:
    """The map for the eye, and the same with every number for JSON."""
    layers = sorted(set(analysis.distances.layers.tolist()))
    scopes: list[Scope] = [ALL, WITHIN, *layers]
    columns = (Column("layer", "layer"), *(Column(name, metric_name(name)) for name in analysis.flips))
    rows = tuple(
        (
            {ALL: "all", WITHIN: "within"}.get(str(scope), str(scope)),
            *(_cell(analysis, metric, scope) for metric in analysis.flips),
        )
        for scope in scopes
    )
    intro = (
        "each cell: flips between keep and drop, then the upper end of the floors, in per cent; "
        "≤ safe, > depends, ? cannot say, 'sink' heads differ in their sink alone; the rule stands above. "
        "all: every triple; within: the triples of all layers by themselves; then each layer's",
    )
    title = "Where keep and drop give the same verdicts, by metric and layer"
    shown = Table("safety_map", title, columns, rows, (context,), intro)
    return shown, _listed(analysis, scopes)


def closing_notes(analysis: Analysis, context: Context, subject: str, missing: Missing) -> tuple[Note, ...]:
    """A sentence for each metric that can stand in a paper; `subject` names the model or the file."""
    notes = [Note("closing", _sentence(analysis, metric, context, subject)) for metric in analysis.flips]
    notes += [
        Note("closing", f"{metric_name(metric)}: not computed, so nothing is said of it ({why}).")
        for metric, why in missing.items()
    ]
    return tuple(notes)


def _cell(analysis: Analysis, metric: str, scope: Scope) -> str:
    rate, top = analysis.flips[metric][scope].rate, highest(analysis.both_floors(metric, scope))
    return cell(analysis.verdict(metric, scope), rate, top)


def cell(verdict: str, flips: float, floor: float) -> str:
    """A verdict for the eye, such as "27>6.3": flips and the upper end of the floors, both in per cent."""
    return "sink" if verdict == SINK_ALONE else f"{_short(flips)}{_SIGNS[verdict]}{_short(floor)}"


def _short(share: float) -> str:
    """A share in per cent, as short as it can be read."""
    return "–" if math.isnan(share) else f"{100 * share:.{0 if share >= 0.0995 else 1}f}"


def _listed(analysis: Analysis, scopes: list[Scope]) -> Table:
    columns = (
        Column("metric", "metric"),
        Column("scope", "triples"),
        Column("verdict", "verdict"),
        Column("flips", "flips", ".1%"),
        Column("floor_keep", "floor keep", ".1%"),
        Column("floor_keep_high", "to", ".1%"),
        Column("floor_drop", "floor drop", ".1%"),
        Column("floor_drop_high", "to", ".1%"),
        Column("triples", "triples", ",d"),
        Column("tied", "tied", ",d"),
        Column("undefined", "undefined", ",d"),
    )
    rows = []
    for metric, scoped in analysis.flips.items():
        for scope in scopes:
            found, floors = scoped[scope], analysis.both_floors(metric, scope)
            ends = [end for floor in floors for end in (floor.median, floor.high)]
            counts = (found.triples, found.tied, found.undefined)
            place = f"layer {scope}" if isinstance(scope, int) else scope
            rows.append((metric, place, analysis.verdict(metric, scope), found.rate, *ends, *counts))
    title = "Keep against drop by metric and layer"
    return Table("safety", title, columns, tuple(rows), shown=False)


def _sentence(analysis: Analysis, metric: str, context: Context, subject: str) -> str:
    found, verdict = analysis.flips[metric][ALL], analysis.verdict(metric, ALL)
    floors = analysis.both_floors(metric, ALL)
    name, rate = metric_name(metric), percent(found.rate)
    flips = (
        f"{rate} of {found.triples:,} verdicts on which of two heads of {subject} is nearer to a third flip "
        "when the sink is dropped instead of kept"
    )
    noise = (
        f"between random halves of the texts {percent(max(floor.median for floor in floors))} flip (median "
        f"of {counted(analysis.drawn, 'different split')} under the noisier convention, "
        f"{percent(highest(floors))} at most)"
    )
    end = {
        DEPENDS: f"{flips}; {noise}. Such conclusions depend on the sink.",
        SAFE: f"{flips}; {noise}. Dropping the sink changes such conclusions no more than other texts "
        "would, and hardly any.",
        SINK_ALONE: "with the sink dropped all distances vanish: the heads differ in their sink alone.",
    }.get(verdict, f"{flips}; {_why_not(analysis, metric, noise)}, so nothing is concluded.")
    return f"{name}: {end}{_by_layer(analysis, metric)} ({context.words})"


def _why_not(analysis: Analysis, metric: str, noise: str) -> str:
    """Why the rule cannot say anything."""
    if analysis.distances.blocks < 2:
        return "of one text no noise floor can be given"
    if analysis.flips[metric][ALL].triples < MIN_TRIPLES:
        return f"fewer than {MIN_TRIPLES} triples are too few"
    if analysis.drawn < MIN_SPLITS:
        splits = counted(analysis.drawn, "different split")
        return f"{counted(analysis.distances.blocks, 'text')} can be halved in {splits} only"
    known = min(len(floor.known) for floor in analysis.both_floors(metric, ALL))
    if known < MIN_SPLITS:
        return f"of {analysis.drawn} splits {known} leave triples in both halves, too few for a floor"
    return (
        f"{noise}. That is above {FLOOR_TOO_HIGH:.0%}: other texts would change so many verdicts that an "
        "effect of the sink could hide among them"
    )


def _by_layer(analysis: Analysis, metric: str) -> str:
    """Which layers, compared by themselves, are safe and which are not; nothing of a single layer."""
    layers = sorted(set(analysis.distances.layers.tolist()))
    if len(layers) < 2 or analysis.distances.blocks < 2:
        return ""
    by = {
        verdict: [layer for layer in layers if analysis.verdict(metric, layer) == verdict]
        for verdict in (DEPENDS, SAFE, SINK_ALONE, CANNOT_SAY)
    }
    words = [f"{verdict} in {layer_words(found)}" for verdict, found in by.items() if found]
    return f" Within a layer: {', '.join(words)}."
