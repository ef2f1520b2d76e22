"""What the predictor of flip rates is fitted on: one trained encoder, and its rows with another sink.

MiniLM alone would give one sink. So its scores are moved too: the odds of the sink against the content of
every row are multiplied, by one factor or by one drawn for each head, content rows are sharpened, or later
keys are hidden. These are no models that anybody trained, and they are not independent: all share the heads
and the texts of one. Groups of layers and lengths of the texts are further observations, no more independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastpath
import oracle
from oracle.distances import CONVENTIONS, METRICS
from oracle.model import Model
from oracle.ops import softmax
from validation.audit.distances import DistanceGatherer, Distances
from validation.prediction.fitting import Observation
from validation.prediction.statistics import describe_heads, log_content_keys
from validation.progress import Progress, silent
from validation.table import content_queries

__all__ = ["GROUPS", "LENGTHS", "PREDICTED", "VARIANTS", "Rows", "Variant", "move_rows", "observe"]

Array = NDArray[Any]

PREDICTED = tuple(metric for metric in METRICS if metric != "aitchison_sink")
LENGTHS = (16, 40, None)  # tokens of each passage, specials included; None: all of them
GROUPS = {"all": range(6), "0-1": (0, 1), "2-3": (2, 3), "4-5": (4, 5)}


class Variant(NamedTuple):
    """How rows are moved: log odds added to the sink, their standard deviation between heads, and so on."""

    name: str
    shift: float = 0.0
    spread: float = 0.0  # of what is drawn for each head, beside the shift
    sharpen: float = 1.0  # the power that content rows are raised to before they are closed again
    causal: bool = False  # later keys and the last token are hidden, and the first token alone is the sink


VARIANTS = (
    Variant("as it is"),
    Variant("weak sink", shift=-2.0),
    Variant("strong sink", shift=2.0),
    Variant("uneven sink", shift=1.0, spread=2.0),
    Variant("sharp content", sharpen=2.0),
    Variant("strong sink, sharp content", shift=3.0, spread=1.0, sharpen=1.5),
    Variant("causal, strong sink", shift=2.0, spread=1.5, causal=True),
)


class Rows(NamedTuple):
    """Rows of one text, moved: scores and their softmax (layer, head, query, key), and what can be seen."""

    attention: Array
    scores: Array
    sink_mask: NDArray[np.bool_]  # (key,)
    visible: NDArray[np.bool_]  # (query, key)


def move_rows(
    variant: Variant, scores: Array, sink_mask: NDArray[np.bool_], visible: NDArray[np.bool_]
) -> Rows:
    """The rows of a text under `variant`; every query must see a content key."""
    scores = np.asarray(scores, dtype=np.float64)  # (layer, head, query, key)
    if variant.causal:
        scores, first = scores[..., :-1, :-1], np.arange(len(sink_mask) - 1) == 0
        sink_mask, visible = first, np.tri(len(first), dtype=bool)
        scores = np.where(visible, scores, -np.inf)
    drawn = np.random.default_rng(0).normal(size=scores.shape[:2])[..., None, None]
    content = np.where(visible & ~sink_mask, scores, -np.inf)
    top = content.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)  # a query that sees the sink alone
    mass = _log_sum(content - top)
    sharp = variant.sharpen * (content - top)
    power = _log_sum(sharp)
    odds = scores - top - mass + variant.shift + variant.spread * drawn
    moved = np.where(sink_mask & visible, odds, sharp - power)
    return Rows(softmax(moved), moved, sink_mask, visible)


def observe(model: Model, texts: tuple[str, ...], progress: Progress = silent) -> Iterator[Observation]:
    """Every group of layers of every variant on texts of every length; compiled, one pass a length."""
    for step, length in enumerate(LENGTHS):
        gatherers = [DistanceGatherer(fastpath, range(6), metrics=PREDICTED) for _ in VARIANTS]
        keys: list[list[Array]] = [[] for _ in VARIANTS]
        for index, text in enumerate(texts):
            progress(
                f"texts of {length or 'all'} tokens", step * len(texts) + index, len(LENGTHS) * len(texts)
            )
            ids = model.tokenizer.encode(text).ids
            if length is not None:
                ids = [*ids[: length - 1], ids[-1]]
            trace = oracle.forward(model, ids, keep=("scores",))
            for place, variant in enumerate(VARIANTS):
                rows = move_rows(variant, trace.scores, trace.sink_mask, trace.visible)
                gatherers[place].add(index, rows.attention, rows.sink_mask, rows.visible, rows.scores)
                queries, _ = content_queries(rows.sink_mask, rows.visible)
                keys[place].append(log_content_keys(rows.sink_mask, rows.visible[queries]))
        for place, variant in enumerate(VARIANTS):
            found = gatherers[place].result()
            if found is None:
                raise LookupError(f"no text has a row that counts under {variant.name!r}")
            log_keys = float(np.concatenate(keys[place]).mean())
            for name, layers in GROUPS.items():
                heads = np.isin(found.layers, list(layers))
                yield _observation(found, heads, log_keys, (variant.name, name, str(length or "all")))


def _observation(
    found: Distances, heads: NDArray[np.bool_], log_keys: float, names: tuple[str, str, str]
) -> Observation:
    among = np.ix_(heads, heads)
    flips = {}
    for metric in PREDICTED:
        keep, drop = (found.mean(metric, convention)[among] for convention in CONVENTIONS)
        flips[metric] = fastpath.verdict_flips(keep, drop)
    return Observation(
        *names,
        describe_heads(found.sink_share[heads], found.content_entropy[heads], log_keys),
        {metric: flip.flipped for metric, flip in flips.items()},
        {metric: flip.triples for metric, flip in flips.items()},
    )


def _log_sum(values: Array) -> Array:
    """Log of the sum of exponentials over keys, whose largest is zero; 0 where there is none."""
    total = np.exp(values).sum(axis=-1, keepdims=True)
    return np.log(np.where(total > 0, total, 1.0))
