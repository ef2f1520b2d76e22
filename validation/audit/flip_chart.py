"""The flip rate of every metric beside what two halves of the texts give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject
from validation.audit.drawing import Subject, figure_bytes
from validation.metric_names import metric_name
from validation.wording import percent

__all__ = ["FlipBar", "flip_chart"]

Array = NDArray[Any]

# Blue, orange and green of Okabe and Ito (2008), which colour-blind readers tell apart.
_OBSERVED = "#0072B2"
_FLOORS = {"keep": "#E69F00", "drop": "#009E73"}
_WIDTH = 9  # inches


class FlipBar(NamedTuple):
    """One line of the flip chart: the flip rate of a metric, and the rates between halves of the texts.

    `floors` are (split,) under "keep", "drop" or both; NaN is left out of the interval.
    """

    metric: str
    rate: float
    floors: Mapping[str, Array]


def flip_chart(flips: Sequence[FlipBar], subject: Subject, *, format: str = "png") -> bytes:
    """The file of a chart with one line for each metric: the observed flip rate beside its floors.

    A floor is drawn from the least to the worst of the splits, with a stroke at the median. A rate that is
    NaN is written as undefined. Raises InputError without any metric, and as `figure_bytes`.
    """
    if not flips:
        reject(
            "flips", expected="at least one metric", found="none", todo="Audit one that has two conventions."
        )
    names, below = [metric_name(bar.metric) for bar in flips], subject.lines(0.8 * _WIDTH)
    title = f"Verdicts that flip between keep and drop: {subject.words}"

    def draw(figure: Any) -> None:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        axes = figure.subplots()
        farthest = max((_draw_bar(axes, line, bar) for line, bar in enumerate(flips)), default=0.0)
        axes.set(xlim=(0, max(1.15 * farthest, 0.01)), ylim=(len(flips) - 0.3, -0.5))
        axes.set_yticks(range(len(flips)), names)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(lambda rate, _: f"{100 * rate:g}%")
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        share = "share of verdicts (which of two heads is nearer to a third) that flip"
        axes.set_xlabel("\n".join([share, *below]), fontsize=9)
        handles = {"keep against drop": axes.plot([], [], color=_OBSERVED, marker="o", ms=8, ls="")[0]}
        for convention, colour in _FLOORS.items():
            if any(convention in bar.floors for bar in flips):
                handles[f"two halves of the texts, {convention}"] = axes.plot([], [], color=colour, lw=4)[0]
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(handles), "fontsize": 9}
        axes.legend(handles.values(), handles.keys(), **above)

    said = "; ".join(_in_words(bar, name) for bar, name in zip(flips, names, strict=True))
    size = (_WIDTH, 1.6 + 0.55 * len(flips) + 0.17 * len(below))
    return figure_bytes(
        draw, size, format=format, title=title, description=f"Flip rates. {said}.{subject.ending}"
    )


def _draw_bar(axes: Any, line: int, bar: FlipBar) -> float:
    """Draw one line of the chart; returns how far to the right it reaches."""
    reach = 0.0
    for place, (convention, colour) in enumerate(_FLOORS.items()):
        rates = _known(bar.floors.get(convention, ()))
        if len(rates):
            height = line + 0.2 * (place + 1)
            axes.plot([rates.min(), rates.max()], [height] * 2, color=colour, lw=4, solid_capstyle="butt")
            axes.plot([np.median(rates)], [height], color=colour, marker="|", ms=11, mew=2)
            reach = max(reach, float(rates.max()))
    beside = {"textcoords": "offset points", "va": "center", "fontsize": 9}
    if np.isnan(bar.rate):
        axes.annotate("undefined", (0, line - 0.1), xytext=(4, 0), **beside)
        return reach
    axes.plot([bar.rate], [line - 0.1], color=_OBSERVED, marker="o", ms=8, clip_on=False)
    axes.annotate(percent(bar.rate), (bar.rate, line - 0.1), xytext=(8, 0), **beside)
    return max(reach, bar.rate)


def _known(rates: Any) -> Array:
    array = np.asarray(rates, dtype=np.float64)
    return array[~np.isnan(array)]


def _in_words(bar: FlipBar, name: str) -> str:
    floors = [
        f"halves under {convention} {percent(float(np.median(_known(bar.floors[convention]))))}"
        for convention in _FLOORS
        if len(_known(bar.floors.get(convention, ())))
    ]
    rate = "undefined" if np.isnan(bar.rate) else percent(bar.rate)
    return f"{name} {rate}" + (f" ({', '.join(floors)})" if floors else "")
