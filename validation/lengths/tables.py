"""The shares of every length as tables: pooled, by layer for each weighting, and the undeclared sinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.measures import UNDECLARED_ROWS, UNDECLARED_WEIGHT
from validation.headline import LABELS, row_notes
from validation.lengths.measuring import Lengths, Undeclared
from validation.report.document import Column, Note, Part, Table
from validation.table import join_tables
from validation.wording import counted

__all__ = ["length_parts", "median_shares"]


def median_shares(found: Lengths, weighting: str, layer: int | None = None) -> list[float]:
    """The median sink share at every length, in one layer or over all; NaN where no row has a share."""
    medians = []
    for table in found.tables.values():
        shares = table.shares[weighting][slice(None) if layer is None else table.layer == layer]
        known = shares[~np.isnan(shares)]
        medians.append(float(np.median(known)) if len(known) else float("nan"))
    return medians


def length_parts(found: Lengths, queries: str = "content") -> tuple[Part, ...]:
    """Everything that a report on lengths says, in its order."""
    names = list(next(iter(found.tables.values())).shares)
    everything = join_tables(found.tables.values())
    return (
        *found.warnings,
        found.sinks.note(),
        _cut_note(found),
        *row_notes(everything, queries, found.min_content_keys),
        _pooled(found, names),
        *(_by_layer(found, name) for name in names),
        _undeclared(found),
        Note(
            "memory",
            f"One layer is held at a time: its rows take {found.row_bytes / 2**20:,.1f} MiB at the largest "
            "T; its scores, and copies in float64 while a measure is taken, come on top.",
        ),
        *found.notes,
    )


def _cut_note(found: Lengths) -> Note:
    whole = " and ".join(f"{count:,}" for count in found.whole[:8]) + (
        ", ..." if len(found.whole) > 8 else ""
    )
    lengths = ", ".join(f"{length:,}" for length in found.tables)
    same = (
        " The model is causal, so that the rows at a small T are the first of those at a large one: what "
        "grows with T is the number of keys that a row sees."
    )
    text = (
        f"{counted(len(found.whole), 'text')} of {whole} tokens, each cut at {lengths} tokens and run by "
        'itself; "texts" below counts these pieces.'
    )
    return Note("cut", text + same * found.causal)


def _columns(found: Lengths) -> tuple[Column, ...]:
    return tuple(Column(f"T{length}", f"T {length:,}", ".1%") for length in found.tables)


def _pooled(found: Lengths, names: Sequence[str]) -> Table:
    columns = (
        Column("T", "T", ",d"),
        Column("texts", "texts", "d"),
        Column("rows", "rows", ",d"),
        *(Column(f"median_{name}", LABELS[name], ".1%") for name in names),
    )
    medians = {name: median_shares(found, name) for name in names}
    rows = tuple(
        (length, len(np.unique(table.text)), len(table), *(medians[name][place] for name in names))
        for place, (length, table) in enumerate(found.tables.items())
    )
    note = "shares depend on length: the weightings of one line may be compared, and models at one T"
    return Table("lengths", "Median sink share by length, all layers and heads", columns, rows, (note,))


def _by_layer(found: Lengths, name: str) -> Table:
    layers: list[int] = np.unique(next(iter(found.tables.values())).layer).tolist()
    rows: list[tuple[Any, ...]] = [("all", *median_shares(found, name))] if len(layers) > 1 else []
    rows += [(layer, *median_shares(found, name, layer)) for layer in layers]
    title = f"Median sink share by layer and length: {LABELS[name]}"
    return Table(f"lengths_{name}", title, (Column("layer", "layer"), *_columns(found)), tuple(rows))


def _undeclared(found: Lengths) -> Part:
    """By layer the heaviest key outside the sink set that acts like one, at each length."""
    rule = f"mean weight over all later rows (at least {UNDECLARED_ROWS}) above {UNDECLARED_WEIGHT}"
    layers = sorted({one.layer for each in found.undeclared.values() for one in each})
    if len(found.untested) == len(found.tables):
        return Note("undeclared", f"Undeclared sinks: not tested, no key has {UNDECLARED_ROWS} later rows.")
    short = ", ".join(f"{length:,}" for length in found.untested)
    untested = f"not tested at T {short}, where no key has {UNDECLARED_ROWS} later rows"
    if not layers:
        where = f"none at a longer T, {untested}" if short else "none at any length"
        return Note("undeclared", f"Undeclared sinks: {where} ({rule}).")
    columns = (
        Column("layer", "layer", "d"),
        *(Column(column.key, column.heading, ".3f") for column in _columns(found)),
        Column("keys", "keys"),
    )
    rows = []
    for layer in layers:
        here = [[one for one in each if one.layer == layer] for each in found.undeclared.values()]
        heaviest = [max((one.weight for one in each), default=None) for each in here]
        rows.append((layer, *heaviest, _keys([one for each in here for one in each])))
    notes: tuple[str, ...] = (
        "the heaviest key of a layer in any text; empty: none; keys: token and position",
    )
    notes += (untested,) if short else ()
    return Table("lengths_undeclared", f"Undeclared sinks by layer: {rule}", columns, tuple(rows), notes)


def _keys(found: Sequence[Undeclared]) -> str:
    """Token and position, the heaviest first, each once."""
    ordered = sorted(found, key=lambda one: -one.weight)
    named = list(dict.fromkeys(f"{one.token} {one.key}" for one in ordered))
    return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
