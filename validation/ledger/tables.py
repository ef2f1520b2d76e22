"""The ledger as tables, sentences and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from validation.claims import Claim, Figure
from validation.ledger.finding import NOT_TESTABLE, VERDICTS, Finding
from validation.ledger.saved import TABLE
from validation.report.document import Check, Column, Note, Table
from validation.wording import counted

__all__ = ["agreement", "commands_of", "detail", "ledger_table", "summary", "summary_tables"]

Findings = Mapping[str, Finding]
Rows = Mapping[str, Mapping[str, str]]  # of the ledger, by the id of the claim
Commands = Mapping[str, str]  # how each run is called, by its name

_PARTS = {"A": "attention weighed by norms", "B": "attention rows as compositions"}
_NAMED = 8  # claims that differ, by name


def commands_of(claim: Claim, commands: Commands) -> tuple[str, ...]:
    """What a reader types to see the numbers of a claim."""
    return tuple(commands[name] for name in claim.runs) or (claim.command,)


def summary(claims: Sequence[Claim], findings: Findings) -> Note:
    """How many claims there are of each verdict."""
    words = [findings[claim.id].verdict for claim in claims]
    counts = ", ".join(f"{words.count(one)} {one}" for one in VERDICTS)
    figures = sum(len(claim.figures) for claim in claims)
    said = (
        f"{counted(len(claims), 'claim')} with {counted(figures, 'published figure')}: {counts}. "
        "--detail CLAIM shows a rule, its command, what was found and the floor beside it."
    )
    return Note("summary", said)


def summary_tables(claims: Sequence[Claim], findings: Findings) -> tuple[Table, ...]:
    """One line for each claim, a table for each part of the ledger."""
    columns = (Column("id", "claim"), Column("says", "what is said"), Column("verdict", "here"))
    tables = []
    for part, what in _PARTS.items():
        rows = tuple(
            (one.id, one.says, findings[one.id].verdict) for one in claims if one.source.part == part
        )
        if rows:
            tables.append(Table(f"claims_{part}", f"{part}: {what}", columns, rows))
    return tuple(tables)


def ledger_table(claims: Sequence[Claim], findings: Findings, commands: Commands) -> Table:
    """Everything, for programs."""
    columns = tuple(
        Column(key, key)
        for key in (
            *("id", "part", "source", "says", "figures", "model", "rule", "commands", "here", "needs"),
            *Finding._fields,
        )
    )
    rows = tuple(
        (
            *(claim.id, claim.source.part, claim.source.title, claim.says, _figures(claim.figures)),
            *(claim.model, claim.rule, "; ".join(commands_of(claim, commands)), ", ".join(claim.here)),
            *(claim.needs, *findings[claim.id]),
        )
        for claim in claims
    )
    return Table(TABLE, "The whole ledger", columns, rows, shown=False)


def detail(claim: Claim, finding: Finding, commands: Commands) -> Table:
    """One claim with all of its entries."""
    entries = {
        "says": claim.says,
        "source": claim.source.title,
        "published": _figures(claim.figures),
        "model there": claim.model,
        "rule": claim.rule,
        "command": "; ".join(commands_of(claim, commands)),
        "models here": ", ".join(claim.here),
        "found": finding.found,
        "T": finding.lengths,
        "floor": finding.floor,
        "verdict": finding.verdict,
        "it would take": claim.needs if finding.verdict == NOT_TESTABLE else "",
    }
    columns = (Column("entry", "entry"), Column("text", "text"))
    rows = tuple((name, text) for name, text in entries.items() if text)
    return Table(f"claim_{claim.id}", f"Claim {claim.id}", columns, rows)


def agreement(ledger: Rows | None, now: Rows, *, made_now: bool) -> Check:
    """Whether the rows of the ledger are those of `now`, to the word: what is said there and what was found.

    Numbers of another machine may differ in their last digits, so that of results made now only the verdicts
    are held to the ledger, with all that claims.toml says. `ledger` is None where there is none to be read.
    """
    if ledger is None:
        found = "a ledger that is damaged or not there; make it anew: sinkscope reproduce claims --publish"
        return _agreement(found, False, made_now)
    changed = []
    for name, row in now.items():
        before = ledger.get(name)
        if before is None:
            changed.append(f"{name}: not in the ledger")
        elif before["verdict"] != row["verdict"]:
            changed.append(f"{name}: {before['verdict']} in the ledger, {row['verdict']} now")
        else:
            free = set(Finding._fields) if made_now else set()
            other = [key for key in row if key not in free and before.get(key) != row[key]]
            if other:
                changed.append(f"{name}: other words under {', '.join(other)}")
    changed += [f"{name}: no such claim" for name in ledger if name not in now]
    named = "; ".join(changed[:_NAMED])
    more = f"; {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    found = f"{len(changed)} differ: {named}{more}" if changed else f"all {len(now)} agree"
    return _agreement(found, not changed, made_now)


def _agreement(found: str, ok: bool, made_now: bool) -> Check:
    what = "row and verdict" if made_now else "row"
    whose = "made now" if made_now else "shipped"
    said = f"each {what} of the ledger as claims.toml and the results {whose} say"
    return Check("claims_agree", said, found, ok)


def _figures(figures: Sequence[Figure]) -> str:
    return "; ".join(f"{one.name} {_value(one)}" for one in figures)


def _value(one: Figure) -> str:
    return f"{one.value:g}" if one.count is None else f"{one.count} of {one.of}"
