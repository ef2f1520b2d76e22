"""The share by layer as a figure: a panel for each weighting, a line for each length."""

from __future__ import annotations

from typing import Any

import numpy as np

from validation.audit.drawing import Subject, figure_bytes
from validation.headline import LABELS
from validation.lengths.measuring import Lengths
from validation.lengths.tables import median_shares
from validation.wording import percent

__all__ = ["length_chart"]

# From blue through green to orange: ends of Okabe and Ito (2008), and dark to light in grey too.
_COLOURS = ("#003F6B", "#0072B2", "#009E73", "#56B4E9", "#E69F00")
_MARKS = "osD^vP"
_WIDTH = 9  # inches


def length_chart(found: Lengths, subject: Subject, *, format: str = "png") -> bytes:
    """The file of a chart of median sink shares over layers; a NaN leaves a gap. Raises as `figure_bytes`."""
    names = list(next(iter(found.tables.values())).shares)
    layers: list[int] = np.unique(next(iter(found.tables.values())).layer).tolist()
    shares = {
        name: np.array([median_shares(found, name, layer) for layer in layers]) for name in names
    }  # (layer, length)
    below = subject.lines(0.8 * _WIDTH)

    def draw(figure: Any) -> None:
        figure.suptitle(f"Sink share by layer and length: {subject.words}", x=0.01, ha="left", fontsize=11)
        panels = figure.subplots(len(names), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, name in zip(panels, names, strict=True):
            for place, length in enumerate(found.tables):
                style = {"color": _COLOURS[place % len(_COLOURS)], "marker": _MARKS[place % len(_MARKS)]}
                axes.plot(layers, shares[name][:, place], ms=4, label=f"T {length:,}", **style)
            axes.set(title=LABELS[name], ylim=(0, 1), ylabel="median share")
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
            axes.grid(axis="y", color="0.9")
        panels[-1].xaxis.get_major_locator().set_params(integer=True)
        panels[-1].set_xlabel("\n".join(["layer", *below]), fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper")

    said = "; ".join(
        f"{LABELS[name]} at T {length:,} {percent(median_shares(found, name)[place])}"
        for name in names
        for place, length in enumerate(found.tables)
    )
    title = f"Sink share by layer and length: {subject.words}"
    description = f"Median sink shares over all layers: {said}.{subject.ending}"
    size = (_WIDTH, 1 + 2.3 * len(names) + 0.17 * len(below))
    return figure_bytes(draw, size, format=format, title=title, description=description)
