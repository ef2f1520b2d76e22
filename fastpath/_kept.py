"""Compiled code on disk: when it is out of date, and what happens where it cannot be kept."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

__all__ = ["keep", "warn_not_kept"]

_TROUBLE = (OSError, EOFError, pickle.PickleError)  # a full disk, somebody else's folder, a torn file

_warned = False


def _digest() -> str:
    """Of all that kernels are made from: Numba looks at the file of a kernel, not at what it calls."""
    found = hashlib.sha256(str(numba.config.BOUNDSCHECK).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        found.update(source.read_bytes())
    return found.hexdigest()


_DIGEST = _digest()


class _Kept(FunctionCache):  # type: ignore[misc]
    """Numba's own files, stamped with the digest too, and given up with a warning where they fail."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), _DIGEST)
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, *given: Any) -> Any:
        try:
            return super().load_overload(*given)
        except _TROUBLE:
            with suppress(*_TROUBLE):
                self.flush()
            return None  # to be compiled again

    def save_overload(self, *given: Any) -> None:
        try:
            super().save_overload(*given)
        except _TROUBLE as error:
            self.disable()
            warn_not_kept(error)


def keep(dispatcher: Any) -> Any:
    """Let a function that Numba caches be compiled anew after any change of the fast path."""
    if hasattr(dispatcher, "_cache"):  # without the JIT it is the plain function
        dispatcher._cache = _Kept(dispatcher.py_func)
    return dispatcher


def warn_not_kept(error: Exception) -> None:
    """Say once in this process that compiled code cannot be kept, and why."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled code cannot be kept and is compiled anew in every run ({error}); "
            "set NUMBA_CACHE_DIR to a writable folder",
            RuntimeWarning,
            stacklevel=3,
        )
