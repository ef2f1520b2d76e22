"""Where compiled loops would end the process without a word: they are refused there, or take turns."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numba

from fastpath._settings import refuse_settings
from oracle._checks import Unavailable

__all__ = ["Guarded"]


class _Process:
    """What this process may do; a fork leaves the child a copy that knows of it."""

    def __init__(self) -> None:
        self.layer = ""  # of Numba's threads, "" until a loop starts them
        self.lost = False
        self.turn = threading.RLock()

    def start(self) -> None:
        try:
            numba.get_num_threads()  # starts the threads
        except ValueError as error:
            refuse_settings(error)
            raise
        self.layer = numba.threading_layer()

    def forked(self) -> None:
        """GNU OpenMP ends a child that uses it after its parent did, whoever called Numba there."""
        self.turn = threading.RLock()  # another thread of the parent may have held it
        try:
            self.layer = numba.threading_layer()
        except ValueError:  # no threads were started
            return
        if self.layer == "omp":
            pool = importlib.import_module("numba.np.ufunc.omppool")
            self.lost = pool.openmp_vendor == "GNU"


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


class Guarded:
    """A compiled function that runs where it can: Unavailable in a forked process without usable threads.

    The workqueue layer aborts when two Python threads enter it; there the calls take turns.
    """

    def __init__(self, dispatcher: Callable[..., Any]) -> None:
        """Stand before `dispatcher`, and show its attributes."""
        self._dispatcher = dispatcher
        update_wrapper(self, dispatcher)

    def __call__(self, *given: Any) -> Any:
        """What the function returns."""
        if _process.lost:
            raise Unavailable(
                "fastpath: this process was forked from one that had run compiled loops, and GNU OpenMP ends "
                'a process that goes on from there. Start workers by "spawn" or "forkserver" '
                '(multiprocessing.get_context), or set NUMBA_THREADING_LAYER="workqueue".'
            )
        if not _process.layer:
            _process.start()
        if _process.layer != "workqueue":
            return self._dispatcher(*given)
        with _process.turn:
            return self._dispatcher(*given)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the dispatcher."""
        return getattr(self._dispatcher, name)
