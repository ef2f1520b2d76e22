"""Which distance, under which convention, is blind to what: tried on the scores of a real model.

The five changes and what each must do stand in `expected_invariances`, with their proofs. A cell that differs
from its expectation is a failed check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oracle import METRICS, Model
from validation.headline import length_words
from validation.metric_names import metric_name
from validation.progress import Progress, silent
from validation.properties import Implementation
from validation.report.document import Check, Column, Part, Table
from validation.studies.expected_invariances import CHANGES, EXPECTATIONS, SINKS, Expectation
from validation.studies.invariance_cells import DISTANCES, FACTOR, QUERIES, Cell, measure_cells
from validation.wording import counted

__all__ = ["invariance_table"]

_DISTANCE = (Column("metric", "distance"), Column("convention", "sink"))
_GRID = (*_DISTANCE, *(Column(change.replace(" ", "_"), change) for change in CHANGES))
_LAWS = (
    Column("law", "law"),
    Column("distances", "distances"),
    Column("expected", "expected"),
    Column("cells", "cells as expected"),
    Column("least", "least change", ".0e"),
    Column("most", "largest change", ".0e"),
)
_PLACE = (
    Column("text", "text", "d"),
    Column("heads", "heads"),
    Column("query", "query", "d"),
    Column("before", "before", ".3g"),
    Column("after", "after", ".3g"),
)
_CELL = (Column("change", "change"), *_DISTANCE, Column("sinks", "sink keys"))
_CELLS = (
    *_CELL,
    Column("expected", "expected"),
    Column("found", "found"),
    Column("deviation", "deviation", ".1e"),
    Column("bound", "bound", ".1e"),
    Column("power", "power of t", ".3f"),
    *_PLACE,
)


def invariance_table(
    model: Model,
    texts: Sequence[str | Sequence[int]],
    progress: Progress = silent,
    seed: int = 0,
    implementation: Implementation | None = None,
    truncate: bool = False,
) -> tuple[Part, ...]:
    """The table of invariances, the laws with their reasons, every counterexample, a check for each change.

    The scores are those of `model` on `texts`, in float64 whatever the model computes in; the Aitchison
    distances come from them, the others from their softmax rows. `seed` decides the changes, `truncate` cuts
    a text that is too long. All layers take part, and the sink sets are this table's own. Raises InputError
    where no text has two content tokens, or the model a single head.
    """
    cells = measure_cells(model, texts, progress, seed, implementation, truncate)
    heads = model.config.n_heads
    tables = (
        _grid(cells, model, len(texts)),
        _laws(cells),
        _counterexamples(cells, heads),
        Table("invariance_cells", "Every cell", _CELLS, tuple(_line(c, heads) for c in cells), shown=False),
    )
    context = _context(cells)
    return (
        *(replace(table, notes=(*table.notes, *context)) for table in tables),
        *(_check(change, [cell for cell in cells if cell.change == change]) for change in CHANGES),
    )


def _context(cells: Sequence[Cell]) -> tuple[str, ...]:
    """What every number of the study is of, for each of the sink sets."""
    said = []
    for sinks in SINKS:
        grounds = [cell.ground for cell in cells if cell.sinks == sinks]
        first, undefined = grounds[0], max(ground.undefined for ground in grounds)
        said.append(
            f"{sinks}: {counted(first.texts, 'text')}, {length_words(list(first.lengths))}, "
            f"{counted(first.rows, 'pair')} of rows of two heads, content queries that are no special token, "
            f"{undefined:,} pairs undefined"
        )
    return tuple(said)


def _grid(cells: Sequence[Cell], model: Model, texts: int) -> Table:
    table = {cell[:4]: cell for cell in cells}
    rows = tuple(
        (
            metric_name(metric),
            convention,
            *(_words([table[sinks, change, metric, convention] for sinks in SINKS]) for change in CHANGES),
        )
        for metric, convention in DISTANCES
    )
    n_heads = model.config.n_layers * model.config.n_heads
    intro = (
        f"Scores of {model.name}, {counted(texts, 'text')}, {n_heads} heads, each against the next one and "
        f"one half the model away, at up to {QUERIES} content queries of a text.",
        "All layers, and sink sets of this table's own, whatever else was asked for: "
        "the first token, one key; and several, the special tokens of a text that has two or "
        "more, else its first two tokens.",
        *(f"{change}: {words}" for change, words in CHANGES.items()),
    )
    notes = (
        f"t^p: multiplied by that power of t, tried with {FACTOR}. one key: with a single sink key only.",
        "Aitchison: the squared distance, total (keep) or content (drop); Aitchison sink: the rest of it.",
    )
    return Table("invariances", "What each distance is blind to", _GRID, rows, notes, intro)


def _words(cells: Sequence[Cell]) -> str:
    """What a cell of the grid says of one sink key and of several."""
    said = [_word(cell) for cell in cells]
    if said[0] == said[1]:
        return said[0]
    if said[1] == "changes" and cells[0].found == "holds":
        return f"{said[0]}, one key" if cells[0].expected.power else "one key"
    return f"{said[0]}; several: {said[1]}"


def _word(cell: Cell) -> str:
    kept = f"t^{cell.power:.0f}" if cell.expected.power else "stays"
    word = {"holds": kept, "fails": "changes", "unclear": "unclear"}[cell.found]
    return word if cell.ok else f"{word} (not as expected)"


def _laws(cells: Sequence[Cell]) -> Table:
    rows = []
    for law in EXPECTATIONS:
        own = [cell for cell in cells if cell.expected is law]
        deviations = [cell.deviation for cell in own]
        fine = f"{sum(cell.ok for cell in own)} of {len(own)}"
        expected = "changes" if not law.holds else f"t^{law.power}" if law.power else "stays"
        named = (law.name, _distances(law), expected, fine)
        rows.append((*named, min(deviations), max(deviations)))
    notes = (
        *(f"{law.name}: {law.reason}" for law in EXPECTATIONS),
        "Changes are relative to the largest distance of that kind that was seen. What stays may move by "
        f"{max(cell.bound for cell in cells):.0e}: scores, and with them logarithms of weights, are off by "
        "an epsilon of their size, and a sum loses four a term. A counterexample is a thousand times that.",
    )
    return Table("invariance_laws", "Expected beforehand, and why", _LAWS, tuple(rows), notes)


def _distances(law: Expectation) -> str:
    conventions = " and ".join(law.conventions)
    names = [metric_name(metric) for metric in law.metrics]
    whose = "all" if len(law.metrics) == len(METRICS) else "others" if len(names) > 2 else ", ".join(names)
    return f"{whose}, {conventions}"


def _counterexamples(cells: Sequence[Cell], n_heads: int) -> Table:
    """Those with one sink key, and those of several sinks where a single key has none."""
    failed = {cell[:4]: cell for cell in cells if cell.found != "holds"}
    rows = []
    for key, cell in failed.items():
        if cell.sinks == SINKS[0] or (SINKS[0], *key[1:]) not in failed:
            line = _line(cell, n_heads)
            rows.append((*line[: len(_CELL)], *line[-len(_PLACE) :]))
    notes = (
        "Heads (layer.head) and query where the distance moved most; under temperature, where it is furthest "
        "from the power of t that suits the median pair.",
    )
    return Table("invariance_counterexamples", "Counterexamples", (*_CELL, *_PLACE), tuple(rows), notes)


def _line(cell: Cell, n_heads: int) -> tuple[Any, ...]:
    heads = " ".join(".".join(map(str, divmod(head, n_heads))) for head in cell.heads)
    expected = "holds" if cell.expected.holds else "fails"
    named = (cell.change, metric_name(cell.metric), cell.convention, cell.sinks, expected, cell.found)
    numbers = (cell.deviation, cell.bound, cell.power)
    return (*named, *numbers, cell.text + 1, heads, cell.query, cell.before, cell.after)


def _check(change: str, cells: Sequence[Cell]) -> Check:
    wrong = [cell for cell in cells if not cell.ok]
    found = f"{len(cells) - len(wrong)} of {len(cells)}"
    for cell in wrong[:3]:
        what = f"{metric_name(cell.metric)}, {cell.convention}, {cell.sinks}"
        found += f"; {what}: {cell.found}, {cell.before:.6g} to {cell.after:.6g}"
    key = f"invariance_{change.replace(' ', '_')}"
    return Check(key, f"{change}: each distance stays or changes as proved beforehand", found, not wrong)
