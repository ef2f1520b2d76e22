"""The whole run as one table, for a page: every comparison, losses included, and the machine it ran on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from validation.report.document import Column, Note, Part, Table

__all__ = ["summary"]

_COLUMNS = (
    Column("what", "what"),
    Column("against", "against"),
    Column("ours", "ours"),
    Column("theirs", "theirs"),
    Column("times", "times ours (quartiles)"),
    Column("goal", "goal"),
    Column("verdict", ""),
)
_Line = tuple[str, str, str, str, str, str, str]


def summary(parts: Sequence[Part], about: Mapping[str, Any]) -> Table:
    """Comparisons and figures that have a goal, in the order of `parts`; `about` is the run's provenance.

    It repeats what other tables hold, so it is for JSON and for pages alone.
    """
    lines = [line for part in parts if isinstance(part, Table) for line in _lines(part)]
    warnings = [part.text for part in parts if isinstance(part, Note) and part.key in ("busy", "threads")]
    stamp = " ".join([_stamp(about), *warnings])
    return Table("summary", "The fast path beside the rest", _COLUMNS, tuple(lines), (stamp,), shown=False)


def _lines(table: Table) -> Iterator[_Line]:
    """Rows of a comparison, or of figures that have a goal."""
    keys = {column.key for column in table.columns}
    records = table.records()
    if {"contender", "ms"} <= keys:
        ours = _milliseconds(records[0]["ms"])
        if records[0]["goal"]:
            yield (table.title, "", ours, "", "", records[0]["goal"], records[0]["verdict"])
        for number, record in enumerate(records[1:]):
            what = table.title if number == 0 else ""
            cells = (ours, _milliseconds(record["ms"]), _times(record))
            yield (what, record["contender"], *cells, record["goal"], record["verdict"])
    elif {"contender", "mib"} <= keys:
        for number, record in enumerate(records[1:]):
            what = table.title if number == 0 else ""
            cells = (f"{records[0]['mib']:.1f} MiB", f"{record['mib']:,.0f} MiB", f"{record['times']:,.0f}")
            yield (what, record["contender"], *cells, record["goal"], record["verdict"])
    elif {"what", "value", "goal"} <= keys:
        unit = " MiB" if table.key == "resident" else ""
        for record in records:
            if record["goal"]:
                name = record["what"] if unit else f"growth exponent: {record['what']}"
                yield (name, "", f"{record['value']:.2f}{unit}", "", "", record["goal"], record["verdict"])


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} ms" if value < 100 else f"{value:,.0f} ms"


def _times(record: Mapping[str, Any]) -> str:
    if record["times"] is None:
        return ""
    return f"{record['times']:.2f} ({record['lower']:.2f} to {record['upper']:.2f})"


def _stamp(about: Mapping[str, Any]) -> str:
    machine, versions = about["machine"], about["versions"]
    threads = ", ".join(f"{name} {count}" for name, count in machine["threads"].items())
    loads = " before and ".join(
        ", ".join(f"{value:.2f}" for value in machine[when]) or "unknown"
        for when in ("load_before", "load_after")
    )
    return (
        f"{machine['processor']}, {machine['cpus']} CPUs; threads: {threads}; load average {loads} after; "
        f"{', '.join(f'{name} {version}' for name, version in versions.items())}; {machine['blas']}. "
        "Ratios are medians of rounds in turns; below one the other is faster."
    )
