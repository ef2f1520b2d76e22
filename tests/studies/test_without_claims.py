"""Studies where claims.toml is empty or damaged: their own work is done, and what is missing is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checkpoint_series import TEXTS, write_series

ROOT = Path(__file__).parents[2]
CODE = """
import os, sys
from pathlib import Path
from validation import claims
claims._FILE = Path(sys.argv[1])
from validation.cli import main
sys.exit(main(sys.argv[2:]))
"""
LABELS = """
import sys
from pathlib import Path
from validation import claims
claims._FILE = Path(sys.argv[1])
from validation.studies.collapse.demo import _no_trend
print(_no_trend().text)
"""


@pytest.fixture(
    params=["", "[[claim", "[source.a]\npart = 'A'\ntitle = 'a'\n"], ids=["empty", "cut", "no claims"]
)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "claims.toml"
    path.write_text(request.param)
    return path


def called(code: str, *arguments: object) -> tuple[int, str, str]:
    given = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, timeout=100)
    return done.returncode, " ".join(done.stdout.split()), done.stderr


def test_checkpoints_of_the_user_need_no_published_figure(damaged: Path, tmp_path: Path) -> None:
    places = write_series(tmp_path / "run", (0, 8))
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    kept = ("--file", tmp_path / "texts.txt", "--results", tmp_path / "found.jsonl", "--engine", "oracle")
    code, shown, err = called(CODE, damaged, "collapse", *places, *kept)
    assert (code, err) == (0, "")
    assert "1 of 1 checks held." in shown


def test_pruning_needs_one_for_its_rule_and_says_so(damaged: Path, tmp_path: Path) -> None:
    (place,) = write_series(tmp_path / "run", (0,))
    code, shown, err = called(CODE, damaged, "prune", "--model", place, "--out", tmp_path / "passes.jsonl")
    assert (code, shown) == (2, "")
    assert err.startswith("sinkscope: claims.toml: expected claims as the file explains them; found ")
    assert err.count("\n") == 1
    assert not (tmp_path / "passes.jsonl").exists()


def test_the_demonstration_says_that_it_has_no_published_trend(damaged: Path) -> None:
    code, shown, err = called(LABELS, damaged)
    assert (code, err) == (0, "")
    assert shown.startswith(
        "NOT RUN: the published trend over model size beside these: claims.toml: expected"
    )
