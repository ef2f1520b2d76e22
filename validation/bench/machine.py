"""What a timing depends on: processor, threads, load, versions, BLAS."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["blas_threads", "busy", "load_average", "machine"]


def machine() -> dict[str, Any]:
    """Processor, CPUs, threads of BLAS, Numba and torch, load average, versions (or "absent"), BLAS."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    versions = {}
    for name in ("numpy", "numba", "torch", "transformers"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "blas_threads": blas_threads(),
        "numba_threads": _threads_of("numba"),
        "torch_threads": _threads_of("torch"),
        "load_average": load_average(),
        "python": platform.python_version(),
        "blas": f"{blas.get('name')} {blas.get('version')}",
        **versions,
    }


def blas_threads() -> int:
    """How many threads NumPy's BLAS was told to use when it started; by default one for each CPU."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdigit():
            return max(1, int(os.environ[name]))
    return os.cpu_count() or 1


def load_average() -> list[float]:
    """The system's load over 1, 5 and 15 minutes; empty where it is not told."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else []


def busy(before: Sequence[float], after: Sequence[float], cpus: int) -> str:
    """A warning in words if other programs kept the processors busy before or during a run, else nothing.

    Before the run at most half of the processors may be in use; during it, itself included, half as many
    again as there are.
    """
    started, ended = (loads[0] if loads else 0.0 for loads in (before, after))
    if started <= cpus / 2 and ended <= 1.5 * cpus:
        return ""
    return (
        f"The machine was busy (load {started:.1f} before, {ended:.1f} after, on {cpus} CPUs): its "
        "timings and exponents, and the goals they meet or miss, say little."
    )


def _threads_of(name: str) -> int | str:
    """Threads of a library that this process has loaded; "not loaded" otherwise."""
    count = getattr(sys.modules.get(name), "get_num_threads", None)
    return int(count()) if count is not None else "not loaded"


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
