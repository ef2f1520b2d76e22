"""The only owner of Numba flags, and of what happens where compiled code cannot be kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["EXACT_MATH", "FAST_MATH", "compiled", "compiled_parallel", "inlined", "inlined_exact"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be regrouped so that they vectorise. NaN and infinity keep their meaning: no "nnan", no "ninf".
FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz"})

# The order of operations stands, as split constants need; only a product and a sum may round once together.
EXACT_MATH = frozenset({"contract"})

_warned = False


def compiled(function: Function) -> Function:
    """Compile for one thread; kept on disk between runs."""
    return _compile(function, parallel=False)


def compiled_parallel(function: Function) -> Function:
    """Compile with `numba.prange` over rows; no reduction crosses threads, so their count changes no bit."""
    return _compile(function, parallel=True)


def inlined(function: Function) -> Function:
    """Compile as a leaf that callers inline, so that a loop around it vectorises."""
    return numba.njit(function, inline="always", fastmath=set(FAST_MATH), error_model="numpy")


def inlined_exact(function: Function) -> Function:
    """Compile as a scalar leaf whose sums are never regrouped, whatever the flags of its caller.

    `inlined` copies source into the caller, and the caller's flags with it; this one keeps its own, and the
    loop around it vectorises all the same.
    """
    return numba.njit(function, forceinline=True, fastmath=set(EXACT_MATH), error_model="numpy")


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
