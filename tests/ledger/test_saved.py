"""The computed part of the ledger as a shipped result: read back as written, and never anything else."""

import json

from ledger_results import CLAIMS
from wording import refused

from validation.ledger.finding import FAILS, HOLDS, Finding
from validation.ledger.saved import read_rows, write_ledger
from validation.ledger.tables import ledger_table
from validation.report.document import Document
from validation.reproduction import load_result

CHOSEN = [CLAIMS["code"], CLAIMS["median"]]
FINDINGS = {"code": Finding("‖v‖ 5%", HOLDS, "1%", ""), "median": Finding("nothing", FAILS, "3%", "T 5")}


def write(folder, findings=FINDINGS):
    table = ledger_table(CHOSEN, findings, {"validate": "sinkscope validate"})
    write_ledger(Document("claims", {"claims": 2}, (table,)), 0.5, folder)


def test_what_is_written_is_read_back_in_its_order(tmp_path):
    write(tmp_path)
    rows = read_rows(tmp_path)
    assert list(rows) == list(FINDINGS)
    assert [Finding(**{key: row[key] for key in Finding._fields}) for row in rows.values()] == list(
        FINDINGS.values()
    )
    assert rows["code"]["rule"] == CLAIMS["code"].rule
    assert load_result("claims", tmp_path)["provenance"] == {"claims": 2}


def test_a_ledger_that_was_edited_by_hand_is_none(tmp_path):
    write(tmp_path)
    path = tmp_path / "claims.json"
    path.write_text(path.read_text().replace('"verdict":"fails"', '"verdict":"holds"'))
    assert json.loads(path.read_text())["run"] == "claims"
    assert read_rows(tmp_path) is None


def test_without_a_file_there_are_no_findings(tmp_path):
    assert read_rows(tmp_path) is None


def test_another_verdict_is_refused(tmp_path):
    write(tmp_path, {**FINDINGS, "median": Finding("nothing", "confirmed", "1%")})
    with refused("the ledger", "'confirmed' of claim median", "sinkscope reproduce claims --publish"):
        read_rows(tmp_path)
