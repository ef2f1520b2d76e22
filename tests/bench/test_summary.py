from __future__ import annotations

from validation.bench.case import _COLUMNS
from validation.bench.summary import summary
from validation.report.document import Check, Column, Note, Table

MACHINE = {
    "processor": "A processor",
    "cpus": 2,
    "threads": {"blas": 2, "numba": 2, "torch": "not loaded"},
    "blas": "openblas 1",
    "load_before": [0.5, 0.25, 0.1],
    "load_after": [],
}
CASE = Table(
    "rows",
    "Rows | pipes",
    _COLUMNS,
    (
        ("fastpath", 20.0, None, None, None, "", "", 1e-7),
        ("torch, eager", 440.0, 22.0, 21.5, 22.5, ">= 15", "met", 2e-7),
        ("torch, SDPA", 15.0, 0.75, 0.7, 0.8, "", "", None),
        ("absent", None, None, None, None, ">= 8", "not run", None),
    ),
)
FIGURES = Table(
    "growth",
    "Growth",
    (Column("what", "what"), Column("value", "exponent"), Column("goal", "goal"), Column("verdict", "")),
    (("rows time in T", 2.125, "<= 2.05", "missed"), ("rows time in heads", 1.0, "", "")),
)
RESIDENT = Table(
    "resident",
    "Memory",
    FIGURES.columns,
    (("streaming", 40.5, "<= 64", "met"), ("rows", 12288.0, "", "")),
)
NORMS = Table(
    "transformed memory",
    "Norms",
    tuple(Column(key, key) for key in ("contender", "mib", "times", "goal", "verdict")),
    (("fastpath", 2.0, None, "", ""), ("einsum", 9216.0, 4608.0, ">= 1000", "met")),
)
ABOUT = {"machine": MACHINE, "versions": {"numpy": "2.0"}}
PARTS = (Note("section", "Rows"), CASE, NORMS, RESIDENT, FIGURES, Check("a", "b", "c", True))


def test_our_own_goal_has_a_line():
    ours = ("fastpath", 12.5, None, None, None, "<= 50 ms", "met", 0.0)
    table = Table("verdicts", "Verdicts", _COLUMNS, (ours, ("scipy", 80.0, 6.4, 6.0, 7.0, "", "", 0.0)))
    first, second = summary((table,), ABOUT).rows
    assert first == ("Verdicts", "", "12.5 ms", "", "", "<= 50 ms", "met")
    assert second[:4] == ("Verdicts", "scipy", "12.5 ms", "80.0 ms")


def test_the_table_holds_every_comparison_losses_included():
    table = summary(PARTS, ABOUT)
    assert table.rows == (
        ("Rows | pipes", "torch, eager", "20.0 ms", "440 ms", "22.00 (21.50 to 22.50)", ">= 15", "met"),
        ("", "torch, SDPA", "20.0 ms", "15.0 ms", "0.75 (0.70 to 0.80)", "", ""),
        ("", "absent", "20.0 ms", "", "", ">= 8", "not run"),
        ("Norms", "einsum", "2.0 MiB", "9,216 MiB", "4,608", ">= 1000", "met"),
        ("streaming", "", "40.50 MiB", "", "", "<= 64", "met"),
        ("growth exponent: rows time in T", "", "2.12", "", "", "<= 2.05", "missed"),
    )
    (stamp,) = table.notes
    for words in (
        "A processor, 2 CPUs",
        "blas 2, numba 2",
        "0.50, 0.25, 0.10 before and unknown after",
        "numpy 2.0",
    ):
        assert words in stamp


def test_it_is_for_pages_alone():
    assert not summary(PARTS, ABOUT).shown


def test_a_busy_machine_and_unequal_threads_are_said_below_the_table():
    said = summary((*PARTS, Note("threads", "They differ."), Note("busy", "It was busy.")), ABOUT)
    assert said.notes == (f"{summary(PARTS, ABOUT).notes[0]} They differ. It was busy.",)
