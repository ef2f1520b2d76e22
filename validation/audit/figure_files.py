"""The figures of an audit: asked for before the work, drawn from its result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oracle._checks import reject
from oracle.distances import CONVENTIONS
from validation.audit.auditing import Audit
from validation.audit.drawing import Subject, figure_bytes
from validation.audit.figures import save_figures
from validation.audit.flip_chart import FlipBar
from validation.audit.flips import ALL
from validation.audit.grouping import covariates, head_labels

__all__ = ["check_figures", "draw_figures"]


def check_figures(folder: str, format: str) -> None:
    """Refuse a folder that cannot be written to, another format, and a machine that cannot draw."""
    figure_bytes(lambda _: None, (1, 1), format=format, title="", description="")
    place = Path(folder)
    there = next((part for part in (place, *place.resolve().parents) if part.exists()), place)
    found = "an empty name" if not folder else "a file" if not there.is_dir() else ""
    if not found and not os.access(there, os.W_OK):
        found = "no permission to write there"
    if found:
        reject(
            "--figures", expected="a folder for figures", found=f"{folder!r} ({found})", todo="Name another."
        )


def draw_figures(audit: Audit, folder: str, model: str, format: str) -> Sequence[Path]:
    """Write the flip chart and a map for each clustering into `folder`, and return their paths."""
    flips = [
        FlipBar(
            metric, scoped[ALL].rate, {c: audit.analysis.floors[metric, c][ALL].rates for c in CONVENTIONS}
        )
        for metric, scoped in audit.analysis.flips.items()
    ]
    return save_figures(
        folder,
        list(audit.clusterings.values()),
        flips,
        head_labels(audit.distances),
        covariates(audit.distances),
        Subject(model, audit.context.texts, audit.context.sinks, audit.context.words),
        format=format,
    )
