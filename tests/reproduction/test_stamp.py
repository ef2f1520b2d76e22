"""What makes a result out of date: code and data, not what is only made from results."""

from __future__ import annotations

import pytest

from validation.reproduction import stamp
from validation.reproduction.runs import Run
from validation.reproduction.stamp import code_digest, results_digest

FILES = ("oracle/a.py", "fastpath/b.py", "validation/c.py", "validation/data.json")


def tree(folder, changed="", text="changed"):
    for name in (*FILES, changed) if changed else FILES:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text if name == changed else "x")
    return folder


def digest(tmp_path, *change):
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    return code_digest(tree(folder, *change))


@pytest.mark.parametrize(
    "name", [*FILES, "validation/claims.py", "validation/audit/new.py", "oracle/words.txt"]
)
def test_a_change_of_code_or_data_is_another_digest(tmp_path, name):
    assert digest(tmp_path) == digest(tmp_path)
    assert digest(tmp_path) != digest(tmp_path, name)


CLAIM = """[[claim]]
id = "{id}"
rule = "{rule}"
figures = [
  {{ key = "a", name = "share", value = {value} }},
  {{ key = "b", name = "{name}", count = 1, of = 3 }},
]
"""


def digest_of_claims(tmp_path, **entries):
    text = CLAIM.format(**{"id": "one", "rule": "a rule", "value": 0.5, "name": "rows", **entries})
    return digest(tmp_path, "validation/claims.toml", text)


def test_a_published_figure_is_a_part_of_it_and_the_wording_of_a_rule_is_not(tmp_path):
    same = digest_of_claims(tmp_path)
    assert digest_of_claims(tmp_path, rule="another rule", id="two") == same
    assert digest_of_claims(tmp_path, value=0.6) != same
    assert digest_of_claims(tmp_path, name="other rows") != same


def test_claims_that_cannot_be_read_are_what_they_are(tmp_path):
    one, other = (digest(tmp_path, "validation/claims.toml", text) for text in ("claim = [", "claim = 1"))
    assert one != other


def test_the_processor_counts_where_it_decides_on_figures(monkeypatch):
    monkeypatch.setattr(stamp, "processor", lambda: "this one")
    assert stamp.stamp_of(Run("a", ("b",), "c", elsewhere=("*",)))["processor"] == "this one"
    assert "processor" not in stamp.stamp_of(Run("a", ("b",), "c"))


def test_a_renamed_file_is_another_digest(tmp_path):
    assert digest(tmp_path, "oracle/d.py", "x") != digest(tmp_path, "oracle/e.py", "x")


@pytest.mark.parametrize(
    "name",
    [
        "validation/results/a.json",
        "validation/ledger/a.py",
        "validation/reproduction/runs.toml",
        "validation/__pycache__/c.pyc",
        "README.md",
    ],
)
def test_what_is_made_from_results_is_no_part_of_it(tmp_path, name):
    assert digest(tmp_path) == digest(tmp_path, name)


@pytest.mark.parametrize(
    "name", ["validation/results/a.json", "validation/ledger/a.py", "validation/claims.toml"]
)
def test_what_is_made_from_results_is_out_of_date_when_they_change(tmp_path, name):
    before, after = (tree(tmp_path / where) for where in ("before", "after"))
    assert results_digest("claims", before) == results_digest("claims", after)
    assert results_digest("claims", before) != results_digest("claims", tree(after, name))


def test_its_own_result_does_not_change_it(tmp_path):
    before, after = (tree(tmp_path / where) for where in ("before", "after"))
    assert results_digest("claims", before) == results_digest(
        "claims", tree(after, "validation/results/claims.json")
    )
