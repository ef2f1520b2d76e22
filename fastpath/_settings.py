"""Numba's first import: settings that it refuses are the caller's to mend, and are refused as such."""

from __future__ import annotations

import os

from oracle._checks import reject

__all__ = ["refuse_settings"]


def refuse_settings(error: Exception) -> None:
    """Raise InputError for the NUMBA_ variables of this process, which made Numba raise `error`."""
    given = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    if given:
        reject(
            "NUMBA_ variables",
            expected="settings that Numba takes",
            found=f"{', '.join(given)} ({' '.join(str(error).split()).rstrip('.')})",
            todo="Mend or unset them.",
        )


try:
    import numba  # noqa: F401  (its settings are read now, and not again)
except ValueError as error:
    refuse_settings(error)
    raise
