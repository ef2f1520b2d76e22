"""The collapse study as a figure: the parts of the entropy, and the stacked channels since its peak."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from validation.audit.drawing import Subject, figure_bytes
from validation.studies.collapse.drop import find_levels, find_peak, whole_rows
from validation.studies.collapse.measured import SINK
from validation.studies.collapse.split import split_path
from validation.studies.collapse.study import Series
from validation.wording import percent

__all__ = ["collapse_chart", "step_places"]

# Blue, orange and black of Okabe and Ito (2008), which colour-blind readers tell apart.
_SINK, _CONTENT, _TOTAL = "#0072B2", "#E69F00", "#000000"


def step_places(steps: Sequence[int]) -> list[float]:
    """Where steps stand on a logarithmic axis: log2, and step 0 one place before the first positive one."""
    positive = [step for step in steps if step > 0]
    first = math.log2(positive[0]) - 1 if positive else 0.0
    return [math.log2(step) if step > 0 else first for step in steps]


def collapse_chart(series: Series, subject: Subject, *, format: str = "png") -> bytes:
    """The file of a chart over log steps, all layers together.

    Above, h(s) and (1 - s) Hc, which add up to the mean entropy, and the sink share beside them; below, from
    the peak on, the two channels along the path, stacked, rises above zero and falls below it. Raises
    InputError for another format, Unavailable without the extra.
    """
    measured = [visit.measured for visit in series.visits]
    levels, places, peak = find_levels(measured), step_places(series.steps), find_peak(measured)
    whole = whole_rows(measured)
    figures = [one.rows[SINK].only(whole) for one in measured]
    paths = [split_path(figures[peak : place + 1]) for place in range(peak, len(figures))]

    def draw(figure: Any) -> None:
        figure.suptitle(f"Entropy over training: {subject.words}", x=0.01, ha="left", fontsize=11)
        upper, lower = figure.subplots(2, 1, sharex=True)
        parts = [level.binary for level in levels], [level.outside for level in levels]
        upper.stackplot(places, *parts, colors=(_SINK, _CONTENT), labels=("h(s)", "(1 - s) Hc"))
        upper.plot(places, [level.total for level in levels], color=_TOTAL, marker="o", ms=3, label="H")
        upper.set_ylabel("mean entropy (nats)")
        upper.set_ylim(bottom=0)
        share = upper.twinx()
        share.plot(places, [level.share for level in levels], color="0.35", ls="--", label="sink share")
        share.set(ylim=(0, 1), ylabel="sink share")
        share.spines["right"].set_visible(True)
        _stack(lower, places[peak:], [path.sink for path in paths], [path.content for path in paths])
        lower.plot(places[peak:], [path.total for path in paths], color=_TOTAL, marker="o", ms=3)
        lower.axhline(0, color="0.4", lw=0.8)
        lower.set_ylabel(f"change since step {series.steps[peak]:,} (nats)")
        lower.set_xlabel("training step (logarithmic)")
        shown = range(0, len(places), max(1, math.ceil(len(places) / 14)))
        lower.set_xticks([places[k] for k in shown], [f"{series.steps[k]:,}" for k in shown], rotation=45)
        handles = {
            "h(s), and through the sink": upper.collections[0],
            "(1 - s) Hc, and through the content": upper.collections[1],
            "whole": upper.lines[0],
            "sink share": share.lines[0],
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))

    last = paths[-1]
    said = (
        f"From step {series.steps[peak]} to step {series.steps[-1]} the mean entropy changes by "
        f"{last.total:.3f} nats: {last.sink:.3f} through the sink, {last.content:.3f} through the content "
        f"({percent(last.part)} through the sink)."
    )
    return figure_bytes(draw, (9, 7), format=format, title="Entropy over training", description=said)


def _stack(axes: Any, places: Sequence[float], *channels: Sequence[float]) -> None:
    """Bars of both channels, those of one sign on top of each other."""
    gaps = [after - before for before, after in pairwise(places)]
    width = 0.7 * min(gaps, default=1.0)
    above, below = [0.0] * len(places), [0.0] * len(places)
    for channel, colour in zip(channels, (_SINK, _CONTENT), strict=True):
        bottom = [high if part > 0 else low for part, high, low in zip(channel, above, below, strict=True)]
        axes.bar(places, channel, width, bottom=bottom, color=colour)
        above = [high + max(part, 0.0) for part, high in zip(channel, above, strict=True)]
        below = [low + min(part, 0.0) for part, low in zip(channel, below, strict=True)]
