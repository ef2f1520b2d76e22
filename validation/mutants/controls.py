"""Two mutations with their numbers on a real model: what tampered norms make of the sink share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oracle import Trace, Unavailable, sink_share
from oracle._checks import reject
from validation.mutants.subjects import NO_SINK
from validation.properties import rounding
from validation.report.document import Check, Column, Part, Table

__all__ = ["positive_controls"]

Array = NDArray[np.floating]
Weighting = Callable[[Trace], Array | None]

_COLUMNS = (
    Column("weighting", "weighting"),
    Column("rows", "rows", ",d"),
    Column("median", "median sink share", ".10%"),
    Column("above_half", ">50%", ",d"),
    Column("moved", "rows unlike attention", ",d"),
)


def positive_controls(traces: Sequence[Trace]) -> tuple[Part, ...]:
    """A table of the sink share under true and tampered norms, and what must hold between its lines.

    All content queries of all heads, with no selection. A trace holds attention and value norms. With all
    norms one the share is that of attention bit for bit; with the norm of the first sink key ([CLS])
    zero, rows move and the share is exactly what the other sinks have against the content.
    Raises Unavailable where no text has a sink.
    """
    traces = [trace for trace in traces if _content(trace).any()]
    if not traces:
        reject("texts", expected="a text with content", found="special tokens only", todo="Add a sentence.")
    traces = [trace for trace in traces if trace.sink_mask.any()]
    if not traces:
        raise Unavailable(NO_SINK)
    first = [int(np.argmax(trace.sink_mask)) for trace in traces]
    attention = _shares(traces, lambda trace: None)
    weighted = _shares(traces, lambda trace: trace.value_norm)
    unit = _shares(traces, lambda trace: np.ones_like(trace.value_norm))
    zeroed = _shares(traces, _without_first)
    others = np.concatenate([_others(trace, key) for trace, key in zip(traces, first, strict=True)])
    sink = " or ".join(sorted({trace.tokens[key] for trace, key in zip(traces, first, strict=True)}))
    lines = {
        "attention": attention,
        "value norm": weighted,
        "all norms 1": unit,
        f"norm of {sink} 0": zeroed,
        f"value norm, {sink} taken out": others,
    }
    rows = tuple(
        (name, len(s), float(np.nanmedian(s)), int((s > 0.5).sum()), _unlike(s, attention))
        for name, s in lines.items()
    )
    unlike_unit, unlike_weighted = _unlike(unit, attention), _unlike(weighted, attention)
    gap = float(np.nanmax(np.abs(zeroed - others), initial=0))
    bound = rounding(max(len(trace.tokens) for trace in traces), np.finfo(np.float64).eps)
    moved, lowered = _unlike(zeroed, weighted), float(np.nanmedian(zeroed) - np.nanmedian(weighted))
    return (
        Table("controls", "Positive controls: tampered norms on this model", _COLUMNS, rows),
        Check(
            "control_unit_norms",
            "all norms 1 give the attention shares bit for bit, true norms do not",
            f"{unlike_unit} of {len(unit)} rows differ; {unlike_weighted} do with true norms",
            unlike_unit == 0 and unlike_weighted > 0,
        ),
        Check(
            "control_first_sink_zero",
            f"norm of {sink} 0 moves shares down to those of the other sinks, within {bound:.0e}",
            f"{moved} of {len(zeroed)} rows move, the median by {lowered:+.1%}; off by {gap:.0e}",
            moved > 0 and lowered < 0 and gap <= bound and bool((zeroed <= weighted + bound).all()),
        ),
    )


def _shares(traces: Sequence[Trace], norm: Weighting) -> Array:
    """Sink shares of all content queries of all heads and texts, (row,)."""
    shares = [sink_share(t.attention, t.sink_mask, norm(t), t.visible)[..., _content(t)] for t in traces]
    return np.concatenate([share.ravel() for share in shares])


def _content(trace: Trace) -> NDArray[np.bool_]:
    return trace.mask & ~trace.sink_mask


def _without_first(trace: Trace) -> Array:
    norm = trace.value_norm.copy()
    norm[..., np.argmax(trace.sink_mask)] = 0
    return norm


def _others(trace: Trace, first: int) -> Array:
    """The share of the other sinks among all keys but the first sink, written out without the measure."""
    keys = trace.mask & (np.arange(len(trace.tokens)) != first)
    weights = trace.attention.astype(np.float64) * trace.value_norm[:, :, None, :]
    sinks, whole = (weights[..., part].sum(axis=-1) for part in (keys & trace.sink_mask, keys))
    return (sinks / whole)[..., _content(trace)].ravel()


def _unlike(found: Array, wanted: Array) -> int:
    """Rows that differ in any digit."""
    return int((~((found == wanted) | (np.isnan(found) & np.isnan(wanted)))).sum())
