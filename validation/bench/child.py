"""What needs a process of its own: `python -m validation.bench.child WHAT SIZES...` prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oracle._checks import Unavailable

__all__ = ["ask", "first_calls", "peak_memory", "resident_growth"]


def ask(what: str, *sizes: int, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run `what` ("growth" or "first") in a fresh process and return what it found.

    Raises Unavailable with the last line of its errors if it ends badly.
    """
    place = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(part for part in (place, os.environ.get("PYTHONPATH", "")) if part)
    done = subprocess.run(
        [sys.executable, "-m", "validation.bench.child", what, *map(str, sizes)],
        env={**os.environ, **(environment or {}), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise Unavailable(f"The measurement in a process of its own failed: {last}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def resident_growth(n_heads: int, n_tokens: int, d_head: int) -> dict[str, Any]:
    """Bytes by which peak resident memory rises in one streaming call, after a short warm-up call.

    The inputs stand before the call. On Linux the peak is reset after the warm-up, so that a high mark that
    compiling left behind hides nothing; elsewhere the process's high mark is taken as it is ("reset" false).
    "complaint" says what differs from the oracle, if anything does.
    """
    import fastpath
    from validation.bench.agreement import shares_complaint
    from validation.bench.inputs import draw_pairs

    small = draw_pairs(n_heads, min(n_tokens, 256), d_head)
    fastpath.sink_share_from_query_key(*small)
    inputs = draw_pairs(n_heads, n_tokens, d_head)
    reset = _resetpeak_memory()
    before = peak_memory()
    start = time.perf_counter()
    shares = fastpath.sink_share_from_query_key(*inputs)
    found = {"bytes": peak_memory() - before, "reset": reset, "seconds": time.perf_counter() - start}
    return {**found, "complaint": shares_complaint(shares, inputs, causal=False)}


def first_calls(n_heads: int, n_tokens: int, d_head: int) -> dict[str, Any]:
    """Seconds of `import fastpath`, and of the first and the second call of three functions.

    "complaint" says what differs from the oracle, if anything does.
    """
    start = time.perf_counter()
    import fastpath

    imported = time.perf_counter() - start
    from validation.bench.agreement import rows_complaint, shares_complaint
    from validation.bench.inputs import draw_pairs, draw_rows

    rows = draw_rows((n_heads, n_tokens, n_tokens))
    pairs = draw_pairs(n_heads, n_tokens, d_head)
    calls: dict[str, Callable[[], Any]] = {
        "row_measures": lambda: fastpath.row_measures(*rows),
        "with entropies": lambda: fastpath.row_measures(*rows, entropies=True),
        "from query and key": lambda: fastpath.sink_share_from_query_key(*pairs),
    }
    seconds: dict[str, list[float]] = {}
    said = []
    for name, call in calls.items():
        seconds[name] = []
        for _ in range(2):
            start = time.perf_counter()
            result = call()
            seconds[name].append(time.perf_counter() - start)
        complaint = (
            shares_complaint(result, pairs, causal=False)
            if isinstance(result, np.ndarray)
            else rows_complaint(result, rows)
        )
        said += [f"{name}: {complaint}"] if complaint else []
    return {"import": imported, "seconds": seconds, "complaint": "; ".join(said)}


def _resetpeak_memory() -> bool:
    """Make the peak the present size, where the system lets a process do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_memory() -> int:
    """Peak resident memory of this process in bytes.

    Linux keeps it for this program alone; getrusage's, taken elsewhere, may be that of the process which
    started it. Raises Unavailable where the system does not tell.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        raise Unavailable("This system does not tell a process's peak memory.") from None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    print(json.dumps({"growth": resident_growth, "first": first_calls}[sys.argv[1]](*map(int, sys.argv[2:]))))
