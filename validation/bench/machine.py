"""What a timing depends on: processor, threads, load, versions, BLAS."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import numpy as np

from validation import peers
from validation.provenance import processor, usable_cpus

__all__ = ["blas_threads", "busy", "equal_threads", "load_average", "machine", "thread_counts", "unequal"]


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
        "processor": processor(),
        "cpus": usable_cpus(),
        **{f"{name}_threads": count for name, count in thread_counts().items()},
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
    return usable_cpus()


@contextmanager
def equal_threads() -> Iterator[None]:
    """Give Numba and torch as many threads as BLAS has, and set back what was there before.

    torch is imported before Numba starts its pool: the other way round its attention took ten times as long.
    The start of the pool, on OpenMP, sets the count of every library in the process, so torch's is set again.
    """
    import numba

    count = blas_threads()
    with peers.torch_threads(count):
        before = numba.get_num_threads()  # starts the pool
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
        try:
            with peers.torch_threads(count):
                yield
        finally:
            numba.set_num_threads(before)


def thread_counts() -> dict[str, int | str]:
    """Threads of BLAS, of Numba and of torch as they are at this moment, or "not loaded"."""
    return {"blas": blas_threads(), "numba": _threads_of("numba"), "torch": _threads_of("torch")}


def unequal(counts: dict[str, int | str]) -> str:
    """What is wrong with thread counts that differ, in words; nothing where those that are there agree."""
    numbers = {count for count in counts.values() if isinstance(count, int)}
    if len(numbers) < 2:
        return ""
    named = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (
        f"The thread counts differ ({named}): who has more is favoured. "
        "Set OMP_NUM_THREADS and NUMBA_NUM_THREADS to one number."
    )


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
