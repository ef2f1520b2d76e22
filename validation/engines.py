"""Which of the two layers measures in bulk."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

from oracle._checks import reject

__all__ = ["ENGINES", "load_engine"]

ENGINES = ("oracle", "fastpath")

_telling: list[Callable[[], None]] = []  # emptied by the first compilation
_listeners: list[object] = []  # one at most


def load_engine(name: str, on_compile: Callable[[], None] | None = None) -> ModuleType:
    """The layer `name`, imported now (Numba alone takes half a second); InputError for another name.

    `on_compile` is called once, at the first function that is really compiled from here on; one that comes
    from the cache does not count.
    """
    if name not in ENGINES:
        reject("engine", expected=" or ".join(ENGINES), found=repr(name), todo="Name one of the two.")
    engine = importlib.import_module(name)  # first: it says what is wrong with Numba's settings
    if name == "fastpath" and on_compile is not None:
        _telling[:] = [on_compile]
        _listen()
    return engine


def _listen() -> None:
    from numba.core import event

    class FirstCompilation(event.Listener):  # type: ignore[misc]  # Numba is untyped
        def on_start(self, event: object) -> None:
            while _telling:
                _telling.pop()()

        def on_end(self, event: object) -> None:
            pass

    if not _listeners:
        _listeners.append(FirstCompilation())
        event.register("numba:compile", _listeners[0])
