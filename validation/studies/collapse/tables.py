"""The collapse study as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from validation.headline import length_words
from validation.report.document import Check, Column, Note, Part, Table
from validation.studies.collapse.drop import Drop, Level, find_drops, find_levels
from validation.studies.collapse.measured import CONTROLS, SINK, TAKEN
from validation.studies.collapse.split import split_rows
from validation.studies.collapse.study import Series
from validation.wording import counted, percent

__all__ = ["EXACT", "conclusion", "report", "summary_cells"]

EXACT = 1e-12  # nats: a row's change is a sum of a few terms below ln(n) + 1, each rounded once or twice

_IDENTITY = (
    "Row by row: dH = [dh(s) - ds mean(Hc)] + [(1 - mean s) dHc], sink channel plus content channel; then "
    "averaged. H over the sink set as one part and the content keys, h(s) of sink against content, Hc of the "
    "content alone, in nats."
)
_ALWAYS = "A sink channel always comes out, of any key: compare that of the sink with the controls'."
Drops = Mapping[tuple[str, int | None], Drop]


def report(series: Series) -> tuple[Part, ...]:
    """Everything that the study says of one series."""
    measured = [visit.measured for visit in series.visits]
    drops = find_drops(measured, series.setting.layers)
    first = measured[0]
    return (
        *_warnings(series),
        Note("identity", _IDENTITY),
        Note("sinks", _sink_words(first.sinks, series)),
        Note(
            "T",
            f"T: {length_words(sorted(set(first.lengths)))}; the same texts and rows at every checkpoint.",
            first.lengths,
        ),
        _rows_note(series, drops),
        *_checkpoints(series),
        _split_table(series, drops),
        _trend_table(drops),
        _controls_table(drops),
        _exact(series),
        Note("collapse", conclusion(series, drops)),
        *_notes(series),
    )


def conclusion(series: Series, drops: Drops) -> str:
    """The drop of all layers and its channels in one sentence, with the controls beside it."""
    drop = drops[SINK, None]
    start = _peak_step(series, drop)
    between = f"From step {start:,} (highest mean entropy) to step {series.steps[-1]:,}"
    if not drop.rows:
        return f"{between} no row is defined at every checkpoint, so there is nothing to split."
    if not drop.fell:
        return f"{between} the mean entropy does not fall: there is no drop to split."
    beside = ", ".join(
        f"{_channel_words(drops[name, None])} with the {name} taken for it" for name in CONTROLS
    )
    return (
        f"{between} the mean entropy falls by {-drop.ends.total:.3f} nats, {_channel_words(drop)} of it "
        f"through the sink channel ({percent(drop.path.part)} along the path); {beside}. The share of the "
        f"sink goes from {percent(drop.start.share)} to {percent(drop.end.share)}. {_ALWAYS}"
    )


def summary_cells(series: Series, drops: Drops) -> tuple[Any, ...]:
    """One line of figures: loss, peak, share, dH, the sink's part (with range and path), ds > 0, controls."""
    drop = drops[SINK, None]
    parts = (drop.ends.part, *drop.ends.range, drop.path.part, drop.trend.rose)
    controls = (drops[name, None].ends.part for name in CONTROLS)
    loss = series.visits[-1].measured.loss
    return (loss, _peak_step(series, drop), drop.end.share, drop.ends.total, *parts, *controls)


def _channel_words(drop: Drop) -> str:
    """The sink channel's part of a change with the range that the order of attribution spans."""
    low, high = drop.ends.range
    return f"{percent(drop.ends.part)} (by order of attribution {percent(low)} to {percent(high)})"


def _taken_words(name: str) -> str:
    """What was taken as the sink, for the eye."""
    return "the sink set" if name == SINK else f"the {name}"


def _warnings(series: Series) -> list[Note]:
    """What must stand above the numbers: what is missing, and weights that come twice."""
    notes = [
        Note("not_run", f"NOT RUN: step {checkpoint.step:,} ({checkpoint.name}) is left out. {said}")
        for checkpoint, said in series.excluded
    ]
    same = [visit for visit in series.visits if visit.same_as is not None]
    if same:
        said = ", ".join(f"step {visit.checkpoint.step:,} = step {visit.same_as:,}" for visit in same)
        notes.append(Note("duplicates", f"WARNING: equal weights by their hash: {said}."))
    return notes


def _notes(series: Series) -> list[Note]:
    notes = []
    if series.sorted:
        notes.append(Note("sorted", "The checkpoints were sorted by the steps in their names."))
    if series.from_file:
        said = counted(series.from_file, "checkpoint")
        notes.append(Note("resumed", f"Measured by an earlier run and taken from its file: {said}."))
    return [*notes, *series.file_notes]


def _sink_words(sinks: Sequence[tuple[str, int]], series: Series) -> str:
    """The sink set by position, or by token where tokens are fewer: [SEP] stands wherever a text ends."""
    asked = series.setting.sink if isinstance(series.setting.sink, str) else "given positions"
    tokens = list(dict.fromkeys(token for token, _ in sinks))
    places = {place: [token for token, at in sinks if at == place] for _, place in sinks}
    if len(tokens) < len(places):
        said = tokens
    else:
        said = [
            f"position {place} ({here[0] if len(here) == 1 else f'{len(here)} different tokens'})"
            for place, here in sorted(places.items())
        ]
    more = f" and {len(said) - 6} more" if len(said) > 6 else ""
    who = ", ".join(said[:6]) + more or "no key"
    return f"Sink set ({asked}): {who}. Content is every other visible key."


def _rows_note(series: Series, drops: Drops) -> Note:
    first, drop = series.visits[0].measured, drops[SINK, None]
    texts = counted(len(first.lengths), "text") + (
        f" ({first.skipped} without tokens skipped)" * bool(first.skipped)
    )
    few = series.setting.min_content_keys
    left = f"; {first.left_out:,} rows see fewer than {few} content keys" if first.left_out else ""
    lost = f"; {drop.undefined:,} have no content mass at some checkpoint" if drop.undefined else ""
    return Note("rows", f"Rows: {drop.rows:,} of content queries in {texts}{left}{lost}.")


def _checkpoints(series: Series) -> tuple[Table, ...]:
    """Means of every checkpoint: pooled, by layer where there are several, and the hashes for JSON."""
    measured = [visit.measured for visit in series.visits]
    columns = (
        Column("step", "step", ",d"),
        Column("loss", "loss", ".3f"),
        Column("sink_share", "sink", ".1%"),
        Column("entropy", "H", ".3f"),
        Column("binary", "h(s)", ".3f"),
        Column("content", "Hc", ".3f"),
        Column("least_share", "s*", ".1%"),
        Column("above_least", ">s*", ".1%"),
        Column("same_as", "equals", ",d"),
    )
    rows = [
        (visit.checkpoint.step, visit.measured.loss, *_level_cells(level), visit.same_as)
        for visit, level in zip(series.visits, find_levels(measured), strict=True)
    ]
    notes = (
        "loss: mean negative log likelihood of a token (nats); means over the same rows throughout",
        "s*: mean of 1/(1 + exp(Hc)), the share from which a growing sink lowers H at all; >s*: rows above "
        "it; equals: an earlier step with the same weights",
    )
    tables = [Table("checkpoints", "Checkpoints, all layers", columns, tuple(rows), notes)]
    if len(series.setting.layers) > 1:
        by_layer = [
            (visit.checkpoint.step, layer, *_level_cells(level))
            for layer in series.setting.layers
            for visit, level in zip(series.visits, find_levels(measured, layer), strict=True)
        ]
        some = (columns[0], Column("layer", "layer", "d"), *columns[2:-1])
        tables.append(Table("checkpoints_by_layer", "Checkpoints by layer", some, tuple(by_layer)))
    hashes = tuple(
        (visit.checkpoint.step, visit.checkpoint.name, visit.file_sha256, visit.weights)
        for visit in series.visits
    )
    named = (
        columns[0],
        Column("name", "name"),
        Column("file_sha256", "file"),
        Column("weights_sha256", "weights"),
    )
    return (*tables, Table("checkpoint_files", "Files and weights", named, hashes, shown=False))


def _level_cells(level: Level) -> tuple[float, ...]:
    return (level.share, level.total, level.binary, level.content, level.least, level.above)


def _split_table(series: Series, drops: Drops) -> Table:
    columns = (
        Column("layer", "layer"),
        Column("way", "way"),
        Column("change", "dH", ".4f"),
        Column("sink", "sink", ".4f"),
        Column("content", "content", ".4f"),
        Column("sink_part", "sink part", ".1%"),
        Column("sink_part_low", "from", ".1%"),
        Column("sink_part_high", "to", ".1%"),
    )
    rows = []
    for (taken, layer), drop in drops.items():
        if taken == SINK:
            for way, split in (("ends", drop.ends), ("path", drop.path)):
                cells = (split.total, split.sink, split.content, split.part, *split.range)
                rows.append((_layer_word(layer), way, *cells))
    start = _peak_step(series, drops[SINK, None])
    title = f"The change of entropy from step {start:,} (the peak) to step {series.steps[-1]:,}, nats"
    notes = (
        "ends: first against last at once; path: every step by itself, summed. A part above 100% or below 0% "
        "means that the other channel went the other way.",
        "from, to: the sink's part when ds is weighed by Hc before or after; sink part stands midway",
    )
    return Table("channels", title, columns, tuple(rows), notes)


def _trend_table(drops: Drops) -> Table:
    columns = (
        Column("layer", "layer"),
        Column("share_start", "s, peak", ".1%"),
        Column("share_end", "s, last", ".1%"),
        Column("share_change", "ds", "+.3f"),
        Column("rose", "ds > 0", ".1%"),
        Column("sink_where_rose", "sink, rose", ".4f"),
        Column("sink_elsewhere", "sink, other", ".4f"),
        Column("least_start", "s*, peak", ".1%"),
        Column("above_end", ">s*, last", ".1%"),
    )
    rows = []
    for (taken, layer), drop in drops.items():
        if taken == SINK:
            shares = (drop.start.share, drop.end.share)
            rows.append((_layer_word(layer), *shares, *drop.trend, drop.start.least, drop.end.above))
    notes = (
        "ds > 0: rows whose share rose; sink, rose: the sink channel of those, and of the others, in nats "
        "over all rows (ends): a sink that shrinks below s* lowers the entropy too",
    )
    return Table("shares", "Did the sink grow?", columns, tuple(rows), notes)


def _controls_table(drops: Drops) -> Table:
    columns = (
        Column("layer", "layer"),
        Column("taken", "taken as the sink"),
        Column("share_start", "s, peak", ".1%"),
        Column("share_end", "s, last", ".1%"),
        Column("sink_part", "its part", ".1%"),
        Column("sink_part_low", "from", ".1%"),
        Column("sink_part_high", "to", ".1%"),
        Column("sink_part_path", "path", ".1%"),
        Column("rose", "ds > 0", ".1%"),
        Column("rows", "rows", ",d"),
    )
    layers = list(dict.fromkeys(layer for _, layer in drops))
    rows = tuple(_control_row(drops[taken, layer]) for layer in layers for taken in TAKEN)
    notes = ("its part: of the same drop, the channel of that key against all others", _ALWAYS)
    return Table("controls", "Controls: other keys taken as the sink", columns, rows, notes)


def _control_row(drop: Drop) -> tuple[Any, ...]:
    parts = (drop.ends.part, *drop.ends.range, drop.path.part, drop.trend.rose, drop.rows)
    return (_layer_word(drop.layer), _taken_words(drop.taken), drop.start.share, drop.end.share, *parts)


def _exact(series: Series) -> Check:
    """dH, measured from the rows, against the sum of the two channels, over every step and every row."""
    worst, compared = 0.0, 0
    for before, after in zip(series.visits, series.visits[1:], strict=False):
        for taken in TAKEN:
            change = split_rows(before.measured.rows[taken], after.measured.rows[taken])
            off = abs(change.total - change.sink - change.content)
            known = off[off == off]
            compared += len(known)
            worst = max(worst, float(known.max(initial=0)))
    return Check(
        "exact",
        f"dH = sink channel + content channel within {EXACT:g} nats in every row, from each step to the next",
        f"largest deviation {worst:.1e} in {compared:,} rows",
        worst <= EXACT,
    )


def _peak_step(series: Series, drop: Drop) -> int:
    return series.steps[drop.peak]


def _layer_word(layer: int | None) -> str:
    return "all" if layer is None else str(layer)
