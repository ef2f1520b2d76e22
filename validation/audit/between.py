"""How often two metrics give different verdicts under one convention."""

from __future__ import annotations

from typing import Any

from oracle.distances import CONVENTIONS
from validation.audit.flips import ALL, Analysis
from validation.metric_names import metric_name
from validation.report.document import Column, Table

__all__ = ["between_tables"]

_SHORT = {"hellinger": "Hell.", "aitchison": "Aitch.", "aitchison_sink": "A. sink"}


def between_tables(analysis: Analysis, context: str) -> tuple[Table, ...]:
    """A square of flip rates for each convention with the floors in its diagonal, and all of it for JSON."""
    squares = tuple(_square(analysis, convention, context) for convention in CONVENTIONS)
    return (*squares, _listed(analysis))


def _square(analysis: Analysis, convention: str, context: str) -> Table:
    names = [name for name in analysis.distances.metrics if (name, convention) in analysis.floors]
    columns = (
        Column("metric", "metric"),
        *(Column(name, _SHORT.get(name, metric_name(name)), ".1%") for name in names),
    )
    rows = []
    for place, first in enumerate(names):
        cells: list[Any] = [None] * place
        cells.append(analysis.floors[first, convention][ALL].median)
        cells += [analysis.between[convention, first, second].rate for second in names[place + 1 :]]
        rows.append((metric_name(first), *cells))
    notes = ("in the diagonal the floor of each metric: the median over the splits of the texts", context)
    title = f"Verdicts that flip between two metrics, both under {convention}"
    return Table(f"between_{convention}", title, columns, tuple(rows), notes)


def _listed(analysis: Analysis) -> Table:
    columns = (
        Column("convention", "convention"),
        Column("first", "first"),
        Column("second", "second"),
        Column("flips", "flips", ".1%"),
        Column("floor_first", "floor of the first", ".1%"),
        Column("floor_first_high", "to", ".1%"),
        Column("floor_second", "floor of the second", ".1%"),
        Column("floor_second_high", "to", ".1%"),
        Column("triples", "triples", ",d"),
        Column("tied", "tied", ",d"),
        Column("undefined", "undefined", ",d"),
    )
    rows = []
    for (convention, *pair), found in analysis.between.items():
        floors = [analysis.floors[metric, convention][ALL] for metric in pair]
        cells = [cell for floor in floors for cell in (floor.median, floor.high)]
        rows.append((convention, *pair, found.rate, *cells, found.triples, found.tied, found.undefined))
    title = "Verdicts that flip between two metrics under one convention"
    return Table("between", title, columns, tuple(rows), shown=False)
