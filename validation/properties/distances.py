"""Laws of the distances between two rows, under both conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation import distance_definitions as definitions
from validation.properties.finding import Finding, deviation, size_of
from validation.properties.implementation import Implementation

__all__ = [
    "distance_by_definition",
    "distance_is_symmetric",
    "equal_shares_scale_keep",
    "keep_is_drop_without_sink",
    "key_order_changes_no_distance",
    "padding_changes_no_distance",
    "row_bound",
    "row_size",
    "triangle_inequality",
]

Array = NDArray[Any]

# JSD, the squared Hellinger distance, the entropy difference and L1 carry the content with its mass 1 - s.
_CARRIED = {"jsd": 1.0, "root_jsd": 0.5, "hellinger": 0.5, "l1": 1.0, "entropy": 1.0}
_ROOTED = ("root_jsd", "hellinger")


def distance_by_definition(
    implementation: Implementation,
    x: Any,
    y: Any,
    sink_mask: Any,
    metric: str,
    convention: str,
    visible: Any = None,
) -> Finding:
    """A distance of rows against its own loop; roots are compared by their squares, evenly rounded."""
    found = implementation.row_distances(x, y, sink_mask, metric, convention, visible)
    wanted = definitions.row_distances(x, y, sink_mask, metric, convention, visible)
    gap = deviation(_squared(found, metric), _squared(wanted, metric), row_size(wanted))
    return Finding(f"{metric}, {convention}, by definition", gap[0], row_bound(implementation, x, y), gap[1])


def distance_is_symmetric(
    implementation: Implementation,
    x: Any,
    y: Any,
    sink_mask: Any,
    metric: str,
    convention: str,
    visible: Any = None,
) -> Finding:
    """d(x, y) = d(y, x), d(x, x) = 0, and no distance is negative."""
    there = implementation.row_distances(x, y, sink_mask, metric, convention, visible)
    back = implementation.row_distances(y, x, sink_mask, metric, convention, visible)
    same = implementation.row_distances(x, x, sink_mask, metric, convention, visible)
    size = row_size(there)
    gap = max(
        deviation(_squared(there, metric), _squared(back, metric), size),
        deviation(_squared(same, metric), np.where(np.isnan(same), np.nan, 0), size),
    )
    if (there < 0).any() or (same < 0).any():
        gap = float("inf"), "a negative distance"
    bound = row_bound(implementation, x, y)
    return Finding(f"{metric}, {convention}, is symmetric", gap[0], bound, gap[1])


def triangle_inequality(
    implementation: Implementation,
    x: Any,
    y: Any,
    z: Any,
    sink_mask: Any,
    metric: str,
    convention: str,
    visible: Any = None,
) -> Finding:
    """d(x, z) <= d(x, y) + d(y, z) where the distance is a metric; Aitchison distances by their roots.

    Neither the cosine distance nor the divergence itself is one. The error is what is missing.
    """
    sides = [
        implementation.row_distances(*pair, sink_mask, metric, convention, visible)
        for pair in ((x, z), (x, y), (y, z))
    ]
    if metric.startswith("aitchison"):
        sides = [np.sqrt(np.maximum(side, 0)) for side in sides]
    short = np.asarray(sides[0] - sides[1] - sides[2])
    missing = float(np.nanmax(short, initial=0)) / row_size(sides[0])
    # A root is known to the root of what its square is known to.
    bound = row_bound(implementation, x, y) ** (0.5 if metric in _ROOTED or "aitchison" in metric else 1)
    return Finding(f"{metric}, {convention}, keeps the triangle inequality", missing, bound)


def equal_shares_scale_keep(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, metric: str, visible: Any = None
) -> Finding:
    """Where both rows have the sink share s, keep = (1 - s) drop for JSD, |dH| and L1, roots by its root.

    Rows whose shares differ by more than rounding are left out.
    """
    shares = [implementation.sink_share(rows, sink_mask, None, visible) for rows in (x, y)]
    keep, drop = (
        implementation.row_distances(x, y, sink_mask, metric, convention, visible)
        for convention in ("keep", "drop")
    )
    bound = row_bound(implementation, x, y)
    equal = (np.abs(shares[0] - shares[1]) <= bound) & ~np.isnan(drop)
    wanted = (1 - shares[0]) ** _CARRIED[metric] * drop
    gap = deviation(_squared(keep, metric)[equal], _squared(wanted, metric)[equal], row_size(keep))
    return Finding(f"equal shares scale {metric}", gap[0], bound, gap[1])


def keep_is_drop_without_sink(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, metric: str, visible: Any = None
) -> Finding:
    """With no visible sink there is no sink part: both conventions give one number."""
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), np.shape(x))
    content = seen & ~np.asarray(sink_mask, dtype=bool)
    rows = [np.where(content, array, 0) for array in (x, y)]
    mass = [row.sum(axis=-1, keepdims=True) for row in rows]
    closed = [
        np.divide(row, m, out=np.zeros_like(row), where=m > 0) for row, m in zip(rows, mass, strict=True)
    ]
    keep, drop = (
        implementation.row_distances(*closed, sink_mask, metric, convention, content)
        for convention in ("keep", "drop")
    )
    gap = deviation(_squared(keep, metric), _squared(drop, metric), row_size(drop))
    return Finding(f"{metric}: keep is drop without a sink", gap[0], row_bound(implementation, x, y), gap[1])


def key_order_changes_no_distance(
    implementation: Implementation,
    x: Any,
    y: Any,
    sink_mask: Any,
    metric: str,
    convention: str,
    order: Any,
    visible: Any = None,
) -> Finding:
    """Permuting the keys of both rows, the sinks and the mask leaves the distance as it is."""
    rows = [np.asarray(array) for array in (x, y)]
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), rows[0].shape)
    plain = implementation.row_distances(*rows, sink_mask, metric, convention, seen)
    moved = implementation.row_distances(
        *(row[..., order] for row in rows), np.asarray(sink_mask)[order], metric, convention, seen[..., order]
    )
    gap = deviation(_squared(moved, metric), _squared(plain, metric), row_size(plain))
    return Finding(
        f"{metric}, {convention}: key order is free", gap[0], row_bound(implementation, x, y), gap[1]
    )


def padding_changes_no_distance(
    implementation: Implementation,
    x: Any,
    y: Any,
    sink_mask: Any,
    metric: str,
    convention: str,
    padding: int,
    left: bool = False,
    garbage: float = 0.25,
) -> Finding:
    """Invisible keys are no parts, whatever weight stands there; `padding` of them are put on one side."""
    plain = [np.asarray(array) for array in (x, y, sink_mask)]
    seen = np.ones(plain[2].shape, dtype=bool)
    padded = []
    for array, fill in zip((*plain, seen), (garbage, garbage / 2, False, False), strict=True):
        extra = np.full((*array.shape[:-1], padding), fill, array.dtype)
        padded.append(np.concatenate([extra, array] if left else [array, extra], axis=-1))
    found = implementation.row_distances(*padded[:3], metric, convention, padded[3])
    wanted = implementation.row_distances(*plain, metric, convention)
    gap = deviation(_squared(found, metric), _squared(wanted, metric), row_size(wanted))
    return Finding(
        f"{metric}, {convention}: padding is free", gap[0], row_bound(implementation, x, y), gap[1]
    )


def row_size(distances: Array) -> float:
    """The largest distance, at least one: rounding is that of the rows, however near they are."""
    return max(1.0, size_of(distances))


def _squared(distances: Array, metric: str) -> Array:
    """Roots squared."""
    return distances**2 if metric in _ROOTED else distances


def row_bound(implementation: Implementation, *rows: Any) -> float:
    """Each part goes through a logarithm or a root and one sum: twice what sums of so many parts may lose."""
    return 2 * implementation.rounding(max(np.shape(array)[-1] for array in rows), *rows)
