"""One checkpoint at the fixed texts: its loss, and four figures of every row for three sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle._checks import InputError, reject
from oracle.inputs import read_tokens
from oracle.language_model import log_likelihood, logits
from oracle.model import Model
from oracle.trace import Trace
from validation.progress import Progress, silent
from validation.sink_report import is_token, lacks_token, refuse_token
from validation.studies.collapse.split import RowEntropies
from validation.table import MIN_CONTENT_KEYS, content_queries, visible_in

__all__ = ["CONTROLS", "SINK", "TAKEN", "Measured", "Setting", "measure_checkpoint"]

Array = NDArray[Any]

SINK = "sink"
CONTROLS = ("own token", "previous token")
TAKEN = (SINK, *CONTROLS)
"""What is taken as the sink: the sink set, and as controls a row's own token and the one before it."""


@dataclass(frozen=True)
class Setting:
    """What is the same for all checkpoints of a series beside the texts; `layers` are numbers."""

    layers: tuple[int, ...]
    sink: Any = "special"
    min_content_keys: int = MIN_CONTENT_KEYS
    truncate: bool = False


@dataclass(frozen=True, eq=False)
class Measured:
    """One checkpoint. `rows` maps each of TAKEN to figures (row,); row r lies in layer `layer[r]`.

    `loss` is the mean negative log likelihood of a token (nats), NaN for a model that predicts none.
    `lengths` are T of the texts with tokens, `sinks` tokens and positions of the sink keys, `left_out` the
    causal rows that see too few content keys and `skipped` the texts without tokens.
    """

    loss: float
    layer: NDArray[np.int32]
    rows: Mapping[str, RowEntropies]
    lengths: tuple[int, ...]
    sinks: tuple[tuple[str, int], ...]
    left_out: int
    skipped: int


def measure_checkpoint(
    model: Model,
    texts: Sequence[str],
    setting: Setting,
    *,
    measures: ModuleType = oracle,
    progress: Progress = silent,
) -> Measured:
    """Run every text through one checkpoint; only the figures of its rows are kept.

    `measures` is the layer that computes, `oracle` or `fastpath`. The rows are widened to float64 first, so
    that both give the same to the last digits. Rows are those of content queries, in a causal text from
    `min_content_keys` visible content keys on. Raises InputError, naming the text that it is about, and where
    no text leaves a row.
    """
    found: dict[str, list[RowEntropies]] = {name: [] for name in TAKEN}
    places: list[Array] = []
    lengths, losses = [], []
    names: dict[tuple[str, int], None] = {}
    left_out = skipped = 0
    keep = ("attention", "hidden_states") if model.head is not None else ("attention",)
    for index, text in enumerate(texts):
        progress("texts", index, len(texts))
        try:
            read = read_tokens(model, text, setting.truncate)
            if read.empty:
                skipped += 1
                continue
            present = "none" if lacks_token(setting.sink, read.tokens) else setting.sink
            trace = oracle.forward(model, text, sink=present, keep=keep, truncate=setting.truncate)
        except InputError as error:
            raise InputError(f"text {index + 1} of {len(texts)}: {error}") from None
        lengths.append(len(trace.tokens))
        names |= dict.fromkeys(_sinks_of(trace))
        if model.head is not None and len(trace.tokens) > 1:
            losses.append(-log_likelihood(logits(model, trace), trace.token_ids))
        for layer in setting.layers:
            visible = visible_in(trace.visible, layer)
            chosen, few = content_queries(trace.sink_mask, visible, "content", setting.min_content_keys)
            left_out += few * trace.attention.shape[1]
            part = trace.attention[layer][:, chosen].astype(np.float64)  # (head, query, key)
            places.append(np.full(part[..., 0].size, layer, np.int32))
            for name, sinks in _taken(trace.sink_mask, chosen).items():
                found[name].append(_figures(part, sinks, visible[chosen], measures))
    if is_token(setting.sink) and lengths and not names:
        refuse_token(setting.sink, len(lengths))
    layers = np.concatenate(places) if places else np.empty(0, np.int32)
    if not len(layers):
        reject(
            "texts",
            expected=f"rows of content queries that see at least {setting.min_content_keys} content keys",
            found=f"none in {len(texts)} texts ({skipped} of them without tokens)",
            todo="Give longer texts.",
        )
    return Measured(
        loss=float(np.concatenate(losses).mean()) if losses else float("nan"),
        layer=layers,
        rows={
            name: RowEntropies(*map(np.concatenate, zip(*parts, strict=True)))
            for name, parts in found.items()
        },
        lengths=tuple(lengths),
        sinks=tuple(names),
        left_out=left_out,
        skipped=skipped,
    )


def _taken(sink_mask: NDArray[np.bool_], chosen: Array) -> dict[str, NDArray[np.bool_]]:
    """A sink mask for each of TAKEN: (key,), and (query, key) for the controls."""
    keys = np.arange(len(sink_mask))
    return {SINK: sink_mask, CONTROLS[0]: keys == chosen[:, None], CONTROLS[1]: keys == chosen[:, None] - 1}


def _figures(
    part: Array, sinks: NDArray[np.bool_], visible: NDArray[np.bool_], measures: ModuleType
) -> RowEntropies:
    measured = measures.row_measures(part, sinks, visible=visible, entropies=True)
    figures = (measured.shares["attention"], *measured.entropy)
    return RowEntropies(*(np.ascontiguousarray(figure, dtype=np.float64).ravel() for figure in figures))


def _sinks_of(trace: Trace) -> list[tuple[str, int]]:
    places = np.flatnonzero(trace.sink_mask & trace.mask).tolist()
    return [(trace.tokens[place], place) for place in places]
