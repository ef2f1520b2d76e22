"""Distances between rows and between heads, under a stated convention for the sink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, reject
from oracle._distance_checks import (
    AITCHISON,
    CONVENTIONS,
    METRICS,
    broadcast_pair,
    check_metrics,
    check_zeros,
    read_texts,
)
from oracle._divergences import jsd
from oracle._results import DistanceSums
from oracle._row_forms import RowForms, counted_rows, distances_of, entropies_of, forms_of_text
from oracle.rows import check_row_pair, check_rows
from oracle.zeros import closed_content, handle_zeros, keep_parts

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "clark2019_distances",
    "distance_sums",
    "head_distances",
    "mean_distances",
    "row_distances",
]

Array = NDArray[Any]

_ELEMENTS = 2**16  # compared at once; temporaries of all heads would be written to memory and read again


def row_distances(
    x: Any,
    y: Any,
    sink_mask: Any,
    metric: str = "jsd",
    convention: str = "keep",
    visible: Any = None,
    zeros: str = "refuse",
    delta: float | None = None,
) -> Array:
    """Distance of each row of x from its row of y: (..., query), at least 0.

    `convention` "keep" compares the content keys and the sink set as one part, "drop" the content closed.
    `metric`, with its range and unit:
    "cosine" 1 - cos, [0, 1]; "jsd" the Jensen-Shannon divergence (Lin 1991), [0, ln 2] nats; "root_jsd" its
    root; "hellinger" sqrt(1/2 sum (sqrt x - sqrt y)²), [0, 1]; "l1" sum |x - y|, [0, 2]; "entropy" the
    absolute difference of the entropies, [0, ln(n+1)] nats; "aitchison" the SQUARED Aitchison distance, total
    under keep and content under drop; "aitchison_sink" the sink term of its split, under keep only.

    A row that sees no sink has no sink part: keep and drop are then the same. A row without any mass gives
    NaN, under drop also one without content mass (as for both Aitchison metrics, see `aitchison_split`).
    `zeros` and `delta` are those of `aitchison_split` and touch its metrics alone: elsewhere a zero is a
    number like any other. `x` and `y` (..., query, key) broadcast against each other; rows and masks are
    those of `sink_share`. Raises InputError as there, and for a metric or convention without a definition
    here.
    """
    (pair,) = check_metrics(metric, convention)
    check_zeros(zeros, delta)
    sides = []
    for name, given, rows in zip("xy", broadcast_pair(x, y), check_row_pair(x, y, visible), strict=True):
        parts = keep_parts(rows, sink_mask, visible)
        handled = handle_zeros(parts, name, zeros, delta) if metric in AITCHISON else None
        entropies = entropies_of(given, sink_mask, visible) if metric == "entropy" else {}
        weights = {"keep": parts.weights, "drop": closed_content(parts)}
        sides.append(RowForms(weights, entropies, handled))
    return distances_of(sides[0], sides[1], [pair])[pair]


def distance_sums(
    rows: Any,
    sink_mask: Any,
    metrics: str | Iterable[str] = METRICS,
    conventions: str | Iterable[str] = CONVENTIONS,
    visible: Any = None,
    scores: Any = None,
    queries: Any = None,
    zeros: str = "refuse",
    delta: float | None = None,
) -> DistanceSums:
    """Row distances of all pairs of heads, added up over the rows of each text: (text, head, head).

    `rows` is one text, (layer, head, query, key) or (head, query, key), or a list of such arrays, one for
    each text, with the same heads and any lengths (Hugging Face's tuple, one array a layer, goes through
    `read_attention` first). `sink_mask` (key,) or None for no sink, `visible` (query, key) or a KeyRange,
    `queries` (query,) with True for the rows that count, and `scores` in the shape of the rows are one for
    all texts or a list with one for each; masks are the same for all heads. Heads come out flattened, (layer,
    head) in C order.

    Distances, units, ranges, `zeros` and `delta` are those of `row_distances`, for every metric under every
    convention ("aitchison_sink" has no "drop", so that pair is absent). With `scores` the Aitchison metrics
    come from them, as in `aitchison_split_from_scores`, and no zero is ever in the way; all others come from
    the rows. A row distance that is NaN, because a row is undefined in either head, is left out of that pair
    and shows as absent from the counts; a row without mass is undefined for every metric, scores or not.
    Raises InputError as `row_distances` does, naming layer, head, query and key, and for texts that differ in
    their heads or lists of other lengths.
    """
    pairs = check_metrics(metrics, conventions)
    check_zeros(zeros, delta)
    texts = read_texts(rows, sink_mask, visible, scores, queries)
    heads = int(np.prod(texts[0].rows.shape[:-2]))
    shape = (len(texts), heads, heads)
    found = DistanceSums(
        {pair: np.zeros(shape) for pair in pairs}, {pair: np.zeros(shape, dtype=np.int64) for pair in pairs}
    )
    for place, text in enumerate(texts):
        every = forms_of_text(text, {metric for metric, _ in pairs}, zeros, delta)
        for head, others in _blocks(every.weights["keep"]):
            distances = distances_of(every.at(slice(head, head + 1)), every.at(others), pairs)
            for pair in pairs:
                _add(found.sums[pair][place], found.counts[pair][place], head, others, distances[pair])
    return found


def mean_distances(
    found: DistanceSums, metric: str, convention: str = "keep", texts: Any = None
) -> NDArray[np.float64]:
    """Distance of every pair of heads: the mean over the pooled rows of the chosen texts, (head, head).

    sums / counts of `distance_sums`, in the unit and range of `metric` (`row_distances`; Aitchison metrics
    are means of squares); the diagonal is 0. `texts` is None for all, indices (one that comes twice counts
    twice) or a mask (text,). A pair without a row that is defined in both heads is NaN. Raises InputError for
    texts that there are not, and for a metric and convention that `found` does not hold.
    """
    pair = metric, convention
    if pair not in found.sums:
        reject(
            "metric",
            expected=f"one of {', '.join('/'.join(held) for held in found.sums)}",
            found="/".join(pair),
            todo="Ask distance_sums for it.",
        )
    chosen = _chosen_texts(texts, len(found.sums[pair]))
    totals, rows = (part[pair][chosen].sum(axis=0) for part in found)
    with np.errstate(invalid="ignore"):
        means = totals / rows
    np.fill_diagonal(means, 0)
    return means


def head_distances(
    rows: Any,
    sink_mask: Any,
    metric: str = "jsd",
    convention: str = "keep",
    visible: Any = None,
    scores: Any = None,
    queries: Any = None,
    zeros: str = "refuse",
    delta: float | None = None,
) -> NDArray[np.float64]:
    """Distances between all heads, the mean row distance over the rows of all texts: (head, head).

    `mean_distances` of `distance_sums`: arguments, heads, units, NaN and InputError are theirs.
    """
    found = distance_sums(rows, sink_mask, metric, convention, visible, scores, queries, zeros, delta)
    return mean_distances(found, metric, convention)


def clark2019_distances(rows: Any, visible: Any = None, queries: Any = None) -> NDArray[np.float64]:
    """Distances between all heads as in Clark et al. 2019 (section 6): (head, head), at least 0, in nats.

    Every row is smoothed to 0.999 p + 0.001 / n over its n visible keys, the sink among them key by key, and
    the Jensen-Shannon divergences are added up over the rows of all texts (not averaged). `rows`, `visible`
    and `queries` are those of `distance_sums`. A row without mass in either head is left out of that pair,
    and a pair without any row is NaN; the diagonal is 0. Raises InputError as `distance_sums` does.
    """
    texts = read_texts(rows, None, visible, None, queries)
    shape = (int(np.prod(texts[0].rows.shape[:-2])),) * 2
    sums, counts = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for text in texts:
        rows_of_text = check_rows(text.rows, text.visible, text.argument)
        weights, present = keep_parts(rows_of_text, text.sink_mask, text.visible)
        with np.errstate(divide="ignore"):
            noise = np.where(present, 0.001 / present.sum(axis=-1, keepdims=True), 0)
        smooth = counted_rows(0.999 * weights + noise, text)
        for head, others in _blocks(smooth):
            _add(sums, counts, head, others, jsd(smooth[head : head + 1], smooth[others]))
    np.fill_diagonal(sums, 0)
    return np.where((counts == 0) & ~np.eye(len(sums), dtype=bool), np.nan, sums)


def _chosen_texts(texts: Any, count: int) -> Any:
    """What picks texts out of `count`: a slice, a mask or indices."""
    if texts is None:
        return slice(None)
    chosen = as_array("texts", texts)
    is_mask = chosen.dtype == bool
    wrong = chosen.ndim != 1 or (is_mask and chosen.size != count)
    if not is_mask and chosen.size:
        wrong |= chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= count
    if wrong:
        reject(
            "texts",
            expected=f"indices from 0 to {count - 1}, or True or False for each of {count} texts",
            found=f"{chosen.tolist()}",
            todo="Name texts by their place in the call.",
        )
    return chosen if is_mask else chosen.astype(np.int64)


def _blocks(weights: Array) -> Iterator[tuple[int, slice]]:
    """Every head of (head, query, part) with those from itself on, in blocks that stay in the cache."""
    heads = len(weights)
    at_once = max(1, _ELEMENTS * heads // max(1, weights.size))
    for head in range(heads):
        for start in range(head, heads, at_once):
            yield head, slice(start, min(start + at_once, heads))


def _add(sums: Array, counts: Array, head: int, others: slice, distances: Array) -> None:
    """Add the row distances (other head, query) of one head to tables (head, head), on both sides."""
    defined = ~np.isnan(distances)
    total, rows = np.where(defined, distances, 0).sum(axis=-1), defined.sum(axis=-1)
    for table, values in ((sums, total), (counts, rows)):
        table[head, others] += values
        if others.start == head:
            table[head + 1 : others.stop, head] += values[1:]
        else:
            table[others, head] += values
