"""What is measured of the fast path alone: growth with T and with heads, resident memory, first calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import fastpath
from validation.bench.agreement import distances_complaint, rows_complaint, shares_complaint
from validation.bench.child import ask
from validation.bench.goals import find_goal, judge
from validation.bench.inputs import draw_pairs, draw_rows
from validation.bench.timing import growth_exponent, in_turns, peak_bytes
from validation.progress import Progress, silent
from validation.report.document import Check, Column, Table

__all__ = [
    "Sized",
    "agreed",
    "agreement",
    "distance_growth",
    "exponent",
    "first_use",
    "growth",
    "medians",
    "resident_memory",
    "sizes_table",
]

_MIB = 2**20
_LARGEST = 3  # sizes that an exponent is judged by

Call = Callable[[], Any]


class Sized(NamedTuple):
    """A call of one size, and what is wrong with its result, in words."""

    call: Call
    complaint: Callable[[Any], str]


def growth(
    lengths: Sequence[int],
    heads: Sequence[int],
    streaming: tuple[int, int],
    causal: tuple[int, int],
    progress: Progress = silent,
    *,
    rounds: int = 5,
    budget: float = 20.0,
    judged: bool = True,
    pause: float = 0.0,
) -> tuple[Table | Check, ...]:
    """Time and memory over T, time over heads, and their growth exponents; each size agrees first.

    `streaming` and `causal` are (head, d_head); rows have as many heads as `streaming`. Heads grow at
    the middle length.
    """
    middle = sorted(lengths)[len(lengths) // 2]
    kinds: dict[str, Callable[[int], Sized]] = {
        "rows": lambda size: _rows(streaming[0], size),
        "streaming": lambda size: _streaming(streaming[0], size, streaming[1], False),
        "causal": lambda size: _streaming(causal[0], size, causal[1], True),
    }
    at_middle: dict[str, Callable[[int], Sized]] = {
        "rows": lambda count: _rows(count, middle),
        "streaming": lambda count: _streaming(count, middle, streaming[1], False),
    }
    wrong: list[str] = []
    times: list[tuple[str, list[float]]] = []
    memory: list[tuple[str, list[float]]] = []
    for place, (name, make) in enumerate(kinds.items()):
        progress(f"growth with T: {name}", place, len(kinds) + 1)
        calls = agreed(name, make, lengths, wrong)
        times.append((f"{name} time in T", medians(calls, rounds, budget / 4, pause)))
        if name != "rows":
            memory.append((f"{name} memory in T", [peak_bytes(call) / _MIB for call in calls.values()]))
        del calls
    progress("growth with heads", len(kinds), len(kinds) + 1)
    over_heads = [
        (
            f"{name} time in heads",
            medians(agreed(name, make, heads, wrong), rounds, budget / 8, pause),
        )
        for name, make in at_middle.items()
    ]
    progress("growth", len(kinds) + 1, len(kinds) + 1)
    rows = [
        *(exponent(what, lengths, values, judged) for what, values in (*times, *memory)),
        *(exponent(what, heads, values, judged) for what, values in over_heads),
    ]
    columns = (
        Column("what", "what"),
        Column("value", "exponent", ".2f"),
        Column("goal", "goal"),
        Column("verdict", ""),
        Column("all_sizes", "all sizes", ".2f"),
    )
    about = (
        "exponent: least squares over the logarithms of the three largest sizes below, which fixed costs "
        "hide least; all sizes: over all of them",
        f"{streaming[0]} heads of {streaming[1]}, causal {causal[0]} of {causal[1]}",
        f"rows: shares and r of {streaming[0]} heads; small ones stand in the cache, large ones do not",
    )
    return (
        Table("growth", "Growth exponents of the fast path", columns, tuple(rows), about),
        sizes_table("over_T", "T", lengths, (*((n, [v * 1e3 for v in vs]) for n, vs in times), *memory)),
        sizes_table("over_heads", "heads", heads, [(n, [v * 1e3 for v in vs]) for n, vs in over_heads]),
        agreement("growth", wrong),
    )


def distance_growth(
    heads: Sequence[int],
    lengths: Sequence[int],
    progress: Progress = silent,
    *,
    rounds: int = 5,
    budget: float = 20.0,
    pause: float = 0.0,
) -> tuple[Table | Check, ...]:
    """Time of both divergences over heads and over T, at the middle of the other; each size agrees first."""
    count, size = (sorted(sizes)[len(sizes) // 2] for sizes in (heads, lengths))
    progress("growth of distances", 0, 1)
    wrong: list[str] = []
    times = {
        axis: medians(agreed(f"distances over {axis}", make, sizes, wrong), rounds, budget / 4, pause)
        for axis, make, sizes in (
            ("heads", lambda given: _distances(given, size), heads),
            ("T", lambda given: _distances(count, given), lengths),
        )
    }
    progress("growth of distances", 1, 1)
    columns = (Column("what", "what"), Column("value", "exponent", ".2f"), Column("all_sizes", "all", ".2f"))
    rows = [
        (what, value, every)
        for what, value, _, _, every in (
            exponent("distances time in heads", heads, times["heads"], False),
            exponent("distances time in T", lengths, times["T"], False),
        )
    ]
    about = (
        "of the three largest sizes below, and of all; pairs of heads and pairs of tokens both grow by two",
        f"both divergences; over heads at T = {size}, over T with {count} heads",
    )
    return (
        Table("distance_growth", "Growth exponents of the distances", columns, tuple(rows), about),
        *(
            sizes_table(
                f"distances_over_{axis}",
                axis,
                sizes,
                [(f"distances time in {axis}", [1e3 * value for value in times[axis]])],
            )
            for axis, sizes in (("heads", heads), ("T", lengths))
        ),
        agreement("distance_growth", wrong),
    )


def resident_memory(
    sizes: tuple[int, int, int], progress: Progress = silent, judged: bool = True
) -> tuple[Table, Check]:
    """Growth of peak resident memory in one streaming call of `sizes` (head, token, d_head)."""
    progress(f"memory at T = {sizes[1]}, in a process of its own", 0, 1)
    found = ask("growth", *sizes)
    progress("memory", 1, 1)
    goal = find_goal("memory")
    mib = found["bytes"] / _MIB
    columns = (
        Column("what", "what"),
        Column("value", "MiB", ".1f"),
        Column("goal", "goal"),
        Column("verdict", ""),
        Column("seconds", "seconds", ".2f"),
    )
    n_heads, n_tokens, _ = sizes
    what = f"streaming, {n_heads} heads, T = {n_tokens}"
    verdict = judge(goal, mib, judged) if goal else ""
    rows = (
        (what, mib, goal.words if goal else "", verdict, found["seconds"]),
        ("its rows, float32, would take", n_heads * n_tokens**2 * 4 / _MIB, "", "", None),
    )
    how = (
        "peak reset just before the call"
        if found["reset"]
        else "the process's high mark, which compiling may have raised before"
    )
    notes = (f"growth of peak resident memory, inputs and a warm-up call at T = 256 before it; {how}",)
    table = Table("resident", "Resident memory of streaming", columns, rows, notes)
    return table, agreement("memory", [found["complaint"]])


def first_use(sizes: tuple[int, int, int], progress: Progress = silent) -> tuple[Table, Check]:
    """Seconds of the first call with nothing compiled, of the first call of a later process, and of a second.

    Two fresh processes share a folder for compiled code that was empty before.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for run in range(2):
            progress("first calls, in processes of their own", run, 2)
            found.append(ask("first", *sizes, environment={"NUMBA_CACHE_DIR": folder}))
    progress("first calls", 2, 2)
    columns = (
        Column("what", "what"),
        Column("compiling", "first ever s", ".2f"),
        Column("loading", "first in a process s", ".2f"),
        Column("warm", "then s", ".4f"),
    )
    rows = [(name, first, *found[1]["seconds"][name]) for name, (first, _) in found[0]["seconds"].items()]
    rows.insert(0, ("import fastpath", found[0]["import"], found[1]["import"], None))
    notes = (
        "first ever: a fresh process, an empty NUMBA_CACHE_DIR; then a second one that finds what was kept",
        f"{sizes[0]} heads, {sizes[1]} tokens",
    )
    table = Table("first_use", "Compile time, apart", columns, tuple(rows), notes)
    return table, agreement("first-use", [run["complaint"] for run in found])


def agreement(what: str, complaints: Sequence[str]) -> Check:
    """The check that nothing is wrong; what is, in words, for each size that was compared."""
    wrong = [complaint for complaint in complaints if complaint]
    expected = "every result within its bound of the float64 oracle, on the last rows of each head"
    return Check(f"agreement.{what}", expected, "; ".join(wrong) or "all within", not wrong)


def _rows(n_heads: int, size: int) -> Sized:
    inputs = draw_rows((n_heads, size, size))
    return Sized(lambda: fastpath.row_measures(*inputs), lambda found: rows_complaint(found, inputs))


def _streaming(n_heads: int, size: int, d_head: int, causal: bool) -> Sized:
    pairs = draw_pairs(n_heads, size, d_head, first_only=causal)
    return Sized(
        lambda: fastpath.sink_share_from_query_key(*pairs, causal=causal),
        lambda found: shares_complaint(found, pairs, causal),
    )


def _distances(n_heads: int, size: int) -> Sized:
    attention, sinks, _ = draw_rows((n_heads, size, size))
    return Sized(
        lambda: fastpath.distance_sums(attention, sinks, "jsd"),
        lambda found: distances_complaint(found, attention, sinks),
    )


def agreed(
    name: str, make: Callable[[int], Sized], sizes: Sequence[int], wrong: list[str]
) -> dict[str, Call]:
    """The calls by size; what does not agree is added to `wrong`, with its size."""
    calls = {}
    for size in sizes:
        call, complaint = make(size)
        if said := complaint(call()):
            wrong.append(f"{name} at {size}: {said}")
        calls[str(size)] = call
    return calls


def medians(calls: dict[str, Call], rounds: int, budget: float, pause: float) -> list[float]:
    """The median seconds of every call, timed in turns within a budget in seconds."""
    times = in_turns(calls, rounds, warmup=1, budget=budget, least=3, pause=pause)
    return [float(value) for value in np.median(times.seconds, axis=1)]


def exponent(what: str, sizes: Sequence[int], values: Sequence[float], judged: bool) -> tuple[Any, ...]:
    """A row of the growth table: what grows, the exponent of the three largest sizes, goal, that of all."""
    largest = sorted(range(len(sizes)), key=lambda place: sizes[place])[-_LARGEST:]
    value = growth_exponent([sizes[place] for place in largest], [values[place] for place in largest])
    goal = find_goal(what)
    verdict = judge(goal, value, judged) if goal else ""
    return (what, value, goal.words if goal else "", verdict, growth_exponent(sizes, values))


def sizes_table(
    key: str, axis: str, sizes: Sequence[int], measured: Sequence[tuple[str, Sequence[float]]]
) -> Table:
    """What was measured at every size, a row for each of `measured`."""
    columns = (Column("what", "what"), *(Column(f"{axis}_{size}", str(size), ".4g") for size in sizes))
    rows = tuple((what.removesuffix(f" in {axis}"), *values) for what, values in measured)
    return Table(key, f"Sizes over {axis}", columns, rows, ("time: median ms; memory: peak MiB of NumPy's",))
