"""The whole benchmark: its sections in their order, and what became of the goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from oracle._checks import Unavailable, reject
from oracle.model import Model
from validation import peers
from validation.bench.case import Case, run_case, sound
from validation.bench.goals import MET, MISSED, NOT_RUN
from validation.bench.machine import equal_threads, thread_counts, unequal
from validation.progress import Progress, silent
from validation.report.document import Check, Note, Part, Table

__all__ = ["QUICK", "SECTIONS", "WHOLE", "Sizes", "goal_note", "read_sections", "run_bench"]

SECTIONS = (
    *("rows", "streaming", "distances", "verdicts", "audit", "memory", "sweep", "compile", "forward"),
    "language-model",
)


class Sizes(NamedTuple):
    """How large everything is. The goals are for those of WHOLE and are judged there only."""

    rows: tuple[int, ...]  # (text, head, query, key)
    transformed: tuple[int, int, int, int]  # (head, token, d_head, d_model)
    streaming: tuple[int, int, int]  # (head, token, d_head)
    causal: tuple[int, int, int]
    distances: tuple[int, int, int]  # (head, query, key)
    verdicts: int  # heads
    memory: tuple[int, int, int]
    first: tuple[int, int, int]
    lengths: tuple[int, ...]  # of the sweep over T
    heads: tuple[int, ...]
    distance_heads: tuple[int, ...]  # of the sweeps of distances
    distance_lengths: tuple[int, ...]
    audit_heads: tuple[int, ...]  # of the sweeps of an audit
    audit_lengths: tuple[int, ...]
    forward: tuple[int, ...]  # tokens
    language_model: tuple[int, ...]
    rounds: int
    budget: float  # seconds of timing for each case
    judged: bool = False
    pause: float = 0.05  # seconds before each timed call: threads of OpenMP and BLAS spin before they sleep


WHOLE = Sizes(
    rows=(4, 72, 512, 512),
    transformed=(12, 512, 64, 768),
    streaming=(12, 2048, 32),
    causal=(9, 4096, 64),
    distances=(144, 128, 128),
    verdicts=270,
    memory=(12, 16384, 32),
    first=(4, 64, 32),
    lengths=(256, 512, 1024, 2048, 4096),
    heads=(1, 2, 4, 8, 16),
    distance_heads=(18, 36, 72, 144, 288),
    distance_lengths=(32, 64, 128, 256),
    audit_heads=(36, 72, 144),
    audit_lengths=(64, 128, 256),
    forward=(128, 512),
    language_model=(128, 512, 1024),
    rounds=15,
    budget=25.0,
    judged=True,
)
QUICK = Sizes(
    rows=(1, 24, 256, 256),
    transformed=(2, 128, 64, 768),
    streaming=(2, 1024, 32),
    causal=(2, 1024, 64),
    distances=(36, 64, 64),
    verdicts=72,
    memory=(2, 4096, 32),
    first=(4, 64, 32),
    lengths=(128, 256, 512, 1024),
    heads=(1, 2, 4),
    distance_heads=(12, 24, 48),
    distance_lengths=(32, 64, 128),
    audit_heads=(12, 24, 48),
    audit_lengths=(32, 64, 128),
    forward=(128,),
    language_model=(128,),
    rounds=5,
    budget=2.0,
)


def run_bench(
    model: Callable[[], Model],
    sizes: Sizes = WHOLE,
    sections: Iterable[str] = SECTIONS,
    progress: Progress = silent,
) -> list[Part]:
    """Run the named sections: tables, a check of agreement for each case, and what was not run.

    `model` is called only for the forward pass. Timings never fail a check; a result that leaves its bound of
    the float64 oracle does.
    """
    wanted = [name for name in SECTIONS if name in set(sections)]
    parts: list[Part] = []
    if not sizes.judged:
        parts.append(
            Note(
                "quick",
                "Smaller sizes than those the goals are for: no goal is judged, they are only shown, and "
                "growth exponents mean little where what is constant still weighs.",
            )
        )
    missing = peers.torch_missing()
    scipy_missing = peers.scipy_missing() if {"distances", "verdicts"} & set(wanted) else None
    for why in (missing if {"rows", "streaming", "language-model"} & set(wanted) else None, scipy_missing):
        if why:
            parts.append(Note("not_run", f"NOT RUN: {why}"))
    with equal_threads():
        if differ := unequal(thread_counts()):
            parts.append(Note("threads", differ))
        for name in wanted:
            parts.append(Note("section", _TITLES[name]))
            try:
                parts += _run(name, model, sizes, missing, progress)
            except Unavailable as error:
                parts.append(Note("not_run", f"NOT RUN: {error}"))
    return [*parts, *goal_note(parts)]


def goal_note(parts: Sequence[Part]) -> list[Part]:
    """How many goals were met, which were missed, which not run; nothing if none was judged."""
    found: dict[str, list[str]] = {MET: [], MISSED: [], NOT_RUN: []}
    for table in parts:
        if not isinstance(table, Table):
            continue
        for record in table.records():
            if record.get("goal") and record.get("verdict") in found:
                peer = record.get("contender")
                found[record["verdict"]].append(
                    f"{table.key} against {peer}"
                    if peer not in (None, "fastpath")
                    else record.get("what", table.key)
                )
    if not found[MET] and not found[MISSED]:
        return []
    named = [f"{len(found[MET])} met"]
    named += [
        f"{len(found[word])} {word}: {', '.join(found[word])}" for word in (MISSED, NOT_RUN) if found[word]
    ]
    return [Note("goals", f"Goals: {'; '.join(named)}.")]


def read_sections(names: str | None, quick: bool = False) -> tuple[str, ...]:
    """Sections as they are written on the command line: "rows,streaming".

    None is all of them, for a quick run all but the compile time, which alone takes as long.
    """
    if names is None:
        return tuple(name for name in SECTIONS if not (quick and name == "compile"))
    asked = [name.strip() for name in names.split(",")]
    unknown = [name for name in asked if name not in SECTIONS]
    if unknown:
        reject(
            "--only",
            expected=f"some of {','.join(SECTIONS)}",
            found=", ".join(map(repr, unknown)),
            todo="Write names with commas between them.",
        )
    return tuple(name for name in SECTIONS if name in asked)


_TITLES = {
    "rows": "From attention rows",
    "streaming": "From queries and keys",
    "distances": "Distances between heads",
    "verdicts": "Verdicts about heads",
    "audit": "An audit",
    "memory": "Memory",
    "sweep": "Growth",
    "compile": "First use",
    "forward": "The forward pass",
    "language-model": "The forward pass of a language model",
}


def _run(
    name: str, model: Callable[[], Model], sizes: Sizes, missing: str | None, progress: Progress
) -> Sequence[Part]:
    if name == "forward":
        from validation.bench.forward import forward_ratios

        table = forward_ratios(model(), sizes.forward, progress, repeats=sizes.rounds)
        return [table, _agreement(table)]
    if name == "language-model":
        from oracle.loading import load_model
        from validation.bench.language_model import LANGUAGE_MODEL, language_case

        bundled = load_model(LANGUAGE_MODEL)
        return _cases(
            [partial(language_case, bundled, count, missing, sizes.judged) for count in sizes.language_model],
            sizes,
            progress,
        )
    from validation.bench import distances, figures, rows, streaming

    if name == "rows":
        makers: tuple[Callable[[], Case], ...] = (
            lambda: rows.rows_case(sizes.rows, missing, sizes.judged),
            lambda: rows.entropy_case(sizes.rows, missing, sizes.judged),
            lambda: rows.transformed_case(sizes.transformed, missing, sizes.judged),
        )
        return [*_cases(makers, sizes, progress), rows.norm_memory(sizes.transformed, sizes.judged)]
    if name == "streaming":
        makers = (
            lambda: streaming.streaming_case(sizes.streaming, False, missing, sizes.judged),
            lambda: streaming.streaming_case(sizes.causal, True, missing, sizes.judged),
        )
        return _cases(makers, sizes, progress)
    if name == "distances":
        makers = (
            lambda: distances.divergence_case(sizes.distances, sizes.judged),
            lambda: distances.distance_case(sizes.distances, sizes.judged),
        )
        grown = figures.distance_growth(
            sizes.distance_heads,
            sizes.distance_lengths,
            progress,
            rounds=min(sizes.rounds, 5),
            budget=sizes.budget,
            pause=sizes.pause,
        )
        return [*_cases(makers, sizes, progress), *grown]
    if name == "verdicts":
        return _cases((lambda: distances.verdict_case(sizes.verdicts, sizes.judged),), sizes, progress)
    if name == "audit":
        from validation.bench.auditing import audit_growth

        return audit_growth(
            sizes.audit_heads,
            sizes.audit_lengths,
            progress,
            rounds=min(sizes.rounds, 3),
            budget=sizes.budget,
            pause=sizes.pause,
        )
    if name == "memory":
        return figures.resident_memory(sizes.memory, progress, sizes.judged)
    if name == "compile":
        return figures.first_use(sizes.first, progress)
    return figures.growth(
        sizes.lengths,
        sizes.heads,
        sizes.streaming[::2],
        sizes.causal[::2],
        progress,
        rounds=min(sizes.rounds, 5),
        budget=sizes.budget,
        judged=sizes.judged,
        pause=sizes.pause,
    )


def _cases(makers: Iterable[Callable[[], Case]], sizes: Sizes, progress: Progress) -> list[Part]:
    """Tables and checks of cases; each one's arrays are let go before the next is made."""
    tables: list[Part] = []
    checks: list[Part] = []
    accuracy: list[tuple[Any, ...]] = []
    for make in makers:
        outcome = run_case(make(), progress, rounds=sizes.rounds, budget=sizes.budget, pause=sizes.pause)
        tables.append(outcome.table)
        checks.append(outcome.check)
        accuracy += outcome.accuracy
        del outcome
    return [*tables, sound(accuracy), *checks]


def _agreement(table: Table) -> Check:
    """Whether every row of the forward pass was close enough to be timed."""
    left_out = [f"{row['tokens']} tokens" for row in table.records() if not row["pairs"]]
    expected = "rows of the forward pass within their bound of transformers"
    return Check("agreement.forward", expected, ", ".join(left_out) or "all within", not left_out)
