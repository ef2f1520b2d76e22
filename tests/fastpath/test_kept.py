"""Compiled code on disk: never out of date, and one warning where it cannot be kept, also for the user."""

from __future__ import annotations

import os
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
UNSET = ("NUMBA_BOUNDSCHECK", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

PROBE = """
import numba, numpy as np
from fastpath._jit import compiled_parallel
from fastpath._math import log32

@compiled_parallel
def logarithms(x, out):
    for i in numba.prange(x.shape[0]):
        out[i] = log32(x[i])

out = np.empty(2, np.float32)
logarithms(np.array([1, 7], np.float32), out)
print(abs(float(out[1]) - 1.9459) < 1e-3, sum(logarithms.stats.cache_hits.values()))
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of the packages, without compiled code."""
    for package in ("fastpath", "oracle", "validation"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "probe.py").write_text(PROBE)
    return tmp_path


def environment(tree, **changes):
    kept = {k: v for k, v in os.environ.items() if k not in UNSET}
    return kept | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", **changes}


def probe(tree, **changes):
    done = subprocess.run(
        [sys.executable, "probe.py"],
        cwd=tree,
        env=environment(tree, **changes),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_edit_of_what_a_kernel_calls_compiles_it_anew(tree):
    assert probe(tree) == "True 0"
    assert probe(tree) == "True 1"
    leaf = tree / "fastpath" / "_math.py"
    right = leaf.read_text()
    leaf.write_text(right.replace("return k * _LN2_HIGH", "return _ONE + k * _LN2_HIGH"))
    assert leaf.read_text() != right
    assert probe(tree) == "False 0"
    leaf.write_text(right)
    flags = tree / "fastpath" / "_jit.py"
    flags.write_text(flags.read_text().replace('"reassoc", ', ""))
    assert probe(tree) == "True 0"
    assert probe(tree, NUMBA_BOUNDSCHECK="1") == "True 0"


def measure(tree, *, limit=None, **changes):
    """`sinkscope measure` on two small rows, in a process that writes no file of more than `limit` bytes."""
    np.savez(tree / "rows.npz", attention=np.tile(np.eye(12), (1, 1, 1, 1)))

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "validation", "measure", "--attention", "rows.npz", "--sink", "first"],
        cwd=tree,
        env=environment(tree, **changes),
        capture_output=True,
        text=True,
        preexec_fn=None if limit is None else small,
    )


def warned(run):
    assert run.returncode == 0, run.stderr
    return [line for line in run.stderr.splitlines() if "compiled code cannot be kept" in line]


def test_a_user_of_the_command_line_is_told_once_that_nothing_can_be_kept(tree):
    (tree / "fastpath" / "__pycache__").write_text("in the way")
    (tree / "home").write_text("in the way")
    (line,) = warned(measure(tree, HOME=str(tree / "home")))
    assert line.startswith("sinkscope: warning: ")
    assert line.endswith("set NUMBA_CACHE_DIR to a writable folder.")


def test_a_full_disk_is_one_warning_and_a_torn_file_none(tree):
    (line,) = warned(measure(tree, limit=1000))
    assert "File too large" in line
    assert warned(measure(tree)) == []
    for index in (tree / "fastpath" / "__pycache__").glob("*.nbi"):
        index.write_bytes(b"")
    assert warned(measure(tree)) == []


def flip(data):
    spoiled = bytearray(data)
    spoiled[len(data) // 2] ^= 0x10
    return bytes(spoiled)


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("nbi", lambda data: pickle.dumps([1, 2])),
        ("nbi", flip),
        ("nbc", lambda data: pickle.dumps([1, 2])),
        ("nbc", flip),
    ],
    ids=["index of nothing", "flipped index", "data of nothing", "flipped data"],
)
def test_damaged_files_are_compiled_anew_and_mended(tree, suffix, damage):
    assert probe(tree) == "True 0"
    (file,) = (tree / "__pycache__").glob(f"*logarithms*.{suffix}")
    file.write_bytes(damage(file.read_bytes()))
    assert probe(tree) == "True 0"
    assert probe(tree) == "True 1"


def test_an_index_that_names_the_data_of_another_signature_is_not_believed(tree):
    code = PROBE.replace("out = np", "logarithms(np.array([1.0]), np.empty(1))\nout = np")
    (tree / "probe.py").write_text(code)
    assert probe(tree) == "True 0"
    first, second = sorted((tree / "__pycache__").glob("*logarithms*.nbc"))
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)
    assert probe(tree) == "True 0"
