from __future__ import annotations

from dataclasses import replace

import pytest

from oracle import InputError
from validation.bench.case import _COLUMNS
from validation.bench.readme import BEGIN, END, check_marks, markdown, replace_between, write_readme
from validation.report.document import Check, Column, Document, Note, Table

MACHINE = {
    "processor": "A processor",
    "cpus": 2,
    "threads": {"blas": 2, "numba": 2, "torch": "not loaded"},
    "blas": "openblas 1",
    "load_before": [0.5, 0.25, 0.1],
    "load_after": [],
}
CASE = Table(
    "rows",
    "Rows | pipes",
    _COLUMNS,
    (
        ("fastpath", 20.0, None, None, None, "", "", 1e-7),
        ("torch, eager", 440.0, 22.0, 21.5, 22.5, ">= 15", "met", 2e-7),
        ("torch, SDPA", 15.0, 0.75, 0.7, 0.8, "", "", None),
        ("absent", None, None, None, None, ">= 8", "not run", None),
    ),
)
FIGURES = Table(
    "growth",
    "Growth",
    (Column("what", "what"), Column("value", "exponent"), Column("goal", "goal"), Column("verdict", "")),
    (("rows time in T", 2.125, "<= 2.05", "missed"), ("rows time in heads", 1.0, "", "")),
)
RESIDENT = Table(
    "resident",
    "Memory",
    FIGURES.columns,
    (("streaming", 40.5, "<= 64", "met"), ("rows", 12288.0, "", "")),
)
NORMS = Table(
    "transformed memory",
    "Norms",
    tuple(Column(key, key) for key in ("contender", "mib", "times", "goal", "verdict")),
    (("fastpath", 2.0, None, "", ""), ("einsum", 9216.0, 4608.0, ">= 1000", "met")),
)
DOCUMENT = Document(
    "bench",
    {"machine": MACHINE, "versions": {"numpy": "2.0"}},
    (Note("section", "Rows"), CASE, NORMS, RESIDENT, FIGURES, Check("a", "b", "c", True)),
)


def beside(part):
    return replace(DOCUMENT, parts=(*DOCUMENT.parts, part))


def test_our_own_goal_has_a_line():
    ours = ("fastpath", 12.5, None, None, None, "<= 50 ms", "met", 0.0)
    table = Table("verdicts", "Verdicts", _COLUMNS, (ours, ("scipy", 80.0, 6.4, 6.0, 7.0, "", "", 0.0)))
    lines = markdown(replace(DOCUMENT, parts=(table,))).split("\n")
    assert lines[2] == "| Verdicts |  | 12.5 ms |  |  | <= 50 ms | met |"
    assert lines[3].startswith("| Verdicts | scipy | 12.5 ms | 80.0 ms |")


def test_the_table_holds_every_comparison_losses_included():
    lines = markdown(DOCUMENT).split("\n")
    assert lines[2:9] == [
        "| Rows \\| pipes | torch, eager | 20.0 ms | 440 ms | 22.00 (21.50 to 22.50) | >= 15 | met |",
        "|  | torch, SDPA | 20.0 ms | 15.0 ms | 0.75 (0.70 to 0.80) |  |  |",
        "|  | absent | 20.0 ms |  |  | >= 8 | not run |",
        "| Norms | einsum | 2.0 MiB | 9,216 MiB | 4,608 | >= 1000 | met |",
        "| streaming |  | 40.50 MiB |  |  | <= 64 | met |",
        "| growth exponent: rows time in T |  | 2.12 |  |  | <= 2.05 | missed |",
        "",
    ]
    assert all(line.count("|") - line.count("\\|") == 8 for line in lines[:8])
    stamp = lines[9]
    for words in (
        "A processor, 2 CPUs",
        "blas 2, numba 2",
        "0.50, 0.25, 0.10 before and unknown after",
        "numpy 2.0",
    ):
        assert words in stamp


def test_a_busy_machine_is_said_beside_the_table():
    assert markdown(beside(Note("busy", "It was busy."))) == f"{markdown(DOCUMENT)} It was busy."


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_what_stands_between_the_marks_changes(tmp_path, ending):
    before, after = (
        f"# Title{ending}café{ending}{ending}{BEGIN}",
        f"{END}{ending}{ending}More | text  {ending}",
    )
    target = tmp_path / "README.md"
    target.write_bytes(f"{before}{ending}old{ending}{after}".encode())
    target.chmod(0o644)
    for _ in range(2):  # a second time changes nothing more
        write_readme(DOCUMENT, target)
        written = target.read_bytes().decode()
        assert written.startswith(before)
        assert written.endswith(after)
        assert "old" not in written
        table = written[len(before) : -len(after)]
        assert table.strip(ending) == markdown(DOCUMENT).replace("\n", ending)
        assert table.startswith(ending * 2)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert target.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "text", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}", f"{BEGIN}{END}{END}"]
)
def test_without_two_marks_in_their_order_nothing_is_written(tmp_path, text):
    target = tmp_path / "README.md"
    target.write_text(text)
    with pytest.raises(InputError, match="--readme: expected one line <!-- bench:begin -->"):
        write_readme(DOCUMENT, target)
    with pytest.raises(InputError, match=r"README\.md"):
        check_marks(target)
    assert target.read_text() == text


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.md", tmp_path):
        with pytest.raises(InputError, match="--readme: expected a text file"):
            write_readme(DOCUMENT, path)


def test_a_run_that_disagrees_is_not_published(tmp_path):
    target = tmp_path / "README.md"
    target.write_text(f"{BEGIN}\n{END}")
    failed = beside(Check("agreement.rows", "a", "b", False))
    with pytest.raises(InputError, match=r"found agreement\.rows"):
        write_readme(failed, target)
    assert target.read_text() == f"{BEGIN}\n{END}"


def test_a_run_that_left_something_out_is_not_published(tmp_path):
    target = tmp_path / "README.md"
    target.write_text(f"{BEGIN}\n{END}")
    with pytest.raises(InputError, match="a run of everything; found NOT RUN: no torch"):
        write_readme(beside(Note("not_run", "NOT RUN: no torch")), target)
    assert target.read_text() == f"{BEGIN}\n{END}"


def test_the_readme_of_the_project_has_the_marks():
    from pathlib import Path

    import validation

    check_marks(Path(validation.__file__).parents[1] / "README.md")


def test_text_without_line_ends_is_fine():
    assert replace_between(BEGIN + END, "t") == f"{BEGIN}\n\nt\n\n{END}"
