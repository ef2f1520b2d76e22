"""Numbers in words for the eye: percentages that never claim a false 0% or 100%, counts with a noun."""

from __future__ import annotations

import math

__all__ = ["counted", "percent"]


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`count` with its noun: "1 text", "14 texts", "2 entries" (with `plural`)."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def percent(share: float, form: str = ".1%") -> str:
    """`share` as a percentage; "<0.1%" and ">99.9%" where rounding would claim none or all. NaN is "–"."""
    if math.isnan(share):
        return "–"
    text = format(share, form)
    places = len(text.partition(".")[2].rstrip("%"))
    step = 10.0**-places
    if share > 0 and float(text[:-1]) == 0:
        return f"<{step:.{places}f}%"
    if share < 1 and float(text[:-1]) == 100:
        return f">{100 - step:.{places}f}%"
    return text
