"""What `sinkscope reproduce` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from oracle._checks import InputError, reject
from validation.command_parts import here
from validation.progress import Progress
from validation.report.document import Check, Column, Document, Note, Part, Table
from validation.reproduction.compare import Compared, compare
from validation.reproduction.kept import SHIPPED, Kept, load_result, read_kept, write_kept
from validation.reproduction.page import find_blocks, read_page, render_page, write_page, wrong_blocks
from validation.reproduction.runs import choose_runs
from validation.reproduction.shipped import other_code, shipped_by, usual_seconds
from validation.reproduction.stamp import ROOT, code_digest
from validation.reproduction.working import FAILED, NOT_RUN, Outcome, default_folder, run_named, state_of
from validation.wording import counted

__all__ = ["check", "list_runs", "readme_of", "refuse_outside", "render", "reproduce"]

_SHOWN = 8  # differences of one run that are named
_WRITE = "Write the blocks with sinkscope reproduce --render."


def readme_of(path: str | None) -> Path:
    """The page whose blocks are meant: as named, else the README of this checkout; InputError without one."""
    if path is not None:
        return Path(path)
    place = ROOT / "README.md"
    if not place.is_file():
        reject("--readme", expected="a README beside the packages", found="none", todo="Name the file.")
    return place


def refuse_outside(root: Path = ROOT) -> None:
    """Refuse to publish where packages are installed: shipped results are changed in a checkout alone."""
    if not (root / "pyproject.toml").is_file():
        reject(
            "--publish",
            expected="a checkout, where results, ledger and README stand beside the code",
            found="installed packages",
            todo="Call it in a checkout, or leave --publish out.",
        )


def list_runs(out: str | None, shipped: Path = SHIPPED) -> Document:
    """The named runs, what they take, and whether a result is kept and shipped."""
    folder, code, runs = _folder(out), code_digest(), choose_runs(())
    seconds = {run.name: usual_seconds(run, shipped) for run in runs}
    columns = (
        Column("run", "run"),
        Column("minutes", "minutes", ".1f"),
        Column("kept", "result kept"),
        Column("shipped", "shipped"),
    )
    rows = tuple(
        (
            run.name,
            None if (took := seconds[run.name]) is None else took / 60,
            state_of(run, folder),
            shipped_by(run, code, shipped),
        )
        for run in runs
    )
    guessed = [run.name for run in runs if read_kept(run, shipped) is None]
    notes = (
        f"all together about {sum(filter(None, seconds.values())) / 60:.0f} minutes, as the making of the "
        "shipped results took" + (f"; estimated: {', '.join(guessed)}" if guessed else ""),
        "result kept: by the last run here; out of date: what is named has changed, so it is made again",
        "shipped: by this code, or by another version of it",
    )
    whole = Table("runs", "The named runs", columns, rows, notes)
    about = Table(
        "about",
        "What they are for",
        (Column("run", "run"), Column("about", "what for")),
        tuple((run.name, run.about) for run in runs),
    )
    return Document("reproduce", here(), (whole, about))


def reproduce(
    names: Sequence[str],
    *,
    fresh: bool,
    out: str | None,
    publish: Path | None,
    progress: Progress,
    shipped: Path = SHIPPED,
    remake: Callable[[Path], Document] | None = None,
) -> Document:
    """Do the runs and set what they found beside the shipped results.

    With `publish`, a page with blocks, what was found becomes what is shipped; then `remake` makes from it
    what is made of results (the runs that read them are not done as processes), and the page is written anew.
    """
    folder = _folder(out)
    if publish is not None:
        _names(read_page(publish))  # a wrong mark is said now rather than after an hour
        first = [run.name for run in choose_runs(names) if remake is None or not run.reads_results]
        outcomes = run_named(first, progress, fresh, folder) if first else ()
    else:
        outcomes = run_named(names, progress, fresh, folder)
    known = {one.run.name: read_kept(one.run, shipped) for one in outcomes}
    compared = {
        one.run.name: compare(before.report, one.report, one.run.varies, _elsewhere(one, before))
        for one in outcomes
        if one.report is not None and (before := known[one.run.name]) is not None
    }
    parts: list[Part] = []
    if outcomes:
        parts += [_table(outcomes, compared), Note("folder", f"Results and logs are in {folder}.")]
    for one in outcomes:
        parts += _verdict(one, known[one.run.name], compared.get(one.run.name), publish is not None)
    if publish is not None:
        parts += _publish(outcomes, publish, shipped, remake)
    return Document("reproduce", here(), tuple(parts))


def render(page: Path) -> Document:
    """Write the blocks of a page from the shipped results; nothing is run."""
    return Document("reproduce", here(), tuple(_render(page, SHIPPED)))


def check(page: Path) -> Document:
    """Hold the blocks of a page to the shipped results; nothing is run, nothing written."""
    text = read_page(page)
    total = len(_names(text))
    wrong = wrong_blocks(text)
    found = "all equal" if not wrong else f"{len(wrong)} differ"
    checks = [
        Check(
            "blocks", f"{counted(total, 'block')} of {page.name} as the shipped results say", found, not wrong
        )
    ]
    notes = [
        Note("block", f"{one.block.where}: line {one.line} says {one.found!r}, the result {one.expected!r}.")
        for one in wrong
    ]
    old = other_code(_names(text))
    return Document("reproduce", here(), (*notes, *old, *checks, *([Note("todo", _WRITE)] if wrong else [])))


def _folder(out: str | None) -> Path:
    if out == "":
        reject("--out", expected="the path of a folder", found="''", todo="Name the folder.")
    return default_folder() if out is None else Path(out).expanduser()


def _table(outcomes: Sequence[Outcome], compared: dict[str, Compared]) -> Table:
    columns = (
        Column("run", "run"),
        Column("state", "result"),
        Column("seconds", "seconds", ",.0f"),
        Column("compared", "compared", ",d"),
        Column("wrong", "differ", ",d"),
        Column("allowed", "vary", ",d"),
    )
    rows = []
    for one in outcomes:
        found = compared.get(one.run.name)
        counts: tuple[int | None, ...] = (None, None, None)
        if found is not None:
            counts = (found.compared, len(found.wrong), found.allowed)
        rows.append((one.run.name, one.state, one.seconds, *counts))
    total = sum(one.seconds for one in outcomes)
    notes = (
        "compared: cells and sentences with those of the shipped result, as they are shown; differ: those "
        "that should be equal; vary: timings, and what rounding or another machine changes",
        f"seconds of all runs, also of those that were kept: {total:,.0f}",
    )
    return Table("runs", "The runs", columns, tuple(rows), notes)


def _verdict(one: Outcome, before: Kept | None, found: Compared | None, publishing: bool) -> Iterator[Part]:
    """What there is to say of a run beside its line: how it failed, or what differs."""
    name = one.run.name
    if one.state == NOT_RUN:
        yield Note("not_run", f"NOT RUN: {name}: {one.said}")
    elif one.state == FAILED:
        expected = "an end with code 0" if one.report is None else "a result in which every check held"
        yield Check(name, expected, one.said, False)
    if one.report is None:
        return
    if found is None:
        yield Note("unshipped", f"{name}: nothing is shipped to compare with.")
    else:
        wrong = found.wrong
        if before is not None and one.run.elsewhere and not _made_alike(one, before):
            there, digits = before.stamp.get("processor", "a processor that it does not name"), found.allowed
            yield Note(
                "elsewhere",
                f"{name}: its figures depend on processor and libraries, and those of the shipped result are "
                f"others ({there}): {digits} of {found.compared:,} differ in digits alone, which they may. "
                "Words, signs, counts, rows and checks are held to it all the same.",
            )
        for difference in wrong[:_SHOWN]:
            yield Note(
                "difference", f"{name}: {difference.where}: {difference.expected} -> {difference.found}"
            )
        if len(wrong) > _SHOWN:
            yield Note("difference", f"{name}: {len(wrong) - _SHOWN} more.")
        if not publishing:
            said = f"{len(wrong)} of {found.compared:,} differ" if wrong else f"{found.compared:,} equal"
            yield Check(name, "the figures of the shipped result", said, not wrong)


def _elsewhere(one: Outcome, before: Kept) -> tuple[str, ...]:
    """What may differ in its figures: nothing where processor and libraries are those of the shipped one."""
    return () if _made_alike(one, before) else one.run.elsewhere


def _made_alike(one: Outcome, before: Kept) -> bool:
    stamp = one.stamp or {}
    return all(key in stamp and stamp[key] == before.stamp.get(key) for key in ("processor", "versions"))


def _publish(
    outcomes: Sequence[Outcome], page: Path, shipped: Path, remake: Callable[[Path], Document] | None
) -> Iterator[Part]:
    count = 0
    for one in outcomes:
        if one.report is not None and one.stamp is not None and one.state != FAILED:
            write_kept(one.run, shipped, Kept(one.stamp, one.seconds, one.report), "--publish")
            count += 1
    yield Note("published", f"{counted(count, 'result')} became what is shipped.")
    if remake is not None:
        made = remake(shipped)
        yield from made.not_run
        yield from made.failed
        done = "not made again" if made.not_run else "made again from what is shipped"
        yield Note("ledger", f"The ledger of claims: {done}.")
    try:
        yield from _render(page, shipped)
    except InputError as error:
        yield Check("readme", f"marks in {page.name} that the results have an answer to", str(error), False)


def _render(page: Path, shipped: Path) -> Iterator[Part]:
    """Write the blocks whose results are there; that another one stays as it is fails a check."""
    before = read_page(page)
    absent = [run.name for run in choose_runs(_names(before)) if read_kept(run, shipped) is None]
    after = render_page(before, lambda name: load_result(name, shipped), absent)
    pairs = zip(find_blocks(before), find_blocks(after), strict=True)
    changed = sum(old.text != new.text for old, new in pairs)
    if after != before:
        write_page(page, after)
    yield Note("rendered", f"{page.name}: {counted(changed, 'block')} changed.")
    found = f"none of {', '.join(absent)}" if absent else "all"
    yield Check("readme", f"a shipped result for every block of {page.name}", found, not absent)


def _names(page: str) -> list[str]:
    """The run of every block of a page; InputError where there is none, or one of an unknown name."""
    names = [block.recipe.run for block in find_blocks(page)]
    if not names:
        reject("--readme", expected="a page with blocks", found="none in it", todo="Name the README.")
    choose_runs(names)
    return names
