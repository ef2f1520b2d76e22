"""The headline: the rows of all content queries of all heads, for each weighting, and layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from validation.report.document import Column, Note, Table
from validation.table import HEAD_SUMMED, MIN_CONTENT_KEYS, RowTable
from validation.wording import counted

__all__ = [
    "LABELS",
    "Summary",
    "head_table",
    "headline_tables",
    "layer_numbers",
    "layer_words",
    "length_words",
    "row_notes",
    "summarise",
    "summary_cells",
    "summary_columns",
]

Array = NDArray[Any]

LABELS = {
    "attention": "attention",
    "value_norm": "value norm",
    "transformed_norm": "transformed",
    HEAD_SUMMED: "head-summed",
}
_QUERIES = {"content": "content queries", "all": "all real queries"}
_RATIO = (
    "r: the attention-weighted mean norm of the sink keys over that of the content keys; the odds of the "
    "sink after weighting are r times those before; it is no plain ratio of norms"
)
_POOLED = "head-summed pools the heads of a layer into one row per query, so its rows are fewer and have no r"


class Summary(NamedTuple):
    """What a set of sink shares says; counts are of rows, shares of rows are in [0, 1], empty gives NaN."""

    rows: int  # rows with a defined share
    median: float
    worst: float
    above_half: int
    above_ninety: int
    worse: int | None  # rows with r > 1, None where the weighting has no r
    with_r: int  # rows with a defined r

    def part(self, count: int) -> float:
        """`count` as a share of the rows; NaN without rows."""
        return count / self.rows if self.rows else float("nan")


def summarise(shares: Array, ratios: Array | None = None) -> Summary:
    """Summary of shares (row,); NaN shares are undefined and left out. `ratios` (row,) are their r."""
    known = shares[~np.isnan(shares)]
    nan = float("nan")
    return Summary(
        rows=len(known),
        median=float(np.median(known)) if len(known) else nan,
        worst=float(known.max()) if len(known) else nan,
        above_half=int((known > 0.5).sum()),
        above_ninety=int((known > 0.9).sum()),
        worse=None if ratios is None else int((ratios > 1).sum()),
        with_r=0 if ratios is None else int((~np.isnan(ratios)).sum()),
    )


def summary_columns(first: Column, with_r: bool = True) -> tuple[Column, ...]:
    """`first`, then the columns that `summary_cells` fills."""
    columns = (
        first,
        Column("rows", "rows", ",d"),
        Column("median", "median", ".1%"),
        Column("worst", "worst", ".1%"),
        Column("above_half", ">50%", ",d"),
        Column("share_above_half", "part", ".1%"),
        Column("above_ninety", ">90%", ",d"),
        Column("share_above_ninety", "part", ".1%"),
    )
    return columns + (Column("worse", "r>1", ",d"), Column("share_worse", "part", ".1%")) * with_r


def summary_cells(summary: Summary, with_r: bool = True) -> tuple[Any, ...]:
    """The cells of `summary_columns` behind the first one."""
    cells = (
        summary.rows,
        summary.median,
        summary.worst,
        summary.above_half,
        summary.part(summary.above_half),
        summary.above_ninety,
        summary.part(summary.above_ninety),
    )
    if not with_r:
        return cells
    if summary.worse is None:
        return (*cells, None, None)
    return (*cells, summary.worse, summary.worse / summary.with_r if summary.with_r else float("nan"))


def length_words(lengths: Sequence[int]) -> str:
    """T in words: "T 9", "T 8-17", or "no T" without rows."""
    if not lengths:
        return "no T"
    return f"T {lengths[0]}" if len(lengths) == 1 else f"T {lengths[0]}-{lengths[-1]}"


def layer_numbers(layers: Sequence[int]) -> str:
    """Sorted layer numbers in short: "3", "0-5", "0,3-5"."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def layer_words(layers: Sequence[int]) -> str:
    """Layers in words: "layer 3", "layers 0-5", "no layer"."""
    if not layers:
        return "no layer"
    return f"layer{'s' if len(layers) > 1 else ''} {layer_numbers(layers)}"


def headline_tables(
    table: RowTable,
    head_summed: RowTable | None = None,
    weightings: Sequence[str] | None = None,
    queries: str = "content",
) -> tuple[Table, ...]:
    """One table over all layers with a row per weighting, then a table per weighting with a row per layer.

    `weightings` names those of `table` to show, all by default; `queries` is what `tabulate` was told.
    """
    which = f"{_QUERIES[queries]} of all heads"
    both = [(name, table) for name in table.shares if weightings is None or name in weightings]
    if head_summed is not None:
        both += [(name, head_summed) for name in head_summed.shares]
    T = length_words(table.lengths())
    layers = [int(layer) for layer in np.unique(table.layer)]
    with_r = any(name in source.ratios for name, source in both)
    notes: tuple[str, ...] = ("part: share of the rows",)
    if with_r:
        notes = (
            "part: share of the rows (for r>1: of the rows that have an r)",
            "value norm: attention times ‖v‖; transformed: times ‖v W_O‖ of that head",
            _RATIO,
        )
    tables = [
        Table(
            "headline",
            f"Sink share of the {which}, {layer_words(layers)}, {T}",
            summary_columns(Column("weighting", "weighting"), with_r),
            tuple((LABELS[name], *summary_cells(_over(source, name), with_r)) for name, source in both),
            (*notes, _POOLED) if head_summed is not None else notes,
        )
    ]
    for name, source in both:
        with_r = name in source.ratios
        rows = tuple((layer, *summary_cells(_over(source, name, layer), with_r)) for layer in layers)
        columns = summary_columns(Column("layer", "layer", "d"), with_r)
        title = f"Sink share by layer: {LABELS[name]}, {which}, {T}"
        tables.append(Table(f"headline_{name}", title, columns, rows))
    return tuple(tables)


def head_table(table: RowTable, weightings: Sequence[str]) -> Table:
    """Median sink shares of every (layer, head), one row each; made for JSON, not for the screen."""
    names = [name for name in table.shares if name in weightings]
    columns = (
        Column("layer", "layer", "d"),
        Column("head", "head", "d"),
        *(Column(f"median_{name}", f"median, {LABELS[name]}", ".1%") for name in names),
    )
    rows = []
    for layer, head in _heads(table):
        picked = (table.layer == layer) & (table.head == head)
        rows.append((layer, head, *(summarise(table.shares[name][picked]).median for name in names)))
    return Table("heads", "Median sink share by layer and head", columns, tuple(rows), shown=False)


def row_notes(
    table: RowTable, queries: str = "content", min_content_keys: int = MIN_CONTENT_KEYS
) -> tuple[Note, ...]:
    """T and the rows behind every number: how many there are, which, how many are odd or undefined."""
    lengths = table.lengths()
    texts = len(np.unique(table.text))
    listed = ", ".join(map(str, lengths[:12])) + (", ..." if len(lengths) > 12 else "")
    compare = "; shares depend on length, so compare equal T only" if len(lengths) > 1 else ""
    counts: Mapping[str, int] = {
        "no visible sink (share 0, no r)": int(table.no_sink.sum()),
        "no content mass (share 1, content undefined)": int(table.zero_content.sum()),
        "content mass below 0.1%": int(table.thin_content.sum()),
        "no mass at all (undefined, left out)": int(table.no_mass.sum()),
    }
    for name, share in table.shares.items():
        lost = int((np.isnan(share) & ~table.no_mass).sum())
        if lost:
            counts = {**counts, f"no mass under {LABELS[name]} (undefined, left out)": lost}
    layers = layer_words(sorted(set(table.layer.tolist())))
    fewer = f"causal rows with fewer than {min_content_keys} content keys left out"
    left = f"; {table.left_out:,} {fewer}" if table.left_out else ""
    which = "content queries (real tokens that are no sink)" if queries == "content" else _QUERIES[queries]
    heads = len(_heads(table))
    return (
        Note(
            "T",
            f"T (tokens of a text): {listed or 'none'}, in {counted(texts, 'text')}{compare}.",
            tuple(table.text_lengths()),
        ),
        Note("rows", f"Rows: {len(table):,} of {counted(heads, 'head')}{left}."),
        Note(
            "selection",
            f"Which rows: {which} of {layers}, all heads; in a causal text those that see at least "
            f"{min_content_keys} content keys. Which queries are content depends on the sink set.",
        ),
        Note("undefined", f"Of these rows: {_counted(counts.items())}."),
    )


def _heads(table: RowTable) -> list[tuple[int, int]]:
    """The (layer, head) pairs that have rows, sorted; packed into one integer, which sorts fast."""
    packed = np.unique((table.layer.astype(np.int64) << 32) + table.head)  # a pooled head is -1
    heads = (packed + 1 & 0xFFFFFFFF) - 1
    return list(zip(((packed - heads) >> 32).tolist(), heads.tolist(), strict=True))


def _over(table: RowTable, name: str, layer: int | None = None) -> Summary:
    picked = slice(None) if layer is None else table.layer == layer
    ratios = table.ratios.get(name)
    return summarise(table.shares[name][picked], None if ratios is None else ratios[picked])


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return "; ".join(f"{what}: {count:,}" for what, count in counts)
