"""Figures as bytes of a PNG or an SVG: the same input gives the same bytes. matplotlib comes late."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from oracle import Unavailable
from oracle._checks import reject
from validation.report._layout import plain

__all__ = ["FORMATS", "Subject", "figure_bytes"]

_DPI = {"png": 160, "svg": 72}
FORMATS = tuple(_DPI)

_STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "sinkscope",  # identifiers in an SVG are hashes, salted at random by default
    "text.parse_math": False,  # a name may have a dollar sign in it
}


class Subject(NamedTuple):
    """What a figure is of: the model's name, how many texts, and the sink set in words.

    `context` says in a sentence what else the figures depend on; it stands below them.
    """

    model: str
    n_texts: int
    sink: str
    context: str = ""

    @property
    def words(self) -> str:
        """All of it in one line, as it stands in the figure and in the file's title."""
        texts = f"{self.n_texts:,} text{'' if self.n_texts == 1 else 's'}"
        return plain(f"{self.model}, {texts}, sink set {self.sink}")

    @property
    def ending(self) -> str:
        """The context as it ends a description; nothing without one."""
        return plain(f" ({self.context})") if self.context else ""

    def lines(self, width: float) -> list[str]:
        """The context in lines of at most `width` inches, in small print; none without one."""
        return textwrap.wrap(plain(self.context), int(14 * width))


def figure_bytes(
    draw: Callable[[Any], None], size: tuple[float, float], *, format: str, title: str, description: str
) -> bytes:
    """The file of a figure of `size` inches that `draw` has drawn on; `format` is one of FORMATS.

    `title` and `description` go into the file, where a screen reader finds them. Neither pyplot nor a user's
    own settings take part. Raises InputError for another format, Unavailable without the extra.
    """
    if format not in FORMATS:
        reject("format", expected="png or svg", found=repr(format), todo="Choose one of the two.")
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable(
            f'Figures need matplotlib ({error}). Install it: pip install "sinkscope[figures]"'
        ) from error
    metadata: dict[str, str | None] = {"Title": plain(title), "Description": plain(description)}
    if format == "svg":
        metadata |= {"Date": None}
    buffer = io.BytesIO()
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box stands for it then
        # The resolution of the file from the start: `draw` measures text, and so does the layout.
        figure = Figure(figsize=size, dpi=_DPI[format], layout="constrained")
        draw(figure)
        figure.savefig(buffer, format=format, dpi="figure", metadata=metadata)
    return buffer.getvalue()
