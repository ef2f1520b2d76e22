"""The computed part of the ledger as a file: written whole, read back, and never anything else."""

import json

import pytest
from wording import refused

from validation.ledger.finding import FAILS, HOLDS, Finding
from validation.ledger.saved import read_findings, write_findings

FINDINGS = {"one": Finding("‖v‖ 5%", HOLDS), "two": Finding("nothing", FAILS, "3%", "T 5")}


def test_what_is_written_is_read_back_in_its_order(tmp_path):
    path = tmp_path / "found.json"
    write_findings(FINDINGS, path)
    assert list(read_findings(path).items()) == list(FINDINGS.items())
    before = path.read_bytes()
    write_findings(read_findings(path), path)
    assert path.read_bytes() == before
    assert "‖v‖" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        ('{"one": {"found": "x"}}', "verdict"),
        ('{"one": {"found": "x", "verdict": "holds", "floor": "", "more": 1}}', "more"),
        ('{"one": {"found": "x", "verdict": "confirmed", "floor": "none"}}', "'confirmed' of claim one"),
        ('["one"]', "items"),
    ],
)
def test_another_file_is_refused(tmp_path, text, said):
    path = tmp_path / "found.json"
    path.write_text(text)
    with refused("found.json", said, "Write it again."):
        read_findings(path)


def test_a_missing_file_is_refused(tmp_path):
    with refused("none.json", "No such file"):
        read_findings(tmp_path / "none.json")


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    with refused("--write", "no such directory"):
        write_findings(FINDINGS, tmp_path / "none" / "found.json")


def test_it_is_plain_json(tmp_path):
    path = tmp_path / "found.json"
    write_findings(FINDINGS, path)
    written = {"found": "nothing", "verdict": FAILS, "floor": "3%", "lengths": "T 5"}
    assert json.loads(path.read_text())["two"] == written
