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

_warned = False


def _digest() -> str:
    """Of all that kernels are made from: Numba looks at the file of a kernel, not at what it calls."""
    found = hashlib.sha256(str(numba.config.BOUNDSCHECK).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        found.update(source.read_bytes())
    return found.hexdigest()


_DIGEST = _digest()


class _Files(IndexDataCacheFile):  # type: ignore[misc]  # Numba is untyped
    """Numba's index and data files; data is read only if it is what was written, for this very kernel.

    One flipped bit of machine code would end the process.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        if found is None:
            return None
        written_for, data = found
        if written_for != key:
            raise ValueError("the index of compiled code names the wrong file")
        return data

    def _save_data(self, name: str, data: Any) -> None:
        data = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(data).digest() + data)

    def _load_data(self, name: str) -> Any:
        kept = Path(self._data_path(name)).read_bytes()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(kept[size:]).digest() != kept[:size]:
            raise ValueError("compiled code is not what was written")
        return pickle.loads(kept[size:])


class _Kept(FunctionCache):  # type: ignore[misc]  # Numba is untyped
    """Numba's own files, stamped with the digest too, and given up with a warning where they fail."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), _DIGEST)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, *given: Any) -> Any:
        try:
            return super().load_overload(*given)
        except Exception:  # what a damaged file can raise has no end
            with suppress(Exception):
                self.flush()
            return None  # to be compiled again

    def save_overload(self, *given: Any) -> None:
        try:
            super().save_overload(*given)
        except Exception as error:  # a full disk, somebody else's folder
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
