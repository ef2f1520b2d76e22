"""Warmed, interleaved timings of the fast path: agreement first, the machine stamped, losses shown."""

from validation.bench.forward import forward_ratios
from validation.bench.machine import (
    blas_threads,
    busy,
    equal_threads,
    load_average,
    machine,
    thread_counts,
    unequal,
)
from validation.bench.run import QUICK, SECTIONS, WHOLE, Sizes, read_sections, run_bench
from validation.bench.summary import summary
from validation.bench.timing import Paired, Timings, growth_exponent, in_turns, paired

__all__ = [
    "QUICK",
    "SECTIONS",
    "WHOLE",
    "Paired",
    "Sizes",
    "Timings",
    "blas_threads",
    "busy",
    "equal_threads",
    "forward_ratios",
    "growth_exponent",
    "in_turns",
    "load_average",
    "machine",
    "paired",
    "read_sections",
    "run_bench",
    "summary",
    "thread_counts",
    "unequal",
]
