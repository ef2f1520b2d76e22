from __future__ import annotations

import json
from pathlib import Path

import pytest

from validation.reproduction import process, runs
from validation.reproduction.runs import Run

PROGRAM = """
import json, os, sys, time
from pathlib import Path

kind, value, *_ = words = sys.argv[1:]
with open(Path(__file__).with_name("calls"), "a") as file:
    file.write(f"{kind} {value}\\n")
print("a line of", kind)
if kind == "fail":
    print("a last line", file=sys.stderr)
    sys.exit(int(value))
if kind == "step":  # goes on where it was: the second time it ends
    place = Path(value) / "half"
    first = not place.exists()
    place.write_text(str(os.getpid()))
    time.sleep(60 * first)
if kind == "slow":
    time.sleep(0.7)
if kind == "wait":  # until it is killed
    Path(value).write_text(str(os.getpid()))
    time.sleep(60)
said = {name: os.environ.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY")}
parts = [
    {"kind": "note", "key": "said", "text": value if kind != "step" else "whole"},
    {"kind": "table", "key": "large", "title": "", "shown": False, "columns": [], "rows": [],
     "undefined": [], "intro": [], "notes": []},
]
report = {"format": 1, "command": kind, "provenance": said, "checks": {}, "parts": parts}
if kind == "doubt":  # a check fails, and the report is there
    parts.append({"kind": "check", "key": "sums", "expected": "1", "found": "2", "ok": False})
Path(words[words.index("--json") + 1]).write_text(json.dumps(report))
sys.exit(kind == "doubt")
"""


class Program:
    """What stands in the place of `sinkscope`, and how often it was called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = folder / "validation"
        self.place.mkdir(parents=True)
        (self.place / "__init__.py").write_text("")
        (self.place / "__main__.py").write_text(PROGRAM)
        self._patch = monkeypatch
        monkeypatch.setattr(process, "ROOT", folder)
        monkeypatch.setattr(process, "_GRACE", 0.2)
        monkeypatch.setattr(process, "_TICK", 0.05)

    def offer(self, **commands: list[str]) -> None:
        """Make these the named runs."""
        found = tuple(Run(name, tuple(command), "a run", 1) for name, command in commands.items())
        self.offer_runs(*found)

    def offer_runs(self, *found: Run) -> None:
        self._patch.setattr(runs, "read_runs", lambda: found)

    @property
    def calls(self) -> list[str]:
        place = self.place / "calls"
        return place.read_text().splitlines() if place.exists() else []


@pytest.fixture
def program(tmp_path_factory, monkeypatch) -> Program:
    """A program with results of a line, quick, failing or slow as its words say."""
    return Program(tmp_path_factory.mktemp("program"), monkeypatch)


@pytest.fixture
def report() -> dict:
    """A small report as --json writes it."""
    from validation.report.as_json import dumps
    from validation.report.document import Check, Column, Document, Note, Table

    columns = (Column("metric", "metric"), Column("flips", "flips", ".1%"), Column("n", "n", ",d"))
    rows = (("cosine", 0.27, 1200), ("JSD", float("nan"), 7), ("L1", 0.0123, None), ("entropy", 0.5, 3))
    parts = (
        Note("section", "Verdicts"),
        Table("flips", "What flips", columns, rows, ("a note",), ("an intro",)),
        Table("hidden", "Hidden", columns[:1], (("a",),), shown=False),
        Note("closing", "First sentence."),
        Note("closing", "Second sentence."),
        Check("sums", "1", "1.0000001", True),
    )
    return json.loads(dumps(Document("audit", {"model": "m", "versions": {"numpy": "2"}}, parts)))
