"""Where compiled code is kept, what happens where it cannot be, and the flags that NaN depends on."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from fastpath import _jit, _kept

ROOT = Path(__file__).resolve().parents[2]
MEASURE = """
import warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np, fastpath
    share = fastpath.sink_share(np.full((2, 4, 4), 0.25), [True, False, False, False])
print(share.tolist() == [[0.25] * 4] * 2, [str(w.message) for w in caught])
"""


def test_no_flag_lets_a_nan_vanish():
    assert not {"nnan", "ninf", "fast"} & (_jit.FAST_MATH | _jit.EXACT_MATH)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_flags_reach_the_compiler():
    options = _jit.compiled_parallel(lambda x: x).targetoptions
    assert options["fastmath"] == set(_jit.FAST_MATH)
    assert options["error_model"] == "numpy"


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("writable", [True, False])
def test_a_cache_that_cannot_be_written_is_one_warning_and_works(tmp_path, writable):
    """A source folder and a home that are plain files leave Numba nowhere to write, also as root."""
    for package in ("fastpath", "oracle"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    if not writable:
        (tmp_path / "fastpath" / "__pycache__").write_text("in the way")
        (tmp_path / "home").write_text("in the way")
    environment = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment |= {
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert run.returncode == 0, run.stderr
    right, _, messages = run.stdout.strip().partition(" ")
    assert right == "True"
    found = [m for m in ast.literal_eval(messages) if "compiled code cannot be kept" in m]
    assert len(found) == (0 if writable else 1), run.stdout
    assert all("NUMBA_CACHE_DIR" in message for message in found)


def test_a_warning_is_given_once(monkeypatch):
    def refuse(*_, cache=False, **__):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(_jit.numba, "njit", lambda f, cache=False, **_: refuse(cache=cache)(f))
    monkeypatch.setattr(_kept, "_warned", False)
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR"):
        assert _jit.compiled_parallel(np.sum) is np.sum
    assert _jit.compiled_parallel(np.sum) is np.sum  # a second warning would be an error here


@pytest.mark.skipif(
    not numba.config.BOUNDSCHECK or numba.config.DISABLE_JIT, reason="needs NUMBA_BOUNDSCHECK=1"
)
def test_the_bounds_check_finds_what_is_read_past_the_end():
    @_jit.compiled_parallel
    def last(rows, out):
        for row in numba.prange(rows.shape[0]):
            out[row] = rows[row, np.uintp(rows.shape[1])]

    assert numba.get_num_threads() == 1, "run it with NUMBA_NUM_THREADS=1: other threads keep their errors"
    with pytest.raises((IndexError, SystemError)):
        last(np.zeros((4, 3)), np.zeros(4))
