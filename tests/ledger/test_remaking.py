"""The ledger made from shipped results: where none was, again, and not where a result is missing."""

import shutil

import pytest

from validation.claims import read_claims
from validation.ledger.command import Chosen, remake_ledger, show_claims
from validation.ledger.saved import read_rows
from validation.progress import silent
from validation.reproduction import choose_runs
from validation.reproduction.kept import SHIPPED, read_kept
from validation.reproduction.stamp import stamp_of


@pytest.fixture
def shipped(tmp_path):
    """A folder with the shipped results of the runs, and no ledger."""
    for path in SHIPPED.glob("*.json"):
        if path.stem != "claims":
            shutil.copy(path, tmp_path)
    return tmp_path


def test_the_ledger_is_made_where_none_was_and_again_changes_nothing(shipped):
    assert read_rows(shipped) is None
    document = remake_ledger(shipped)
    assert not document.failed
    (run,) = choose_runs(["claims"])
    kept = read_kept(run, shipped)
    assert kept.stamp == stamp_of(run)
    assert kept.report["checks"] == {"held": 1, "failed": 0, "not_run": 0}
    assert "other_code" not in [part["key"] for part in kept.report["parts"]]
    assert list(read_rows(shipped)) == [claim.id for claim in read_claims()]
    remake_ledger(shipped)
    assert read_kept(run, shipped).report == kept.report


def test_a_damaged_ledger_is_said_to_be_and_made_anew(shipped):
    remake_ledger(shipped)
    path = shipped / "claims.json"
    whole = path.read_text()
    path.write_text(whole.replace('"verdict":"fails"', '"verdict":"holds"', 1))
    assert path.read_text() != whole
    given = {"run": False, "fresh": False, "progress": silent, "folder": shipped}
    for chosen in (Chosen(), Chosen(part="B")):
        (check,) = (one for one in show_claims(chosen, **given).parts if one.key == "claims_agree")
        assert not check.ok
        assert "damaged" in check.found
        assert "sinkscope reproduce claims --publish" in check.found
    assert not remake_ledger(shipped).failed
    assert list(read_rows(shipped)) == [claim.id for claim in read_claims()]


def test_the_ledger_stays_as_it_is_where_a_result_is_missing(shipped):
    remake_ledger(shipped)
    before = (shipped / "claims.json").read_bytes()
    (shipped / "prune-smollm2.json").unlink()
    document = remake_ledger(shipped)
    assert "NOT RUN: prune-smollm2" in document.not_run[0].text
    assert (shipped / "claims.json").read_bytes() == before
