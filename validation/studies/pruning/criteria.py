"""What heads are chosen by: their sink shares, their entropies, and what they bring from the content."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle import Model, Trace
from oracle._checks import reject
from oracle.attention import transformed_vectors
from validation.compare import compare
from validation.progress import Progress, silent
from validation.registry import bound_for, parts_of
from validation.report.document import Check
from validation.table import MIN_CONTENT_KEYS, content_queries

__all__ = ["CRITERIA", "KEPT", "HeadStatistics", "content_contribution", "head_statistics"]

Array = NDArray[Any]

CRITERIA: Mapping[str, str] = {
    "sink_share": "sink share",
    "norm_sink_share": "norm-weighted sink share",
    "content_entropy": "content entropy",
    "entropy": "entropy, sink kept",
    "content_contribution": "content contribution",
}
KEPT = ("attention", "values", "value_norm", "hidden_states")
"""What a Trace must keep for `head_statistics`."""

_VERIFIED = 4  # rows of every layer


class HeadStatistics(NamedTuple):
    """One number a head for every criterion, (layer, head) float64; NaN where no row defines it."""

    values: Mapping[str, Array]
    rows: tuple[int, ...]  # of every layer: the queries that count in each of its heads


def head_statistics(
    model: Model, trace: Trace, engine: ModuleType, seed: int = 0, progress: Progress = silent
) -> tuple[HeadStatistics, Check]:
    """Mean over the counted rows of one text, for every head, and some of the rows computed by the oracle.

    Rows are those of content queries from 8 visible content keys on. `sink_share` and `norm_sink_share`
    (value norm) are in [0, 1]; `content_entropy` (without rows that have no content mass) and `entropy` (n+1
    parts, the sink one of them) in nats; `content_contribution` is the function of that name. `engine` is
    the layer that reads the rows. Raises InputError where a layer has no row that counts.
    """
    config, rng = model.config, np.random.default_rng(seed)
    values = {name: np.empty((config.n_layers, config.n_heads)) for name in CRITERIA}
    rows, checked = [], _Checked()
    for layer in range(config.n_layers):
        progress("statistics of the heads", layer, config.n_layers)
        visible = trace.visible_in(layer)
        queries, _ = content_queries(trace.sink_mask, visible)
        if not len(queries):
            _refuse_short(trace)
        attention, norms = trace.attention[layer], {"value_norm": trace.value_norm[layer]}
        found = engine.row_measures(attention, trace.sink_mask, norms, visible, entropies=True)
        columns = {
            "sink_share": found.shares["attention"],
            "norm_sink_share": found.shares["value_norm"],
            "content_entropy": found.entropy.content,
            "entropy": found.entropy.total,
        }
        for name, column in columns.items():
            values[name][layer] = _mean(column[:, queries])
        values["content_contribution"][layer] = content_contribution(
            attention[:, queries],
            trace.values[layer],
            model.layers[layer].output.weight,
            ~trace.sink_mask,
            trace.hidden_states[layer][queries],
        )
        rows.append(len(queries))
        for query in rng.choice(queries, _VERIFIED):
            head = int(rng.integers(config.n_heads))
            checked.add(found, trace, layer, head, int(query))
    return HeadStatistics(values, tuple(rows)), checked.part(seed)


def content_contribution(
    attention: Array, values: Array, output_weight: Array, content: NDArray[np.bool_], entering: Array
) -> Array:
    """Mean over queries of ‖sum_C a·f_j‖, over the median norm of what enters the layer: (head,), 0 or more.

    `attention` (head, query, key) holds the rows that count and `entering` (query, d_model) the residual
    stream at their queries, before any norm; `values` (head, key, d_head), `output_weight` (head * d_head,
    d_model), f_j = v_j W_O of that head, and `content` (key,) is True at C. In float64.
    """
    brought = attention[..., content].astype(np.float64) @ values[:, content].astype(np.float64)
    written = np.linalg.norm(transformed_vectors(brought, output_weight), axis=-1)  # (head, query)
    return written.mean(axis=-1) / np.median(np.linalg.norm(entering.astype(np.float64), axis=-1))


class _Checked:
    """Gathers how far rows are from what the oracle makes of them."""

    def __init__(self) -> None:
        self.rows, self.wrong, self.used, self.place = 0, 0, 0.0, "none"

    def add(self, found: Any, trace: Trace, layer: int, head: int, query: int) -> None:
        """Compute one row again."""
        weights, seen = trace.attention[layer, head, query][None], trace.visible_in(layer)[query]
        norms = {"value_norm": trace.value_norm[layer, head]}
        again = oracle.row_measures(weights, trace.sink_mask, norms, seen, entropies=True)
        mine, logarithm = parts_of(found, "share"), float(-np.log(weights[weights > 0].min()))
        self.rows += 1
        within = True
        for part, expected in parts_of(again, "share").items():
            bound = bound_for(part[0], weights.dtype, weights.shape[-1], logarithm)
            result = compare(
                expected, mine[part][head, query][None], absolute=bound.absolute, relative=bound.relative
            )
            within = within and result.within
            if not result.used <= self.used:
                self.used, self.place = result.used, f"layer {layer}, head {head}, query {query}, {part[1]}"
        self.wrong += not within

    def part(self, seed: int) -> Check:
        """The worst of them."""
        expected = f"{self.rows} rows, drawn with seed {seed}, as the oracle computes them again"
        worst = f"the worst, {self.used:.1%} of its bound, at {self.place}"
        found = f"{self.wrong} outside their bound; {worst}" if self.wrong else f"all within; {worst}"
        return Check("head_statistics", expected, found, not self.wrong)


def _mean(rows: Array) -> Array:
    """Mean of the defined rows of each head, (head,); NaN where there is none."""
    known = ~np.isnan(rows)
    with np.errstate(invalid="ignore"):
        return np.where(known, rows, 0).sum(axis=-1) / known.sum(axis=-1)


def _refuse_short(trace: Trace) -> None:
    reject(
        "text",
        expected=f"a text with a row that sees {MIN_CONTENT_KEYS} content keys in every layer",
        found=f"none in {len(trace.token_ids)} tokens",
        todo="Heads are measured on such rows: take a model with more positions, or wider windows.",
    )
