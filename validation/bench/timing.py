"""Calls timed in turns in one process, so that a slow moment hits all of them; and what they hold."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject

__all__ = ["Paired", "Spread", "Timings", "growth_exponent", "in_turns", "paired", "peak_bytes"]

Array = NDArray[Any]

_SLOW_ROUNDS = 3


class Spread(NamedTuple):
    """A median with the lower and the upper quartile around it."""

    median: float
    lower: float
    upper: float


class Timings(NamedTuple):
    """Seconds of several calls that took turns, (call, round); NaN where one sat out."""

    names: tuple[str, ...]
    seconds: Array

    def of(self, name: str) -> Spread:
        """The seconds of one call."""
        return _spread(self.seconds[self.names.index(name)])

    def times(self, slow: str, fast: str) -> Spread:
        """How many times longer `slow` took than `fast`, round by round: the median of the ratios."""
        return _spread(self.seconds[self.names.index(slow)] / self.seconds[self.names.index(fast)])


class Paired(NamedTuple):
    """Seconds of two calls that took turns, (pair,) each."""

    first: Array
    second: Array

    @property
    def ratios(self) -> Array:
        """The first over the second of each pair, (pair,)."""
        return self.first / self.second

    @property
    def median(self) -> float:
        """The median ratio."""
        return float(np.median(self.ratios))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile of the ratios: their spread."""
        return _spread(self.ratios)[1:]


def in_turns(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int = 15,
    *,
    warmup: int = 1,
    budget: float = float("inf"),
    least: int = 5,
    slow: Collection[str] = (),
    pause: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Time every call once a round: `warmup` untimed rounds, then `rounds` timed ones.

    Each round starts with another call and every second one runs backwards, so that no call always follows
    the same one. After `budget` seconds no further round starts, once there are `least`. The `slow` calls
    take part in the first three timed rounds only (NaN after that). A `pause` (seconds) before each call
    lets the threads of the one before it fall asleep. Fewer than one round, or no call, raises InputError.
    """
    if rounds < 1:
        reject("rounds", expected="one or more", found=str(rounds), todo="Ask for at least one.")
    if not calls:
        reject("calls", expected="one or more", found="none", todo="Name what is to be timed.")
    names, seconds = tuple(calls), np.full((len(calls), rounds), np.nan)
    begin = clock()
    for number in range(-warmup, rounds):
        if number >= least and clock() - begin > budget:
            return Timings(names, seconds[:, :number])
        for place in _order(len(names), number):
            if names[place] in slow and not 0 <= number < _SLOW_ROUNDS:
                continue
            if pause:
                time.sleep(pause)
            start = clock()
            calls[names[place]]()
            elapsed = clock() - start
            if number >= 0:
                seconds[place, number] = elapsed
    return Timings(names, seconds)


def paired(first: Callable[[], Any], second: Callable[[], Any], repeats: int = 15, warmup: int = 2) -> Paired:
    """Time two calls in turns; fewer than one repeat raises InputError."""
    return Paired(*in_turns({"first": first, "second": second}, repeats, warmup=warmup).seconds)


def growth_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope b of values ~ sizes^b: least squares on logarithms. NaN below two different sizes."""
    x, y = np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(values, dtype=np.float64))
    if len(set(sizes)) < 2:
        return float("nan")
    centred = x - x.mean()
    return float((centred * y).sum() / (centred * centred).sum())


def peak_bytes(call: Callable[[], Any]) -> int:
    """The most bytes that NumPy held at once during `call`, beyond what it held before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _order(count: int, number: int) -> list[int]:
    """Which call comes when in round `number`."""
    order = [(place + number // 2) % count for place in range(count)]
    return order[::-1] if number % 2 else order


def _spread(values: Array) -> Spread:
    lower, median, upper = np.nanquantile(values, (0.25, 0.5, 0.75))
    return Spread(float(median), float(lower), float(upper))
