"""Wrong distances between rows and heads: each is one mistake that somebody could make in good faith."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import DistanceSums
from validation.mutants.kinds import Mutant, instead
from validation.mutants.of_composition import closed, content_keys, without_mask
from validation.properties import Implementation

__all__ = ["DISTANCE_MUTANTS"]

Array = NDArray[Any]
Apply = Callable[[Implementation], Implementation]


def _scaled(**factors: float) -> Apply:
    """Some metrics multiplied by a factor."""

    def wrong(true: Any, x: Any, y: Any, sinks: Any, metric: str = "jsd", *others: Any) -> Any:
        return true(x, y, sinks, metric, *others) * factors.get(metric, 1)

    return instead("row_distances", wrong)


def _called(change: Callable[..., Any]) -> Apply:
    """change(true, x, y, sinks, metric, convention, visible), whatever was left out of the call."""

    def wrong(
        true: Any,
        x: Any,
        y: Any,
        sinks: Any,
        metric: str = "jsd",
        convention: str = "keep",
        visible: Any = None,
    ) -> Any:
        return change(true, x, y, sinks, metric, convention, visible)

    return instead("row_distances", wrong)


def _divergence(x: Array, y: Array) -> Array:
    """JSD of parts that need not sum to one, none of them zero unless both are."""
    mean = (x + y) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(row > 0, row * np.log(row / mean), 0) for row in (x, y)]
    return (terms[0] + terms[1]).sum(axis=-1) / 2


def _not_closed(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    if (metric, convention) != ("jsd", "drop"):
        return true(x, y, sinks, metric, convention, visible)
    content = content_keys(x, sinks, visible)
    return _divergence(np.where(content, x, 0), np.where(content, y, 0))


def _one_sided(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    """The divergence of x from y in the place of the symmetric one."""
    if (metric, convention) != ("jsd", "drop"):
        return true(x, y, sinks, metric, convention, visible)
    content = content_keys(x, sinks, visible)
    rows = [closed(np.where(content, row, 0)) for row in (x, y)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(content, rows[0] * np.log(rows[0] / rows[1]), 0).sum(axis=-1)


def _sinks_apart(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    if convention == "drop" or metric == "aitchison_sink":
        return true(x, y, sinks, metric, convention, visible)
    return true(x, y, np.zeros_like(sinks), metric, convention, visible)


def _swapped(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    other = "keep" if convention == "drop" or metric == "aitchison_sink" else "drop"
    return true(x, y, sinks, metric, other, visible)


def _closed_content(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    """Under keep, the closed content beside the sink's share, as if it had not lost that mass."""
    return true(x, y, sinks, metric, "keep" if metric == "aitchison_sink" else "drop", visible)


def _root_left_out(true: Any, x: Any, y: Any, sinks: Any, metric: str, *others: Any) -> Any:
    return true(x, y, sinks, "jsd" if metric == "root_jsd" else metric, *others)


def _root_taken(true: Any, x: Any, y: Any, sinks: Any, metric: str, *others: Any) -> Any:
    found = true(x, y, sinks, metric, *others)
    return np.sqrt(found) if metric.startswith("aitchison") else found


def _signed(true: Any, x: Any, y: Any, sinks: Any, metric: str, *others: Any) -> Any:
    """The entropy difference with its sign, told by which row has the smaller sum of squares."""
    found = true(x, y, sinks, metric, *others)
    sign = np.where((np.asarray(x) ** 2).sum(axis=-1) > (np.asarray(y) ** 2).sum(axis=-1), 1, -1)
    return sign * found if metric == "entropy" else found


def _centred_cosine(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    """One minus the correlation."""
    if (metric, convention) != ("cosine", "drop"):
        return true(x, y, sinks, metric, convention, visible)
    content = content_keys(x, sinks, visible)
    rows = [np.where(content, closed(np.where(content, row, 0)), np.nan) for row in (x, y)]
    gaps = [np.where(content, row - np.nanmean(row, axis=-1, keepdims=True), 0) for row in rows]
    norms = [np.sqrt((gap**2).sum(axis=-1)) for gap in gaps]
    return 1 - (gaps[0] * gaps[1]).sum(axis=-1) / norms[0] / norms[1]


def _first_key_is_sink(true: Any, x: Any, y: Any, sinks: Any, *others: Any) -> Any:
    return true(x, y, np.arange(len(sinks)) == 0, *others)


def _absent_part(true: Any, x: Any, y: Any, sinks: Any, metric: str, convention: str, visible: Any) -> Any:
    """A hundredth of the mass for a sink that is not there, taken from the content."""
    found = true(x, y, sinks, metric, convention, visible)
    none = ~np.any(np.broadcast_to(True if visible is None else visible, np.shape(x)) & sinks, axis=-1)
    return np.where(none & (convention == "keep"), 0.99, 1) * found


def _every_query(true: Any, *given: Any, queries: Any = None, **named: Any) -> DistanceSums:
    return true(*given, queries=None, **named)


def _undefined_as_zero(true: Any, *given: Any, **named: Any) -> DistanceSums:
    """A row without a distance adds nothing and counts all the same."""
    found = true(*given, **named)
    counts = {
        key: np.broadcast_to(c.max(axis=(1, 2), keepdims=True), c.shape) for key, c in found.counts.items()
    }
    return found._replace(counts=counts)


def _never_reset(true: Any, *given: Any, **named: Any) -> DistanceSums:
    """The sums of a text on top of those of the texts before it."""
    found = true(*given, **named)
    return found._replace(sums={key: np.cumsum(sums, axis=0) for key, sums in found.sums.items()})


def _one_count(true: Any, found: DistanceSums, metric: str, convention: str, texts: Any = None) -> Array:
    """All pairs divided by the number of rows of the best pair."""
    counts = found.counts[metric, convention].sum(axis=0)
    return true(found, metric, convention, texts) * counts / counts.max()


def _mean_of_means(true: Any, found: DistanceSums, metric: str, convention: str, texts: Any = None) -> Array:
    key = metric, convention
    return (found.sums[key] / found.counts[key]).mean(axis=0)


def _all_texts(true: Any, found: DistanceSums, metric: str, convention: str, texts: Any = None) -> Array:
    return true(found, metric, convention)


def _first_half(true: Any, found: DistanceSums, metric: str, convention: str, texts: Any = None) -> Array:
    """As many texts as were asked for, always the first ones, so that both halves of a floor are one."""
    every = np.arange(len(found.sums[metric, convention]))
    chosen = every if texts is None else every[texts]
    return true(found, metric, convention, every[: len(chosen)])


def _root_of_the_mean(true: Any, rows: Any, sinks: Any, metric: str, convention: str, **named: Any) -> Array:
    if metric != "root_jsd":
        return true(rows, sinks, metric, convention, **named)
    return np.sqrt(true(rows, sinks, "jsd", convention, **named))


def _rows_averaged(true: Any, rows: Any, *, visible: Any, queries: Any) -> Array:
    return true(rows, visible=visible, queries=queries) / sum(chosen.sum() for chosen in queries)


def _not_smoothed(true: Any, rows: Any, *, visible: Any, queries: Any) -> Array:
    total: Any = 0
    for attention, chosen in zip(rows, queries, strict=True):
        heads = attention.reshape(-1, *attention.shape[-2:])[:, chosen]
        total = total + _divergence(heads[:, None], heads[None]).sum(axis=-1)
    return total


DISTANCE_MUTANTS = tuple(
    Mutant(name, "distance", trial, apply)
    for name, trial, apply in (
        ("log2 for ln", "distances by loops", _scaled(jsd=1 / np.log(2), root_jsd=1 / np.sqrt(np.log(2)))),
        ("divergence without the half", "distances by loops", _scaled(jsd=2)),
        ("Hellinger without the half", "distances by loops", _scaled(hellinger=np.sqrt(2))),
        ("L1 halved", "distances by loops", _scaled(l1=0.5)),
        ("drop not closed", "distances by loops", _called(_not_closed)),
        ("keep and drop swapped", "distances by loops", _called(_swapped)),
        ("cosine of centred rows", "distances by loops", _called(_centred_cosine)),
        ("root of the Aitchison d²", "distances by loops", _called(_root_taken)),
        ("sink keys stay apart", "equal shares scale keep", _called(_sinks_apart)),
        ("content closed under keep", "equal shares scale keep", _called(_closed_content)),
        ("one-sided divergence", "distances are symmetric", _called(_one_sided)),
        ("|dH| with its sign", "distances are symmetric", _called(_signed)),
        ("root of the JSD left out", "triangle inequality", _called(_root_left_out)),
        ("part for an absent sink", "keep is drop, no sink", _called(_absent_part)),
        ("first key taken for sink", "key order, distances", _called(_first_key_is_sink)),
        ("padding kept as parts", "padding, distances", _called(without_mask)),
        ("sink queries counted", "heads by loops", instead("distance_sums", _every_query)),
        ("NaN rows counted as zero", "heads by loops", instead("distance_sums", _undefined_as_zero)),
        ("counts not per pair", "heads by loops", instead("mean_distances", _one_count)),
        ("mean of the texts' means", "heads by loops", instead("mean_distances", _mean_of_means)),
        ("floor: halves not taken", "chosen texts by loops", instead("mean_distances", _all_texts)),
        ("floor: same half twice", "chosen texts by loops", instead("mean_distances", _first_half)),
        ("root of the mean JSD", "heads by loops", instead("head_distances", _root_of_the_mean)),
        ("sums never reset", "text order is free", instead("distance_sums", _never_reset)),
        ("preset averaged", "clark2019 by loops", instead("clark2019_distances", _rows_averaged)),
        ("preset not smoothed", "clark2019 by loops", instead("clark2019_distances", _not_smoothed)),
    )
)
"""Mistakes in distances of rows, their sums and their means."""
