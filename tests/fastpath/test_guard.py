"""Processes and threads in which compiled loops would end everything; settings that Numba refuses."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

FORKED = """
import multiprocessing, numpy as np, numba, fastpath, oracle
rows = np.full((2, 3, 3), 1 / 3)

def share(_):
    return fastpath.sink_share(rows, [1, 0, 0]).tolist() == oracle.sink_share(rows, [1, 0, 0]).tolist()

if FIRST:
    share(0)
with multiprocessing.get_context("fork").Pool(1) as pool:
    try:
        print(pool.map(share, [0]))
    except RuntimeError as error:
        print(type(error).__name__, error)
"""

THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, fastpath
rows = np.full((8, 60, 60), 1 / 60)

def share(_):
    return fastpath.sink_share(rows, np.arange(60) == 0).mean()

with ThreadPoolExecutor(4) as pool:
    print(np.allclose(list(pool.map(share, range(200))), 1 / 60))
"""


def run(code, **changes):
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"} | changes
    return subprocess.run(
        [sys.executable, *code], capture_output=True, text=True, env=environment, timeout=100
    )


def is_gnu():
    omppool = pytest.importorskip("numba.np.ufunc.omppool", reason="no OpenMP here")
    return omppool.openmp_vendor == "GNU"


@pytest.mark.parametrize("first", [True, False])
def test_a_forked_process_says_what_to_do_and_no_pool_waits(first):
    if not is_gnu():
        pytest.skip("another OpenMP, which outlives a fork")
    done = run(["-c", FORKED.replace("FIRST", str(first))], NUMBA_THREADING_LAYER="omp")
    assert done.returncode == 0, done.stderr
    assert "SIGTERM" not in done.stderr
    if first:
        assert done.stdout.startswith("Unavailable fastpath: this process was forked")
        assert '"spawn" or "forkserver"' in done.stdout
        assert "NUMBA_THREADING_LAYER" in done.stdout
    else:
        assert done.stdout == "[True]\n"


def test_the_other_way_that_the_refusal_names_works():
    done = run(["-c", FORKED.replace("FIRST", "True")], NUMBA_THREADING_LAYER="workqueue")
    assert (done.returncode, done.stdout) == (0, "[True]\n"), done.stderr


def test_two_threads_of_python_take_turns():
    done = run(["-c", THREADS], NUMBA_THREADING_LAYER="workqueue")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("NUMBA_NUM_THREADS", "0", "must be > 0"),
        ("NUMBA_THREADING_LAYER", "nonsense", "unknown to Numba"),
    ],
)
def test_a_setting_that_numba_refuses_is_one_line_on_the_command_line(tmp_path, setting, value, words):
    np.savez(tmp_path / "rows.npz", attention=np.full((1, 1, 3, 3), 1 / 3))
    call = ["-m", "validation", "measure", "--attention", str(tmp_path / "rows.npz"), "--sink", "first"]
    done = run(call, **{setting: value})
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("sinkscope: NUMBA_ variables: expected settings that Numba takes; found ")
    assert f"{setting}={value}" in line
    assert words in line
