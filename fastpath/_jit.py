"""The only owner of Numba flags, and of what happens where compiled code cannot be kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["FAST_MATH", "compiled", "compiled_parallel", "inlined"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be regrouped so that they vectorise. NaN and infinity keep their meaning: no "nnan", no "ninf".
FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz"})

_warned = False


def compiled(function: Function) -> Function:
    """Compile for one thread; kept on disk between runs."""
    return _compile(function, parallel=False)


def compiled_parallel(function: Function) -> Function:
    """Compile with `numba.prange` over rows; a reduction never crosses threads, so their count changes no bit."""
    return _compile(function, parallel=True)


def inlined(function: Function) -> Function:
    """Compile as a leaf that callers inline, so that a loop around it vectorises."""
    return numba.njit(function, inline="always", fastmath=set(FAST_MATH), error_model="numpy")


def _compile(function: Function, parallel: bool) -> Function:
    global _warned
    options: dict[str, Any] = {
        "fastmath": set(FAST_MATH),
        "error_model": "numpy",
        "nogil": True,
        "parallel": parallel,
    }
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError as error:  # Numba finds neither a writable source folder nor a home for its cache
        if not _warned:
            _warned = True
            warnings.warn(
                f"compiled code cannot be kept and is compiled anew in every run ({error}); "
                "set NUMBA_CACHE_DIR to a writable folder",
                RuntimeWarning,
                stacklevel=2,
            )
        return numba.njit(function, cache=False, **options)
