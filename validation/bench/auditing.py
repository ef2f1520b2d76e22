"""How the computation of an audit grows with heads and with T: its time and the peak of NumPy's memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import fastpath
from oracle import DistanceSums
from validation.audit.distances import DistanceGatherer, Distances
from validation.audit.flips import analyse
from validation.bench.agreement import distances_complaint
from validation.bench.figures import Sized, agreed, agreement, exponent, medians, sizes_table
from validation.bench.inputs import draw_rows
from validation.bench.timing import peak_bytes
from validation.progress import Progress, silent
from validation.report.document import Check, Column, Table

__all__ = ["audit_growth"]

_MIB = 2**20
_TEXTS = 2  # which can be halved in one way
_HEADS = 12  # of a layer, where they can be divided so


def audit_growth(
    heads: Sequence[int],
    lengths: Sequence[int],
    progress: Progress = silent,
    *,
    rounds: int = 3,
    budget: float = 20.0,
    pause: float = 0.0,
) -> tuple[Table | Check, ...]:
    """All from the rows of an audit to its verdicts, over heads and over T; each size agrees first."""
    count, size = (sorted(sizes)[len(sizes) // 2] for sizes in (heads, lengths))
    wrong: list[str] = []
    axes: dict[str, tuple[Callable[[int], Sized], Sequence[int]]] = {
        "heads": (lambda given: _audit(given, size), heads),
        "T": (lambda given: _audit(count, given), lengths),
    }
    rows, tables = [], []
    for place, (axis, (make, sizes)) in enumerate(axes.items()):
        progress(f"growth of an audit over {axis}: agreement", 3 * place, 3 * len(axes))
        calls = agreed(f"an audit over {axis}", make, sizes, wrong)
        progress(f"growth of an audit over {axis}: timing", 3 * place + 1, 3 * len(axes))
        seconds = medians(calls, rounds, budget / 2, pause)
        progress(f"growth of an audit over {axis}: memory", 3 * place + 2, 3 * len(axes))
        memory = [peak_bytes(call) / _MIB for call in calls.values()]
        measured = ((f"audit time in {axis}", seconds), (f"audit memory in {axis}", memory))
        for what, values in measured:
            found = exponent(what, sizes, values, False)
            rows.append((what, found[1], found[-1]))
        milliseconds = [1e3 * value for value in seconds]
        shown = [(measured[0][0], milliseconds), (measured[1][0], memory)]
        tables.append(sizes_table(f"audit_over_{axis}", axis, sizes, shown))
    progress("growth of an audit", 1, 1)
    columns = (Column("what", "what"), Column("value", "exponent", ".2f"), Column("all_sizes", "all", ".2f"))
    about = (
        "of the three largest sizes below, and of all; pairs of heads and pairs of tokens both grow by two, "
        "verdicts by three with the heads",
        f"{_TEXTS} texts, all distances, their verdicts and the floor of one split; over heads at T = "
        f"{size}, over T with {count} heads; without the model and without its rows",
    )
    return (
        Table("audit_growth", "Growth exponents of an audit", columns, tuple(rows), about),
        *tables,
        agreement("audit_growth", wrong),
    )


def _audit(n_heads: int, size: int) -> Sized:
    """An audit of texts of `size` tokens, and what is wrong with its distances."""
    per_layer = math.gcd(n_heads, _HEADS)
    attention, sinks, _ = draw_rows((n_heads, size, size))
    rows = attention.astype(np.float64)
    rows /= rows.sum(axis=-1, keepdims=True)
    shape = (n_heads // per_layer, per_layer, size, size)
    layered, scores = rows.reshape(shape), np.log(rows).reshape(shape)
    seen = np.ones((size, size), dtype=bool)

    def call() -> Distances:
        gatherer = DistanceGatherer(fastpath, range(shape[0]))
        for text in range(_TEXTS):
            gatherer.add(text, layered, sinks, seen, scores)
        found = gatherer.result()
        assert found is not None  # every text has rows that count
        analyse(found, fastpath.verdict_flips)
        return found

    def complaint(found: Distances) -> str:
        first = DistanceSums(*({key: part[:1] for key, part in parts.items()} for parts in found.found))
        return distances_complaint(first, rows[:, ~sinks], sinks)

    return Sized(call, complaint)
