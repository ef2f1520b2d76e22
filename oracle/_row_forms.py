"""Checked rows in the forms that distances are taken of, and every distance of two such."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._distance_checks import AITCHISON, Text
from oracle._divergences import DIVERGENCES
from oracle._results import AitchisonSplit
from oracle.aitchison import split_parts, split_scores
from oracle.composition import entropy_split
from oracle.rows import check_rows, check_scores
from oracle.zeros import Parts, closed_content, handle_zeros, keep_parts

__all__ = ["Logits", "RowForms", "counted_rows", "distances_of", "entropies_of", "forms_of_text"]

Array = NDArray[Any]
Pair = tuple[str, str]


class Logits(NamedTuple):
    """Scores before the softmax, (..., query, key), and their masks (query, key)."""

    scores: Array
    sinks: NDArray[np.bool_]
    seen: NDArray[np.bool_]


class RowForms(NamedTuple):
    """Rows in the forms that the metrics ask for, all with the same leading axes."""

    weights: Mapping[str, Array]  # convention -> (..., query, part), closed, the sink first
    entropies: Mapping[str, Array]  # convention -> (..., query)
    parts: Parts | None = None  # those of "keep" with their zeros dealt with
    logits: Logits | None = None  # where Aitchison metrics come from scores

    def at(self, heads: slice) -> RowForms:
        """The rows of some heads."""
        return RowForms(
            {name: part[heads] for name, part in self.weights.items()},
            {name: part[heads] for name, part in self.entropies.items()},
            self.parts and self.parts._replace(weights=self.parts.weights[heads]),
            self.logits and self.logits._replace(scores=self.logits.scores[heads]),
        )


def entropies_of(rows: Any, sink_mask: Any, visible: Any) -> dict[str, Array]:
    """Entropies of rows as they came, by convention: (..., query)."""
    split = entropy_split(rows, sink_mask, visible)
    return {"keep": split.total, "drop": split.content}


def forms_of_text(text: Text, metrics: Collection[str], zeros: str, delta: float | None) -> RowForms:
    """The counted rows of a text, heads flattened: (head, query, part)."""
    sinks = text.sink_mask
    parts = keep_parts(check_rows(text.rows, text.visible, text.argument), sinks, text.visible)
    entropies, handled, logits = {}, None, None
    if "entropy" in metrics:
        found = entropies_of(text.rows, sinks, text.visible)
        entropies = {name: counted_rows(part[..., None], text)[..., 0] for name, part in found.items()}
    if AITCHISON & set(metrics):
        if text.scores is None:
            weights, present = handle_zeros(parts, text.argument, zeros, delta, text.queries)
            handled = Parts(counted_rows(weights, text), _counted(present, text))
        else:
            name = text.argument.replace("rows", "scores") if "[" in text.argument else "scores"
            scores, seen = check_scores(text.scores, text.visible, name)
            logits = Logits(counted_rows(scores, text), _counted(sinks, text), _counted(seen, text))
    kept = parts._replace(weights=counted_rows(parts.weights, text))
    return RowForms({"keep": kept.weights, "drop": closed_content(kept)}, entropies, handled, logits)


def distances_of(x: RowForms, y: RowForms, pairs: Collection[Pair]) -> dict[Pair, Array]:
    """Every (metric, convention) between rows that broadcast: (..., query)."""
    found = {}
    if any(metric in AITCHISON for metric, _ in pairs):
        split = _aitchison(x, y)
        found = {
            ("aitchison", "keep"): split.total,
            ("aitchison", "drop"): split.content,
            ("aitchison_sink", "keep"): split.sink,
        }
    for metric, convention in pairs:
        if metric == "entropy":
            found[metric, convention] = np.abs(x.entropies[convention] - y.entropies[convention])
        elif metric in DIVERGENCES:
            found[metric, convention] = DIVERGENCES[metric](x.weights[convention], y.weights[convention])
    return found


def _aitchison(x: RowForms, y: RowForms) -> AitchisonSplit:
    if x.parts and y.parts:
        return split_parts(x.parts, y.parts)
    if not (x.logits and y.logits):
        raise TypeError("rows without parts and without logits have no Aitchison distance")
    split = split_scores(x.logits.scores, y.logits.scores, x.logits.sinks, x.logits.seen)
    lost = np.isnan(x.weights["keep"]).any(axis=-1) | np.isnan(y.weights["keep"]).any(axis=-1)
    return AitchisonSplit(*(np.where(lost, np.nan, part) for part in split))


def counted_rows(values: Array, text: Text) -> Array:
    """(..., query, part) to (head, query, part): the counted queries, heads flattened."""
    heads = int(np.prod(values.shape[:-2]))
    return values.reshape(heads, *values.shape[-2:])[:, text.queries]


def _counted(mask: NDArray[np.bool_], text: Text) -> NDArray[np.bool_]:
    return np.broadcast_to(mask, (len(text.queries), mask.shape[-1]))[text.queries]
