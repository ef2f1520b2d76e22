"""What `sinkscope claims` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oracle._checks import InputError, reject
from validation.claims import Claim, read_claims
from validation.command_parts import here, refuse_alone
from validation.ledger.finding import VERDICTS
from validation.ledger.judging import check_claims, judge_claims, runs_of
from validation.ledger.saved import read_rows, write_ledger
from validation.ledger.tables import agreement, detail, ledger_table, summary, summary_tables
from validation.progress import Progress, silent
from validation.report.document import Document, Note, Part
from validation.reproduction import choose_runs, load_result, run_named
from validation.reproduction.kept import SHIPPED
from validation.reproduction.shipped import other_code

__all__ = ["Chosen", "read_commands", "remake_ledger", "show_claims"]

Report = Mapping[str, Any]  # of a run, as --json writes it


class Chosen(NamedTuple):
    """Which claims are shown, with all their entries: by id, by part of the ledger, by verdict."""

    ids: Sequence[str] = ()
    part: str | None = None
    verdict: str | None = None

    @property
    def all(self) -> bool:
        """Whether nothing was chosen."""
        return not self.ids and self.part is None and self.verdict is None

    def check(self) -> None:
        """Refuse what no claim has, before any work."""
        known = [claim.id for claim in read_claims()]
        for name in self.ids:
            if name not in known:
                reject("--detail", expected=f"one of {', '.join(known)}", found=repr(name), todo="Name one.")
        if self.part not in (None, "A", "B"):
            reject("--part", expected="A or B", found=repr(self.part), todo="Name one of the two.")
        if self.verdict not in (None, *VERDICTS):
            expected = f"one of {', '.join(map(repr, VERDICTS))}"
            reject("--verdict", expected=expected, found=repr(self.verdict), todo="Name one.")

    def take(self, claim: Claim) -> bool:
        """Whether `claim` is chosen by id and part; a verdict is known only later."""
        return (not self.ids or claim.id in self.ids) and self.part in (None, claim.source.part)


def read_commands() -> Mapping[str, str]:
    """How a reader calls each run, by its name; what a run keeps for itself meanwhile is not shown."""
    shown = {}
    for run in choose_runs(()):
        words: list[str] = []
        for word in run.command:
            if "{keep}" in word:  # with the option before it
                words.pop()
            else:
                words.append(word)
        shown[run.name] = " ".join(("sinkscope", *words))
    return shown


def show_claims(
    chosen: Chosen, *, run: bool, fresh: bool, progress: Progress, folder: Path = SHIPPED
) -> Document:
    """The ledger, judged again from the results that are shipped, or from those of a `run` made now.

    A run does the commands that the chosen claims need, and goes on where one was stopped; `fresh` forgets
    what was kept. Claims whose run has no result are left out, and said to be.
    """
    if fresh and not run:
        refuse_alone("--fresh", "--run")
    chosen.check()
    commands, claims = read_commands(), read_claims()
    check_claims(claims, commands.keys())
    wanted = [claim for claim in claims if chosen.take(claim)]
    names = runs_of(wanted)
    results, missing = _run(names, fresh, progress) if run else _shipped(names, folder)
    lost = [claim for claim in wanted if missing.keys() & set(claim.runs)]
    wanted = [claim for claim in wanted if claim not in lost]
    now = judge_claims(wanted, results.__getitem__)
    if chosen.verdict is not None:
        wanted = [claim for claim in wanted if now[claim.id].verdict == chosen.verdict]
        now = {claim.id: now[claim.id] for claim in wanted}
    parts: list[Part] = [
        Note("not_run", f"NOT RUN: {name}: {said}" + _left_out(name, lost)) for name, said in missing.items()
    ]
    table = ledger_table(wanted, now, commands)
    rows = {row["id"]: row for row in table.records()}
    ledger = read_rows(folder)
    if ledger is not None and (not chosen.all or lost):
        ledger = {name: ledger[name] for name in rows if name in ledger}
    parts += [*summary_tables(wanted, now), summary(wanted, now)]
    if not chosen.all:
        parts += [detail(claim, now[claim.id], commands) for claim in wanted]
    if not run:
        parts += other_code(names, folder)
    parts += [table, agreement(ledger, rows, made_now=run)]
    about = {"claims": len(wanted), "runs": list(runs_of(wanted)), "made_now": run, **here()}
    return Document("claims", about, tuple(parts))


def remake_ledger(folder: Path = SHIPPED) -> Document:
    """Judge every claim from the shipped results and make that the ledger; nothing where a result is missing.

    The Document holds the file, read back, to a second judgement, and that is what is shipped.
    """
    start = time.perf_counter()
    first = show_claims(Chosen(), run=False, fresh=False, progress=silent, folder=folder)
    if first.not_run:
        return first
    write_ledger(first, 0.0, folder)
    again = show_claims(Chosen(), run=False, fresh=False, progress=silent, folder=folder)
    write_ledger(again, time.perf_counter() - start, folder)
    return again


def _shipped(names: Sequence[str], folder: Path) -> tuple[dict[str, Report], dict[str, str]]:
    """The shipped results of these runs by name, and why others have none."""
    found: dict[str, Report] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            found[name] = load_result(name, folder)
        except InputError as error:
            missing[name] = str(error)
    return found, missing


def _run(names: Sequence[str], fresh: bool, progress: Progress) -> tuple[dict[str, Report], dict[str, str]]:
    """The results of these runs made now, by name, and why others have none."""
    outcomes = run_named(names, progress, fresh) if names else ()
    found = {one.run.name: one.report for one in outcomes if one.report is not None}
    return found, {one.run.name: f"{one.said}." for one in outcomes if one.report is None}


def _left_out(run: str, lost: Sequence[Claim]) -> str:
    return f" Left out for it: {', '.join(claim.id for claim in lost if run in claim.runs)}."
