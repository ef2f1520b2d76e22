"""Paired timings in one process: agreement first, warmed up, interleaved, the machine stamped."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle import Model, forward
from oracle._checks import reject
from oracle.inputs import check_length
from validation.progress import Progress, silent
from validation.reference import Reference, torch_threads
from validation.report.document import Column, Table
from validation.stages import runner, single
from validation.tally import Tally

__all__ = ["Paired", "blas_threads", "forward_ratios", "machine", "paired"]

Array = NDArray[Any]

_COLUMNS = (
    Column("tokens", "T", "d"),
    Column("kept", "what is kept"),
    Column("error", "row error", ".1e"),
    Column("oracle_ms", "oracle ms", ".1f"),
    Column("torch_ms", "torch ms", ".1f"),
    Column("ratio", "ratio", ".2f"),
    Column("lower_quartile", "25%", ".2f"),
    Column("upper_quartile", "75%", ".2f"),
    Column("pairs", "pairs", "d"),
)


class Paired(NamedTuple):
    """Seconds of two calls that took turns, (pair,) each."""

    first: Array
    second: Array

    @property
    def ratios(self) -> Array:
        """The first over the second of each pair, (pair,): a slow moment hits both sides of a pair."""
        return self.first / self.second

    @property
    def median(self) -> float:
        """The median ratio."""
        return float(np.median(self.ratios))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile of the ratios: their spread."""
        low, high = np.quantile(self.ratios, (0.25, 0.75))
        return float(low), float(high)


def paired(first: Callable[[], Any], second: Callable[[], Any], repeats: int = 15, warmup: int = 2) -> Paired:
    """Time two calls in turns, in this process: `warmup` untimed pairs, then `repeats` timed ones.

    Every second pair runs in the other order, so that neither always finds the other's caches. Fewer than one
    repeat raises InputError.
    """
    if repeats < 1:
        reject("repeats", expected="one or more pairs", found=str(repeats), todo="Ask for at least one.")
    calls, seconds = (first, second), np.empty((2, repeats))
    for pair in range(-warmup, repeats):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            start = time.perf_counter()
            calls[side]()
            elapsed = time.perf_counter() - start
            if pair >= 0:
                seconds[side, pair] = elapsed
    return Paired(*seconds)


def machine() -> dict[str, Any]:
    """What a timing depends on: processor, threads, load average, versions, BLAS."""
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
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
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


def forward_ratios(
    model: Model,
    lengths: Sequence[int] = (128, 512),
    progress: Progress = silent,
    *,
    repeats: int = 15,
    reference: Path | None = None,
) -> Table:
    """The oracle's float32 forward pass over transformers', eager with attention rows, at each length.

    Both run the same random token ids under the same number of threads; torch keeps no gradient. The oracle
    is timed as it is called by default (scores, values and norms kept as well) and with the rows alone.
    Where a stage disagrees with PyTorch's by more than its bound nothing is timed, and the cells stay empty.
    """
    names = ("torch-float32", "oracle-float32")
    narrow = model.astype("float32")
    rows: list[tuple[Any, ...]] = []
    threads = blas_threads()
    with torch_threads(threads):
        theirs, ours = (runner(narrow, name, reference) for name in names)
        network = Reference.load(reference or model.source or "", "float32")
        for index, length in enumerate(lengths):
            check_length(model, length)
            ids = np.random.default_rng(length).integers(model.config.vocab_size, size=length)
            batch, tally = single(ids), Tally(*names)
            tally.add(theirs(batch)[0], ours(batch)[0], batch.mask[0])
            error = tally.stages["attention"].max_absolute
            calls = {
                "all": lambda ids=ids: forward(narrow, ids, sink="none"),
                "rows alone": lambda ids=ids: forward(narrow, ids, sink="none", keep=("attention",)),
            }
            for which, (kept, call) in enumerate(calls.items()):
                progress(f"timing the forward pass, {length} tokens", 2 * index + which, 2 * len(lengths))
                if tally.leaving is not None:
                    rows.append((length, kept, error, None, None, None, None, None, 0))
                    continue
                times = paired(call, network.caller(ids[None]), repeats)
                medians = (float(np.median(side)) * 1e3 for side in times)
                rows.append((length, kept, error, *medians, times.median, *times.quartiles, repeats))
    progress("timing the forward pass", 2 * len(lengths), 2 * len(lengths))
    stamp = machine()
    load = ", ".join(f"{value:.2f}" for value in stamp["load_average"]) or "unknown"
    notes = (
        "ratio: oracle over transformers, the median of pairs run in turns; below one the oracle is faster",
        f"{stamp['processor']}, {stamp['cpus']} CPUs, {threads} threads for both, load average {load}",
        f"Python {stamp['python']}, numpy {stamp['numpy']} with {stamp['blas']}, torch {stamp['torch']}, "
        f"transformers {stamp['transformers']}",
    )
    return Table("forward_ratio", f"Forward pass of {model.name}, float32", _COLUMNS, tuple(rows), notes)


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
