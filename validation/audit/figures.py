"""The figures of an audit: the map of the heads for each metric, and the flip chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject
from validation.audit.clustering import Clustering
from validation.audit.drawing import Subject, figure_bytes
from validation.audit.head_map import head_map
from validation.audit.metric_names import metric_name
from validation.wording import percent

__all__ = ["FlipBar", "flip_chart", "save_figures"]

Array = NDArray[Any]

# Blue, orange and green of Okabe and Ito (2008), which colour-blind readers tell apart.
_OBSERVED, _FLOORS = "#0072B2", ("#E69F00", "#009E73")


class FlipBar(NamedTuple):
    """One line of the flip chart: the flip rate of a metric, and the rates between halves of the texts.

    `floors` are (split,) by convention, such as "keep" and "drop"; NaN, and rates that are missing, are left
    out of the interval.
    """

    metric: str
    rate: float
    floors: Mapping[str, Array]


def flip_chart(flips: Sequence[FlipBar], subject: Subject, *, format: str = "png") -> bytes:
    """The file of a chart with one line for each metric: the observed flip rate beside its floor.

    A floor is drawn from the least to the worst of the splits, with a stroke at the median. A rate that is
    NaN is written as undefined. Raises InputError without any metric, and as `figure_bytes`.
    """
    if not flips:
        reject(
            "flips", expected="at least one metric", found="none", todo="Audit one that has both conventions."
        )
    conventions = list(dict.fromkeys(name for bar in flips for name in bar.floors))
    names = [metric_name(bar.metric) for bar in flips]

    def draw(figure: Any) -> None:
        figure.suptitle(
            f"Verdicts that flip between keep and drop: {subject.words}", x=0.01, ha="left", fontsize=11
        )
        axes = figure.subplots()
        for line, bar in enumerate(flips):
            for place, convention in enumerate(conventions):
                low, median, high = _interval(bar.floors.get(convention, ()))
                height, colour = line + 0.2 * (place + 1), _FLOORS[place % len(_FLOORS)]
                axes.plot([low, high], [height, height], color=colour, lw=4, solid_capstyle="butt")
                axes.plot([median], [height], color=colour, marker="|", ms=11, mew=2)
            if np.isfinite(bar.rate):
                axes.plot([bar.rate], [line - 0.1], color=_OBSERVED, marker="o", ms=8)
                axes.annotate(
                    percent(bar.rate),
                    (bar.rate, line - 0.1),
                    xytext=(8, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=9,
                )
            else:
                axes.annotate(
                    "undefined",
                    (0, line - 0.1),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=9,
                )
        rates = [bar.rate for bar in flips] + [
            _interval(floor)[2] for bar in flips for floor in bar.floors.values()
        ]
        top = max((rate for rate in rates if np.isfinite(rate)), default=0.0)
        axes.set(xlim=(0, max(1.15 * top, 0.01)), ylim=(len(flips) - 0.3, -0.5))
        axes.set_yticks(range(len(flips)), names)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(lambda rate, _: f"{100 * rate:g}%")
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        axes.set_xlabel("share of verdicts (which of two heads is nearer to a third) that flip")
        handles = [axes.plot([], [], color=_OBSERVED, marker="o", ms=8, ls="")[0]]
        handles += [
            axes.plot([], [], color=_FLOORS[place % len(_FLOORS)], lw=4)[0]
            for place in range(len(conventions))
        ]
        called = ["keep against drop", *(f"two halves of the texts, {name}" for name in conventions)]
        figure.legend(handles, called, loc="outside lower center", ncols=len(called))

    said = "; ".join(_in_words(bar, name) for bar, name in zip(flips, names, strict=True))
    title = f"Verdicts that flip between keep and drop: {subject.words}"
    return figure_bytes(
        draw, (9, 1.6 + 0.55 * len(flips)), format=format, title=title, description=f"Flip rates. {said}."
    )


def save_figures(
    folder: str | PathLike[str],
    clusterings: Sequence[Clustering],
    flips: Sequence[FlipBar],
    labels: Sequence[str],
    covariates: Mapping[str, Array],
    subject: Subject,
    *,
    colour: str | None = None,
    format: str = "png",
) -> list[Path]:
    """Write a map for each clustering, "map-METRIC.png", and the flip chart, "flips.png", into `folder`.

    `labels` and `covariates` are those of the clusterings, short labels such as "3.11" suit the map best;
    `colour` names the covariate that colours the heads, by default the first. Without `flips` there is no
    chart. The folder is made if it is not there; files of these names are replaced. Returns their paths.
    Raises InputError for another format, an unknown `colour` or a folder that cannot be written to,
    Unavailable without the extra.
    """
    chosen = colour or next(iter(covariates), "")
    if clusterings and chosen not in covariates:
        known = ", ".join(covariates) or "a covariate"
        reject("colour", expected=known, found=repr(chosen), todo="Name one of the covariates.")
    files = {
        f"map-{clustering.first.key[0]}": head_map(
            clustering, labels, covariates[chosen], chosen, subject, format=format
        )
        for clustering in clusterings
    }
    if flips:
        files["flips"] = flip_chart(flips, subject, format=format)
    place, written = Path(folder), []
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            written.append(place / f"{name}.{format}")
            written[-1].write_bytes(data)
    except OSError as error:
        reject(
            str(folder),
            expected="a folder for figures",
            found=error.strerror or str(error),
            todo="Name another one.",
        )
    return written


def _interval(rates: Any) -> tuple[float, float, float]:
    """Least, median and worst of the defined rates; NaN without any."""
    known = np.asarray(rates, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return np.nan, np.nan, np.nan
    return float(known.min()), float(np.median(known)), float(known.max())


def _in_words(bar: FlipBar, name: str) -> str:
    floors = ", ".join(
        f"halves under {convention} {percent(_interval(rates)[1])}"
        for convention, rates in bar.floors.items()
    )
    return f"{name} {percent(bar.rate)}" + (f" ({floors})" if floors else "")
