"""The measures of two layers side by side, over the cases of the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle._checks import reject
from validation.compare import Comparison
from validation.engines import load_engine
from validation.progress import Progress, silent
from validation.registry import REASONS, REGISTRY, compare_layers
from validation.report.document import Check, Column, Note, Part, Table

__all__ = ["diff_measures"]

_COLUMNS = (
    Column("measure", "measure"),
    Column("part", "part"),
    Column("dtype", "dtype"),
    Column("cases", "cases", "d"),
    Column("max_absolute", "max abs", ".1e"),
    Column("bound", "bound", ".1e"),
    Column("used", "of it", ".1%"),
    Column("worst", "worst at"),
    Column("within", "within"),
)


@dataclass
class _Row:
    """What is known of one kind of part in one dtype; the place that uses most of its bound is remembered."""

    cases: int = 0
    max_absolute: float = 0.0
    bound: float = 0.0
    used: float = -1.0
    worst: str = ""
    within: bool = True

    def add(self, case: str, bound: float, found: Comparison) -> None:
        self.cases += 1
        self.max_absolute = float(np.maximum(self.max_absolute, found.max_absolute))  # a NaN stays
        if found.used > self.used if found.within == self.within else self.within:
            self.used, self.bound = found.used, bound
            self.worst = case + (f" {found.worst}" if found.worst is not None else "")
        self.within &= found.within


def diff_measures(
    first: str = "oracle",
    second: str = "fastpath",
    progress: Progress = silent,
    *,
    on_compile: Callable[[], None] | None = None,
) -> tuple[Part, ...]:
    """Compare two layers over every case of the registry: a table by measure, part and dtype, and a Check.

    The oracle's answer is what is expected, whatever the order of the two. A bound is absolute, for an r
    relative, for a distance the sum of both kinds. A measure that a layer lacks or that raises is outside its
    bound. InputError for an unknown layer, and for one that is to be compared with itself.
    """
    if first == second:
        reject("layers", expected="two of them", found=f"{first} twice", todo="Compare oracle and fastpath.")
    expected, found = ("oracle", first) if second == "oracle" else (first, second)
    for name in (expected, found):
        load_engine(name, on_compile)
    rows: dict[tuple[str, str, str], _Row] = {}
    left: list[str] = []
    for index, (name, measure) in enumerate(REGISTRY.items()):
        progress(f"{name}, {found} against {expected}", index, len(REGISTRY))
        for case in measure.cases():
            dtype = str(case.dtype)
            try:
                compared = compare_layers(measure, case, expected, found)
            except Exception as error:  # missing or broken: both are what is looked for here
                row = rows.setdefault((name, "", dtype), _Row())
                row.worst, row.used, row.within = case.name, float("nan"), False
                left.append(f"{name} ({case.name}): {type(error).__name__}: {error}")
                continue
            for (kind, part), result in compared.items():
                bound = sum(measure.bound(case, kind))
                rows.setdefault((name, kind, dtype), _Row()).add(case.name, bound, result)
                if not result.within:
                    left.append(f"{name} ({case.name}) {part or kind}: {result.message}")
    progress(f"{found} against {expected}", len(REGISTRY), len(REGISTRY))
    shown = tuple((*key, *_cells(row)) for key, row in rows.items())
    fine = f"all {sum(row.cases for row in rows.values()):,} are"
    return (
        Table("diff_measures", f"{found} against {expected}, by measure", _COLUMNS, shown, tuple(_notes())),
        Check(
            "diff_measures.bounds",
            "every part of every case within its bound",
            left[0] if left else fine,
            not left,
        ),
        *(Note("outside", line) for line in left[1:8]),
    )


def _cells(row: _Row) -> tuple[Any, ...]:
    return row.cases, row.max_absolute, row.bound, row.used, row.worst, row.within


def _notes() -> list[str]:
    return [
        "the bound of a ratio is relative to it, that of a distance the sum of an absolute and a relative one"
    ] + [f"bound of {name}: {why}" for name, why in REASONS.items()]
