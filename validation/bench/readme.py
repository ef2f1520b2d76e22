"""The README's table, made from a run: only what stands between two marks is ever written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from oracle._checks import reject
from validation.report.document import Document, Note, Table

__all__ = ["BEGIN", "END", "check_marks", "markdown", "replace_between", "write_readme"]

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"

_HEAD = (
    "| what | against | ours | theirs | times ours (quartiles) | goal | |",
    "|---|---|--:|--:|--:|--:|---|",
)


def check_marks(path: str | os.PathLike[str]) -> None:
    """Raise InputError now rather than after minutes, if `write_readme` could not do its work."""
    replace_between(_read(Path(path)), "", Path(path).name)


def write_readme(document: Document, path: str | os.PathLike[str]) -> None:
    """Put the table of `document` between the marks of the file at `path`; nothing else in it changes.

    A run with a failed check, or one that left something out, is not published. Raises
    InputError then, if the file cannot be read or written, and if it does not hold each mark once, in their
    order.
    """
    if document.failed:
        reject(
            "--readme",
            expected="a run whose checks all held",
            found=", ".join(check.key for check in document.failed),
            todo="Mend what disagrees first.",
        )
    if document.not_run:
        reject(
            "--readme",
            expected="a run of everything",
            found="; ".join(note.text for note in document.not_run),
            todo='Install what is missing: pip install "sinkscope[reference]".',
        )
    target = Path(path)
    changed = replace_between(_read(target), markdown(document), target.name)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(changed)
            os.chmod(name, target.stat().st_mode & 0o777)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        _refuse_file(error)


def replace_between(text: str, table: str, name: str = "the text") -> str:
    """`text` with `table` between its marks, in the line ends of the text."""
    counts = text.count(BEGIN), text.count(END)
    if counts != (1, 1) or text.index(BEGIN) > text.index(END):
        reject(
            "--readme",
            expected=f"one line {BEGIN} and after it one line {END}",
            found=f"{counts[0]} and {counts[1]} of them in {name}",
            todo="Put the two lines where the table belongs.",
        )
    ending = "\r\n" if "\r\n" in text else "\n"
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return ending.join([before, "", *table.strip("\n").split("\n"), "", after])


def markdown(document: Document) -> str:
    """The comparisons and figures of a run, losses included, and the machine it ran on."""
    lines = list(_HEAD)
    for part in document.parts:
        if isinstance(part, Table):
            lines += _lines(part)
    warnings = [part.text for part in document.parts if isinstance(part, Note) and part.key == "busy"]
    return "\n".join([*lines, "", " ".join([_stamp(document.provenance), *warnings])])


def _lines(table: Table) -> Iterator[str]:
    """Rows of a comparison, or of figures that have a goal."""
    keys = {column.key for column in table.columns}
    records = table.records()
    if {"contender", "ms"} <= keys:
        ours = records[0]["ms"]
        if records[0]["goal"]:
            yield _line(
                table.title, "", _milliseconds(ours), "", "", records[0]["goal"], records[0]["verdict"]
            )
        for number, record in enumerate(records[1:]):
            what = table.title if number == 0 else ""
            yield _line(
                what,
                record["contender"],
                _milliseconds(ours),
                _milliseconds(record["ms"]),
                _times(record),
                record["goal"],
                record["verdict"],
            )
    elif {"contender", "mib"} <= keys:
        for number, record in enumerate(records[1:]):
            what = table.title if number == 0 else ""
            cells = (f"{records[0]['mib']:.1f} MiB", f"{record['mib']:,.0f} MiB", f"{record['times']:,.0f}")
            yield _line(what, record["contender"], *cells, record["goal"], record["verdict"])
    elif {"what", "value", "goal"} <= keys:
        unit = " MiB" if table.key == "resident" else ""
        for record in records:
            if record["goal"]:
                name = record["what"] if unit else f"growth exponent: {record['what']}"
                yield _line(
                    name, "", f"{record['value']:.2f}{unit}", "", "", record["goal"], record["verdict"]
                )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


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


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        _refuse_file(error)


def _refuse_file(error: Exception) -> NoReturn:
    reject("--readme", expected="a text file that can be written", found=str(error), todo="Name the README.")
