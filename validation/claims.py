"""The published claims as claims.toml lists them: what the sources say, and the rules that decide.

Figures that others published have their one home there; studies take them with `figure`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from oracle._checks import reject

__all__ = ["Claim", "Figure", "Source", "figure", "read_claims"]

_FILE = Path(__file__).with_name("claims.toml")
_OPTIONAL = {"figures", "given", "runs", "command", "needs"}
_TOP = {"source", "criterion", "claim"}
_CRITERION = {"rule", "given", "needs"}


@dataclass(frozen=True)
class Source:
    """Where claims stand: the part of the ledger, and the publication in words."""

    part: str  # "A" or "B"
    title: str


@dataclass(frozen=True)
class Figure:
    """One published number; where it is a share of counted things, `count` and `of` are the counts."""

    key: str
    name: str
    value: float
    count: int | None = None
    of: int | None = None


@dataclass(frozen=True)
class Claim:
    """One row of the ledger as it is written by hand; claims.toml explains the entries."""

    id: str
    source: Source
    says: str
    model: str
    rule: str
    judge: str
    here: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    given: Mapping[str, Any] | None = None
    runs: tuple[str, ...] = ()
    command: str = ""
    needs: str = ""

    def figure(self, key: str) -> Figure:
        """The figure of that key; LookupError if the claim has none."""
        for one in self.figures:
            if one.key == key:
                return one
        raise LookupError(f"claim {self.id} has no figure {key!r}")

    def number(self, name: str) -> Any:
        """What the rule was given under that name; LookupError if it was not."""
        if self.given is None or name not in self.given:
            raise LookupError(f"claim {self.id} is given no {name!r}")
        return self.given[name]


def read_claims(path: Path | None = None) -> tuple[Claim, ...]:
    """The claims in their order; a file that is wrong raises InputError with the claim and the entry."""
    return _shipped() if path is None else _read(path)


@cache
def _shipped() -> tuple[Claim, ...]:
    return _read(_FILE)


def _read(path: Path) -> tuple[Claim, ...]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        _refuse(path, f"{error}")
    if wrong := sorted(data.keys() - _TOP):
        _refuse(path, f"{', '.join(wrong)} at the top")
    sources = {key: _source(path, key, entry) for key, entry in data.get("source", {}).items()}
    criteria = data.get("criterion", {})
    for key, entry in criteria.items():
        if not isinstance(entry, dict) or not entry.get("rule") or entry.keys() - _CRITERION:
            _refuse(path, f"criterion {key}: {entry!r}; it takes a rule, and at will given and needs")
    if not data.get("claim"):
        _refuse(path, "no claims in it")
    claims = tuple(
        _claim(path, _with_criterion(path, entry, criteria), sources) for entry in data.get("claim", [])
    )
    for what, names in (
        ("claims", [claim.id for claim in claims]),
        ("figures", [one.key for claim in claims for one in claim.figures]),
    ):
        if twice := _twice(names):
            _refuse(path, f"{what} that come twice: {', '.join(twice)}")
    return claims


@cache
def figure(key: str) -> Figure:
    """The published figure of that key, from whichever claim has it; InputError if none does.

    Asked for where it is printed or compared with, never at import: what needs no figure runs without them.
    """
    for claim in read_claims():
        for one in claim.figures:
            if one.key == key:
                return one
    _refuse(_FILE, f"no published figure {key!r}")


def _source(path: Path, key: str, entry: Any) -> Source:
    if not isinstance(entry, dict) or entry.keys() != {"part", "title"} or entry["part"] not in ("A", "B"):
        _refuse(path, f"source {key}: {entry!r}; it takes a part, A or B, and a title")
    return Source(**entry)


def _with_criterion(path: Path, entry: Mapping[str, Any], criteria: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry of a claim with the criterion that it names: its words after the rule, and what it gives."""
    if "criterion" not in entry:
        return entry
    own = {key: value for key, value in entry.items() if key != "criterion"}
    if entry["criterion"] not in criteria:
        _refuse(path, f"claim {entry.get('id')}: criterion {entry['criterion']!r}, which is not described")
    shared = criteria[entry["criterion"]]
    if twice := sorted(shared.get("given", {}).keys() & own.get("given", {}).keys()):
        _refuse(path, f"claim {entry.get('id')}: {', '.join(twice)}, which its criterion gives")
    if own.get("rule"):
        own["rule"] = f"{own['rule']} {shared['rule']}"
    if given := {**shared.get("given", {}), **own.get("given", {})}:
        own["given"] = given
    return ({"needs": shared["needs"]} if "needs" in shared else {}) | own


def _claim(path: Path, entry: Mapping[str, Any], sources: Mapping[str, Source]) -> Claim:
    name = f"claim {entry.get('id', 'without an id')}"
    known = {field.name for field in fields(Claim)}
    if wrong := sorted(entry.keys() - known):
        _refuse(path, f"{name}: {', '.join(wrong)}, which nobody reads")
    if missing := sorted(known - _OPTIONAL - {key for key, value in entry.items() if value not in ("", [])}):
        _refuse(path, f"{name}: no {', '.join(missing)}")
    if entry["source"] not in sources:
        _refuse(path, f"{name}: source {entry['source']!r}, which is not described")
    if bool(entry.get("runs")) == bool(entry.get("command")):
        _refuse(path, f"{name}: neither runs nor a command, or both")
    given = entry.get("given")
    try:
        rule = entry["rule"].format_map(given or {})
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        _refuse(path, f"{name}: a rule with {error}, which `given` lacks")
    told = {
        **entry,
        "source": sources[entry["source"]],
        "rule": rule,
        "figures": tuple(_figure(path, name, one) for one in entry.get("figures", ())),
        "runs": tuple(entry.get("runs", ())),
        "here": tuple(entry["here"]),
    }
    return Claim(**told)


def _figure(path: Path, name: str, entry: Mapping[str, Any]) -> Figure:
    keys = entry.keys()
    if keys == {"key", "name", "value"}:
        return Figure(entry["key"], entry["name"], float(entry["value"]))
    if keys == {"key", "name", "count", "of"} and entry["of"] > 0:
        return Figure(entry["key"], entry["name"], entry["count"] / entry["of"], entry["count"], entry["of"])
    _refuse(path, f"{name}: a figure {dict(entry)}; it takes a key, a name, and value or count and of")


def _twice(names: Iterable[str]) -> list[str]:
    listed = list(names)
    return sorted({name for name in listed if listed.count(name) > 1})


def _refuse(path: Path, found: str) -> NoReturn:
    reject(
        path.name,
        expected="claims as the file explains them",
        found=found,
        todo="Mend the file.",
    )
