"""What a process of its own measures of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ASK = "from validation.bench.child import peak_memory; print(peak_memory())"
GROW = (
    "import numpy; from validation.bench.child import peak_memory; before = peak_memory(); "
    "numpy.ones(16 << 20); print(peak_memory() - before)"
)


def asked(code):
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    return int(run.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a program's own peak")
def test_the_peak_of_a_process_is_not_that_of_the_one_that_started_it():
    large = np.ones(32 << 20)
    assert asked(ASK) < large.nbytes


def test_the_peak_is_in_bytes_and_outlives_what_it_is_of():
    pytest.importorskip("resource", reason="peak memory is asked of POSIX")
    assert (120 << 20) < asked(GROW) < (160 << 20)
