"""The map of the heads under two conventions, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.audit.cluster_report import side_names
from validation.audit.clustering import Clustering
from validation.audit.drawing import Subject, figure_bytes
from validation.metric_names import metric_name
from validation.wording import percent

__all__ = ["head_map"]

Array = NDArray[Any]

_MOST_LABELS = 24
_WIDTH = 11.5  # inches
_FLATTEST, _TALLEST = 0.5, 1.2  # height over width of a panel
_UNDEFINED = "0.75"  # grey, for a head without the covariate


def head_map(
    clustering: Clustering,
    labels: Sequence[str],
    values: Array,
    value_name: str,
    subject: Subject,
    *,
    format: str = "png",
) -> bytes:
    """The file of the map by both sides of `clustering`, each head in the colour of its value (head,).

    Both panels have one scale. The outermost heads carry their `labels` as far as there is room; the axes say
    which share of the distances they hold. The second panel's axes are turned to the side on which they go
    along with the first's: signs are arbitrary. Errors as in `figure_bytes`.
    """
    names = side_names(clustering)
    first, second = clustering.first.scaling.points, clustering.second.scaling.points
    panels = (first, second * np.where((first * second).sum(axis=0) < 0, -1, 1))
    name = metric_name(clustering.first.key[0])
    window, ratio = _window(panels)

    def draw(figure: Any) -> None:
        figure.suptitle(f"Map of the heads by {name}: {subject.words}", x=0.01, ha="left", fontsize=11)
        figure.supxlabel("\n".join(subject.lines(_WIDTH)), x=0.01, ha="left", fontsize=7, color="0.35")
        shown = np.asarray(values, dtype=np.float64)[clustering.heads]
        known = shown[np.isfinite(shown)]
        dots = {"s": 42, "lw": 0.4, "ec": "0.3"}
        axes = figure.subplots(1, 2, subplot_kw=window)
        sides = (clustering.first, clustering.second)
        for panel, side, called, points in zip(axes, sides, names, panels, strict=True):
            fit = side.fits.get(value_name)
            said = f": R² of {value_name} {percent(fit.r_squared, '.0%')}" if fit else ""
            panel.set_title(f"{called}{said}")
            panel.set_xlabel(f"axis 1 ({percent(side.scaling.explained[0])})")
            panel.set_ylabel(f"axis 2 ({percent(side.scaling.explained[1])})")
            panel.scatter(*points[~np.isfinite(shown)].T, c=_UNDEFINED, **dots)
            if len(known):
                coloured = panel.scatter(*points[np.isfinite(shown)].T, c=known, cmap="viridis", **dots)
        if len(known):
            figure.colorbar(coloured, ax=axes, label=value_name, shrink=0.85)
        figure.draw_without_rendering()  # the layout is settled before labels look for room
        order = _outermost(panels)
        for panel, points in zip(axes, panels, strict=True):
            _label(panel, points, [labels[head] for head in clustering.heads], order)

    title = f"Map of the heads by {name}, {names[0]} beside {names[1]}: {subject.words}"
    description = (
        f"Two scatter plots of {len(clustering.heads)} heads after classical scaling of their distances, "
        f"coloured by {value_name}. " + _in_words(clustering, names, value_name) + subject.ending
    )
    return figure_bytes(
        draw, (_WIDTH, 0.95 + 4.5 * ratio), format=format, title=title, description=description
    )


def _in_words(clustering: Clustering, names: Sequence[str], value_name: str) -> str:
    said = []
    for side, name in zip((clustering.first, clustering.second), names, strict=True):
        shares = " and ".join(percent(share) for share in side.scaling.explained)
        fit = side.fits.get(value_name)
        along = f", R² of {value_name} {percent(fit.r_squared)}" if fit else ""
        said.append(f"{name}: the axes hold {shares}{along}.")
    return " ".join(said)


def _window(panels: Sequence[Array]) -> tuple[dict[str, Any], float]:
    """Limits that hold the points of both panels, so that their distances compare; height over width."""
    points = np.concatenate(panels)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2 + 0.08 * (high - low).max()
    half = np.maximum(half, (half[1] / _TALLEST, half[0] * _FLATTEST)) if half.any() else np.ones(2)
    (x0, y0), (x1, y1) = middle - half, middle + half
    return {"xlim": (x0, x1), "ylim": (y0, y1), "aspect": "equal"}, float(half[1] / half[0])


def _outermost(panels: Sequence[Array]) -> Array:
    """Heads in the order in which they deserve a label: the farthest out on either panel first."""
    reach = np.max([np.linalg.norm(points, axis=1) for points in panels], axis=0)
    return np.argsort(-reach, kind="stable")


def _label(panel: Any, points: Array, labels: Sequence[str], order: Array) -> None:
    """Label heads in `order` where a label covers no point and no other label."""
    pixel, frame = panel.figure.dpi / 72, panel.get_window_extent().extents
    dots = panel.transData.transform(points)
    taken = np.concatenate([dots - 3.5 * pixel, dots + 3.5 * pixel], axis=1)  # (box, left bottom right top)
    written = 0
    for head in order:
        if written == _MOST_LABELS:
            return
        text = panel.annotate(
            labels[head], points[head], textcoords="offset points", ha="center", va="center",
            xytext=(0, 0), fontsize=8, color="0.25",
        )  # fmt: skip
        box = text.get_window_extent()
        for move in _places(box.width / pixel, box.height / pixel):
            moved = box.extents + pixel * np.tile(move, 2)
            covers = (moved[:2] < taken[:, 2:]).all(axis=1) & (taken[:, :2] < moved[2:]).all(axis=1)
            if not covers.any() and (moved[:2] >= frame[:2]).all() and (moved[2:] <= frame[2:]).all():
                text.xyann = move
                taken = np.vstack([taken, moved])
                written += 1
                break
        else:
            text.remove()


def _places(width: float, height: float) -> tuple[tuple[float, float], ...]:
    """Where the middle of a label may stand beside its point, in points: right, left, above, below."""
    aside, up = width / 2 + 5, height / 2 + 4
    return (aside, 0), (-aside, 0), (0, up), (0, -up)
