"""The oracle's forward pass against that of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oracle import Model, forward
from oracle.inputs import check_length
from validation.bench.machine import blas_threads, machine
from validation.bench.timing import paired
from validation.progress import Progress, silent
from validation.reference import Reference, torch_threads
from validation.report.document import Column, Table
from validation.stages import runner, single
from validation.tally import Tally

__all__ = ["forward_ratios"]

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
            batch, tally = single(ids), Tally(*names, model)
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
