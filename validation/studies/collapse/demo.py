"""The embedded series measured: every one of them, and what is the same over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oracle._checks import InputError, Unavailable
from validation.claims import figure
from validation.progress import Progress, silent
from validation.report.document import Check, Column, Note, Part, Table
from validation.studies.collapse.drop import Drop, find_drops, find_levels
from validation.studies.collapse.embedded import SEEDS, STEPS, Embedded, default_folder, make
from validation.studies.collapse.measured import CONTROLS, SINK
from validation.studies.collapse.study import Series, collapse
from validation.studies.collapse.tables import report, summary_cells
from validation.wording import counted, percent

__all__ = ["FORMING_WIDTHS", "LABELS", "SINK_ABOVE", "Shown", "demo"]

LABELS = {
    "backcopy": "bigram text with copying after a trigger (Guo et al. 2024, arXiv 2410.13835), a task made "
    "so that a head with nothing to do needs a sink; one layer, one head: no language model",
    "source": "contrast: source text of Python's standard library under a small model without a BOS, which "
    "shows what the split gives where no sink forms",
}
_SIZES = {"70m": "70M parameters", "1b": "1B", "1.4b": "1.4B"}
SINK_ABOVE, FORMING_WIDTHS = 0.5, (64, 128)
"""The share that a sink reaches at the end in every bigram series of these widths, on every processor tried.

By how far depends on the processor, as training rounds otherwise there: at width 128 three seeds ended at
66.5% to 76.8% on one and at 54.8% to 79.1% on another.
"""

_LATE = 4  # at a constant rate of learning the share still swings from one checkpoint to the next


class Shown(NamedTuple):
    """One measured series of the demonstration."""

    embedded: Embedded
    series: Series
    drops: Mapping[tuple[str, int | None], Drop]


def demo(
    planned: Sequence[Embedded],
    *,
    folder: Path | None = None,
    engine: str = "fastpath",
    results: str | None = None,
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> tuple[tuple[Shown, ...], tuple[Part, ...]]:
    """Train what is not there, measure all, and say what came out: the series, and the parts of the report.

    The series stand in `folder`, by default in the user's cache. A kind that cannot be had (no source text of
    Python) is named and left out. Errors as `embedded.make` and `collapse`.
    """
    place = default_folder() if folder is None else folder
    shown: list[Shown] = []
    missing: list[Note] = []
    for number, embedded in enumerate(planned):
        progress(embedded.name, number, len(planned))
        try:
            checkpoints, texts = make(embedded, place, progress)
        except Unavailable as error:
            if embedded.kind == "backcopy" or "source text" not in str(error):
                raise
            missing.append(Note("not_run", f"NOT RUN: {embedded.name}: {error}"))
            continue
        series = collapse(
            [str(checkpoint) for checkpoint in checkpoints],
            texts,
            engine=engine,
            results=results,
            on_compile=on_compile,
            progress=progress,
        )
        measured = [visit.measured for visit in series.visits]
        shown.append(Shown(embedded, series, find_drops(measured, series.setting.layers)))
    return tuple(shown), (*missing, *_parts(shown))


def _no_trend() -> Note:
    """What is published of a trend over size, and that none of it is shown here."""
    try:
        published = [f"{figure(f'collapse_{size}').value:.0%} at {words}" for size, words in _SIZES.items()]
    except InputError as error:
        return Note("not_run", f"NOT RUN: the published trend over model size beside these: {error}")
    return Note(
        "no_trend",
        "These series are toys, trained in minutes. The trend over model size that the preprint reports ("
        f"{', '.join(published)}) is neither tested nor supported by them.",
    )


def _parts(shown: Sequence[Shown]) -> Iterable[Part]:
    kinds = dict.fromkeys(one.embedded.kind for one in shown)
    for kind in kinds:
        yield Note(f"what_{kind}", f"{kind}: {LABELS[kind]}.")
    yield _no_trend()
    lengths = tuple(sorted({length for one in shown for length in one.series.visits[0].measured.lengths}))
    yield Note("T", "T: " + ", ".join(map(str, lengths)) + "; each series is measured at one T.", lengths)
    yield _all_series(shown)
    yield _over_seeds(shown)
    yield from _forming(shown)
    yield from _sentences(shown)
    examples = _examples(shown)
    for one in examples:
        yield Note("section", f"{one.embedded.name}, step by step")
        yield from report(one.series)
    for one in shown:
        if one not in examples:
            yield from _for_json(one)


def _for_json(one: Shown) -> Iterable[Part]:
    """The checks of a series, and its tables under its own name where only programs read them."""
    for part in report(one.series):
        if isinstance(part, Check):
            yield replace(part, key=f"{one.embedded.name}: {part.key}")
        elif isinstance(part, Table):
            yield replace(part, key=f"{one.embedded.name}: {part.key}", shown=False)


def _all_series(shown: Sequence[Shown]) -> Table:
    """One line for each series."""
    columns = (
        Column("series", "series"),
        Column("loss", "loss", ".3f"),
        Column("peak", "peak", ",d"),
        Column("share", "sink", ".1%"),
        Column("change", "dH", ".3f"),
        Column("sink_part", "sink part", ".1%"),
        Column("low", "from", ".1%"),
        Column("high", "to", ".1%"),
        Column("path", "path", ".1%"),
        Column("rose", "ds > 0", ".1%"),
        Column("own", "own", ".1%"),
        Column("previous", "previous", ".1%"),
    )
    rows = tuple((one.embedded.name, *summary_cells(one.series, one.drops)) for one in shown)
    notes = (
        "at the last checkpoint: loss and sink share; peak: the step of highest mean entropy; dH: from there "
        "to the last, nats; sink part: of dH, with the range by order of attribution, and along the path",
        "own, previous: the same part when the row's own token or the one before it is taken as the sink",
    )
    return Table("series", "Every embedded series", columns, rows, notes)


def _over_seeds(shown: Sequence[Shown]) -> Table:
    """Mean, least and greatest over the seeds of each width."""
    columns = (
        Column("kind", "kind"),
        Column("width", "width", "d"),
        Column("seeds", "seeds", "d"),
        *(
            Column(f"{key}_{which}", f"{name} {which}".removesuffix(" mean"), form)
            for key, name, form in (
                ("share", "sink", ".1%"),
                ("change", "dH", ".3f"),
                ("sink_part", "part", ".1%"),
                ("path", "path", ".1%"),
            )
            for which in ("mean", "min", "max")
        ),
    )
    rows = []
    for kind, width in _groups(shown):
        group = [one for one in shown if (one.embedded.kind, one.embedded.recipe.width) == (kind, width)]
        drops = [one.drops[SINK, None] for one in group]
        figures = (
            [drop.end.share for drop in drops],
            [drop.ends.total for drop in drops],
            [drop.ends.part for drop in drops],
            [drop.path.part for drop in drops],
        )
        spread = [cell for values in figures for cell in (np.mean(values), min(values), max(values))]
        rows.append((kind, width, len(group), *map(float, spread)))
    notes = (
        "sink: its share at the end; part: the sink channel's part of dH by end points, path: step by step",
    )
    return Table("over_seeds", "Over the seeds: mean, least and greatest", columns, tuple(rows), notes)


def _forming(shown: Sequence[Shown]) -> Iterable[Check]:
    """Whether every series of these widths and seeds that was trained to the end has a sink there."""
    ends = {
        one.embedded.name: one.drops[SINK, None].end.share
        for one in shown
        if one.embedded.kind == "backcopy"
        and one.embedded.recipe.width in FORMING_WIDTHS
        and one.embedded.recipe.steps >= STEPS
        and one.embedded.recipe.seed in SEEDS
    }
    if ends:
        least = min(ends, key=lambda name: ends[name])
        yield Check(
            "sink_forms",
            f"a sink share above {SINK_ABOVE:.0%} at the end of every bigram series of widths "
            f"{' and '.join(map(str, FORMING_WIDTHS))}",
            f"{_span(list(ends.values()))} in {len(ends)}, the least in {least}",
            all(share > SINK_ABOVE for share in ends.values()),
        )


def _sentences(shown: Sequence[Shown]) -> Iterable[Note]:
    """Whether a sink formed, and the sink channel with its spread over the seeds."""
    for kind, width in _groups(shown):
        group = [one for one in shown if (one.embedded.kind, one.embedded.recipe.width) == (kind, width)]
        drops = [one.drops for one in group]
        shares = [drop[SINK, None].end.share for drop in drops]
        above = sum(share > SINK_ABOVE for share in shares)
        late = [
            level.share
            for one in group
            for level in find_levels([visit.measured for visit in one.series.visits])[-_LATE:]
        ]
        parts = [drop[SINK, None].ends.part for drop in drops]
        controls = ", ".join(
            f"{_span([drop[name, None].ends.part for drop in drops])} for the {name}" for name in CONTROLS
        )
        yield Note(
            f"{kind}_{width}",
            f"{kind}, width {width}, {counted(len(drops), 'seed')}: sink share at the end {_span(shares)} "
            f"(above {SINK_ABOVE:.0%} in {above}; at the last {_LATE} checkpoints {_span(late)}); sink "
            f"channel of the drop {_span(parts)}, beside {controls}.",
        )


def _examples(shown: Sequence[Shown]) -> list[Shown]:
    """The first seed of the widest model of every kind."""
    found: dict[str, Shown] = {}
    for one in shown:
        known = found.get(one.embedded.kind)
        if known is None or one.embedded.recipe.width > known.embedded.recipe.width:
            found[one.embedded.kind] = one
    return list(found.values())


def _groups(shown: Sequence[Shown]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((one.embedded.kind, one.embedded.recipe.width) for one in shown))


def _span(values: Sequence[float]) -> str:
    low, high = percent(min(values)), percent(max(values))
    return low if low == high else f"{low} to {high}"
