"""The clustering of the heads as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.audit.clustering import LINKAGES, Clustering, Side, takes_root
from validation.audit.rule import MIN_SPLITS
from validation.metric_names import metric_name
from validation.report.document import Column, Note, Part, Table
from validation.wording import counted, percent

__all__ = ["cluster_parts", "side_names"]

Array = NDArray[Any]

_CALLED = {"average": "average", "ward": "Ward"}


def cluster_parts(clustering: Clustering, labels: Sequence[str], context: str = "") -> tuple[Part, ...]:
    """Tables of a Clustering: agreement, sizes, axes, shares; for JSON alone all sizes and the points."""
    name = side_names(clustering)
    metric = clustering.first.key[0]
    tables: tuple[Table, ...] = (
        _agreement(clustering, metric, name, _notes(clustering, labels)),
        _sizes(clustering, metric, name),
        _all_sizes(clustering, metric, name),
        _axes(clustering, metric, name),
        _shares(clustering, metric, name),
        _points(clustering, metric, name, labels),
    )
    if context:
        tables = tuple(replace(table, notes=(*table.notes, context)) for table in tables)
    return (
        *tables,
        Note(
            f"clustering_{metric}", _closing(clustering, metric, name) + (f" ({context})" if context else "")
        ),
    )


def side_names(clustering: Clustering) -> tuple[str, str]:
    """What the two sides are called: their conventions, with the metric where that differs."""
    (first, keep), (second, drop) = clustering.first.key, clustering.second.key
    if first == second:
        return keep, drop
    return f"{metric_name(first)} {keep}", f"{metric_name(second)} {drop}"


def _sides(clustering: Clustering) -> tuple[Side, Side]:
    return clustering.first, clustering.second


def _range(side: Side, linkage: str) -> tuple[list[float], list[float]]:
    """The lowest and the highest split-half index for each number of clusters, NaN without a usable split."""
    indices = side.split_half[linkage]
    used = indices[~np.isnan(indices).any(axis=1)]
    none = [float("nan")] * indices.shape[1]
    return (used.min(axis=0).tolist(), used.max(axis=0).tolist()) if len(used) else (none, none)


def _notes(clustering: Clustering, labels: Sequence[str]) -> tuple[str, ...]:
    splits = len(clustering.first.split_half["ward"])
    notes = [
        "index: adjusted Rand, 1 the same clusters, 0 chance; halves: of two halves of the texts under one "
        f"convention, the least and the most alike of {counted(splits, 'different split')}. A half has half "
        "the rows, so its indices are, if anything, too low"
    ]
    rows = [side.rows for side in _sides(clustering)]
    low, high = min(low for low, _ in rows), max(high for _, high in rows)
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    notes.append(f"{counted(len(clustering.heads), 'head')}; rows of each pair of heads: {each}")
    if clustering.excluded:
        left_out = ", ".join(labels[head] for head in clustering.excluded)
        notes.append(f"left out, for a distance that is undefined: {left_out} ({len(clustering.excluded)})")
    for side, name in zip(_sides(clustering), side_names(clustering), strict=True):
        unused = int(np.isnan(side.split_half["ward"]).any(axis=1).sum())
        if unused:
            notes.append(f"{name}: {counted(unused, 'split')} left out, a half lacks a distance")
    return tuple(notes)


def _agreement(clustering: Clustering, metric: str, name: tuple[str, str], notes: tuple[str, ...]) -> Table:
    columns = [Column("clusters", "k")]
    cells: list[Sequence[Any]] = [clustering.clusters]
    for linkage in LINKAGES:
        called = _CALLED[linkage]
        columns.append(Column(f"{linkage}_index", f"{called} index", ".2f"))
        cells.append(clustering.agreement[linkage].tolist())
        for which, side in enumerate(_sides(clustering)):
            key = f"{linkage}_halves_{which + 1}"
            columns.append(Column(f"{key}_low", f"halves {side.key[1]} from", ".2f"))
            columns.append(Column(f"{key}_high", "to", ".2f"))
            cells += _range(side, linkage)
    title = f"Clusters by {metric_name(metric)}: {name[0]} against {name[1]}"
    rows = tuple(zip(*cells, strict=True))
    return Table(f"agreement_{metric}", title, tuple(columns), rows, notes)


def _sizes(clustering: Clustering, metric: str, name: tuple[str, str]) -> Table:
    columns = [Column("clusters", "k")]
    cells: list[Sequence[Any]] = [clustering.clusters]
    for linkage in LINKAGES:
        for which, side in enumerate(_sides(clustering)):
            key, heading = f"{linkage}_{which + 1}", f"{_CALLED[linkage]} {side.key[1]}"
            sizes = [side.sizes(linkage, k) for k in clustering.clusters]
            columns += [Column(f"{key}_largest", heading), Column(f"{key}_single", "single")]
            cells += [[size[0] for size in sizes], [size.count(1) for size in sizes]]
    rows = tuple(zip(*cells, strict=True))
    note = (
        "heads in the largest cluster; single: clusters of one head; average linkage tends to peel them off"
    )
    title = f"Cluster sizes by {metric_name(metric)}: {name[0]} and {name[1]}"
    return Table(f"sizes_{metric}", title, tuple(columns), rows, (note,))


def _all_sizes(clustering: Clustering, metric: str, name: tuple[str, str]) -> Table:
    columns = (
        Column("side", "side"),
        Column("linkage", "linkage"),
        Column("clusters", "k"),
        Column("sizes", "sizes"),
    )
    rows = tuple(
        (name[which], linkage, k, " ".join(map(str, side.sizes(linkage, k))))
        for which, side in enumerate(_sides(clustering))
        for linkage in LINKAGES
        for k in clustering.clusters
    )
    return Table(f"all_sizes_{metric}", "All cluster sizes", columns, rows, shown=False)


def _axes(clustering: Clustering, metric: str, name: tuple[str, str]) -> Table:
    columns = (
        Column("side", "side"),
        Column("covariate", "goes with"),
        Column("axis_1", "|r| axis 1", ".2f"),
        Column("r_squared", "R² both", ".1%"),
        Column("halves_low", "halves from", ".1%"),
        Column("halves_high", "to", ".1%"),
        Column("heads", "heads"),
    )
    rows = []
    for which, side in enumerate(_sides(clustering)):
        for covariate, fit in side.fits.items():
            halves = side.halves[covariate]
            halves = halves[~np.isnan(halves)]
            low, high = (float(halves.min()), float(halves.max())) if len(halves) else (np.nan, np.nan)
            rows.append((name[which], covariate, abs(fit.correlation), fit.r_squared, low, high, fit.n_heads))
    chance = 2 / (len(clustering.heads) - 1)
    notes = (
        f"classical scaling of {_scaled(clustering, name)}; |r|: with axis 1, whose sign is arbitrary; R²: "
        "of the fit on both axes",
        f"halves: lowest and highest R² over the halves; chance gives {percent(chance)} on average",
    )
    title = f"What the map by {metric_name(metric)} shows"
    return Table(f"axes_{metric}", title, columns, tuple(rows), notes)


def _scaled(clustering: Clustering, name: tuple[str, str]) -> str:
    """What the two maps are maps of."""
    rooted = [takes_root(side.key[0], "scaling") for side in _sides(clustering)]
    said = ["the root of the mean distance" if root else "the mean distance" for root in rooted]
    return said[0] if said[0] == said[1] else f"{said[0]} ({name[0]}) and {said[1]} ({name[1]})"


def _shares(clustering: Clustering, metric: str, name: tuple[str, str]) -> Table:
    columns = (
        Column("side", "side"),
        Column("axis_1", "axis 1", ".1%"),
        Column("axis_2", "axis 2", ".1%"),
        Column("negative", "negative", ".1%"),
    )
    rows = tuple(
        (name[which], *side.scaling.explained, side.scaling.negative)
        for which, side in enumerate(_sides(clustering))
    )
    note = "shares of all eigenvalues by size; negative: what no map in any number of dimensions can show"
    return Table(
        f"shares_{metric}", f"How much the map by {metric_name(metric)} holds", columns, rows, (note,)
    )


def _points(clustering: Clustering, metric: str, name: tuple[str, str], labels: Sequence[str]) -> Table:
    columns = (
        Column("side", "side"),
        Column("head", "head"),
        Column("axis_1", "axis 1"),
        Column("axis_2", "axis 2"),
    )
    rows = tuple(
        (name[which], labels[head], float(x), float(y))
        for which, side in enumerate(_sides(clustering))
        for head, (x, y) in zip(clustering.heads, side.scaling.points, strict=True)
    )
    return Table(f"points_{metric}", f"The map by {metric_name(metric)}", columns, rows, shown=False)


def _closing(clustering: Clustering, metric: str, name: tuple[str, str]) -> str:
    """Whether the conventions give other clusters than the texts' own noise does, in one sentence."""
    floors = {linkage: [_range(side, linkage)[0] for side in _sides(clustering)] for linkage in LINKAGES}
    if np.isnan(floors["ward"]).any():
        return f"{metric_name(metric)}: no split-half index, so nothing is said of the clusters."
    known = min(int((~np.isnan(s.split_half["ward"]).any(axis=1)).sum()) for s in _sides(clustering))
    if known < MIN_SPLITS:
        splits = counted(known, "usable split")
        return (
            f"{metric_name(metric)}: {splits} of the texts, fewer than {MIN_SPLITS}, so nothing is said of "
            "the clusters."
        )
    said = []
    for linkage in LINKAGES:
        below = clustering.agreement[linkage] < np.min(floors[linkage], axis=0)
        said.append(f"{int(below.sum())} of {len(below)} numbers of clusters with {_CALLED[linkage]} linkage")
    return (
        f"{metric_name(metric)}: {name[0]} and {name[1]} give clusters less alike than the least alike "
        f"halves of the texts do under either for {' and '.join(said)}."
    )
