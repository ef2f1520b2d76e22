"""Rows as compositions and their distances, written out from their definitions as plain loops.

Nothing here calls the code that it judges. Sums run in float64, or in longdouble for longdouble input. No
zero is replaced: the rows of Aitchison distances have none among their parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.definitions import widest

__all__ = [
    "aitchison_split",
    "clark2019_distances",
    "distance_sums",
    "entropy_change",
    "entropy_split",
    "parts_of",
    "replaced_zeros",
    "row_distances",
    "squared_norm",
]

Array = NDArray[Any]
Row = Sequence[Any]
Triple = tuple[Array, Array, Array]


def parts_of(row: Row, sinks: Sequence[bool], seen: Sequence[bool], convention: str) -> list[Any]:
    """The closed parts of one row; an empty list where they have no mass.

    "keep": the visible sinks, where there are any, summed into one part that stands first, then every visible
    content key. "drop": the content alone.
    """
    keys = list(zip(row, sinks, seen, strict=True))
    on_sink = [weight for weight, sink, see in keys if see and sink]
    content = [weight for weight, sink, see in keys if see and not sink]
    parts = [sum(on_sink), *content] if on_sink and convention == "keep" else content
    mass = sum(parts)
    return [weight / mass for weight in parts] if mass else []


def row_distances(x: Any, y: Any, sink_mask: Any, metric: str, convention: str, visible: Any = None) -> Array:
    """Distances of rows x and y, (..., query); NaN where either has no parts. Aitchison ones are squared."""
    if metric.startswith("aitchison"):
        total, sink, content = aitchison_split(x, y, sink_mask, visible)
        return sink if metric == "aitchison_sink" else total if convention == "keep" else content
    found = _empty(x, y)
    for place, first, second, sinks, seen in _pairs(x, y, sink_mask, visible):
        parts = parts_of(first, sinks, seen, convention), parts_of(second, sinks, seen, convention)
        found[place] = _distance(*parts, metric) if all(parts) else np.nan
    return found


def aitchison_split(x: Any, y: Any, sink_mask: Any, visible: Any = None) -> Triple:
    """The squared distance ‖clr x - clr y‖² over all parts, its sink term and its content, each (..., query).

    The three are computed apart from each other.
    """
    total, sink, content = (_empty(x, y) for _ in range(3))
    for place, first, second, sinks, seen in _pairs(x, y, sink_mask, visible):
        kept = [parts_of(row, sinks, seen, "keep") for row in (first, second)]
        dropped = [parts_of(row, sinks, seen, "drop") for row in (first, second)]
        if not all((*kept, *dropped)):
            total[place] = sink[place] = content[place] = np.nan
            continue
        count = len(dropped[0])
        total[place] = _squared_gap(*kept)
        content[place] = _squared_gap(*dropped)
        sink[place] = 0
        if len(kept[0]) > count:
            ratios = [np.log(row[0]) - _mean([np.log(part) for part in row[1:]]) for row in kept]
            sink[place] = (ratios[0] - ratios[1]) ** 2 * count / (count + 1)
    return total, sink, content


def replaced_zeros(rows: Any, sink_mask: Any, delta: float, visible: Any = None) -> Array:
    """Parts with zeros replaced by delta and the others scaled by 1 - zeros * delta: (..., query, 1 + key).

    The sink part stands first and each key at its own place after it; what is no part is 0, a row without
    content mass NaN.
    """
    kind = widest(rows)
    found = np.zeros((*np.shape(rows)[:-1], np.shape(rows)[-1] + 1), kind)
    for place, row, _, sinks, seen in _pairs(rows, rows, sink_mask, visible):
        parts = parts_of(row, sinks, seen, "keep")
        if not parts_of(row, sinks, seen, "drop"):
            found[place] = np.nan
            continue
        zeros = sum(part == 0 for part in parts)
        replaced = [part * (1 - zeros * kind.type(delta)) if part else delta for part in parts]
        keys = [key + 1 for key, (sink, see) in enumerate(zip(sinks, seen, strict=True)) if see and not sink]
        for target, part in zip([0, *keys][-len(parts) :], replaced, strict=True):
            found[place][target] = part
    return found


def squared_norm(rows: Any, sink_mask: Any, visible: Any = None) -> Array:
    """‖clr x‖² over the kept parts of each row, (..., query); NaN where one is zero or there is none."""
    found = _empty(rows, rows)
    for place, row, _, sinks, seen in _pairs(rows, rows, sink_mask, visible):
        parts = parts_of(row, sinks, seen, "keep")
        found[place] = (
            _squared_gap(parts, [parts[0] * 0 + 1] * len(parts)) if parts and all(parts) else np.nan
        )
    return found


def entropy_split(rows: Any, sink_mask: Any, visible: Any = None) -> Triple:
    """H over the kept parts, h(s) and H over the content, each (..., query), in nats."""
    total, binary, content = (_empty(rows, rows) for _ in range(3))
    for place, row, _, sinks, seen in _pairs(rows, rows, sink_mask, visible):
        kept, dropped = (parts_of(row, sinks, seen, convention) for convention in ("keep", "drop"))
        share = kept[0] if kept and any(s and v for s, v in zip(sinks, seen, strict=True)) else 0 * row[0]
        total[place] = _entropy(kept) if kept else np.nan
        binary[place] = _entropy([share, sum(kept[1:])] if share else [share]) if kept else np.nan
        content[place] = _entropy(dropped) if dropped else np.nan
    return total, binary, content


def entropy_change(x: Any, y: Any, sink_mask: Any, visible: Any = None) -> Triple:
    """H(y) - H(x), its sink channel and its content channel, each (..., query), in nats.

    dh - ds mean(Hc) and (1 - mean(s)) dHc, with s the sink share, h the binary entropy, Hc the content's.
    """
    change, by_sink, by_content = (_empty(x, y) for _ in range(3))
    for place, first, second, sinks, seen in _pairs(x, y, sink_mask, visible):
        ends = []
        for row in (first, second):
            whole, binary, content = (part[()] for part in _split_of(row, sinks, seen))
            kept = parts_of(row, sinks, seen, "keep")
            one_sink = any(s and v for s, v in zip(sinks, seen, strict=True))
            ends.append((whole, binary, content, kept[0] if kept and one_sink else 0 * row[0]))
        (h_x, b_x, c_x, s_x), (h_y, b_y, c_y, s_y) = ends
        change[place] = h_y - h_x
        by_sink[place] = b_y - b_x - (s_y - s_x) * (c_x + c_y) / 2
        by_content[place] = (1 - (s_x + s_y) / 2) * (c_y - c_x)
    return change, by_sink, by_content


def distance_sums(
    rows: Sequence[Array],
    sink_mask: Sequence[Any],
    metric: str,
    convention: str,
    visible: Sequence[Any],
    queries: Sequence[Any],
) -> tuple[Array, Array]:
    """Sums of the distance of two heads over the rows that count, and their number: (text, head, head).

    `rows` holds one (..., query, key) array for each text, whose heads are flattened; the masks are one for
    each text. A row counts that is chosen and has a distance.
    """
    heads = [attention.reshape(-1, *attention.shape[-2:]) for attention in rows]
    sums = np.zeros((len(rows), len(heads[0]), len(heads[0])), widest(*rows))
    counts = np.zeros(sums.shape, np.int64)
    for text, a, b in np.ndindex(*sums.shape):
        pair = heads[text][a], heads[text][b]
        for query, distance in enumerate(
            row_distances(*pair, sink_mask[text], metric, convention, visible[text])
        ):
            if queries[text][query] and not np.isnan(distance):
                sums[text, a, b] += distance
                counts[text, a, b] += 1
    return sums, counts


def clark2019_distances(rows: Sequence[Array], visible: Sequence[Any], queries: Sequence[Any]) -> Array:
    """The preset of Clark et al. 2019: 0.999 p + 0.001 / n over all visible keys, divergences summed.

    `rows` holds one (..., query, key) array for each text, whose heads are flattened, `visible` and `queries`
    its masks; (head, head).
    """
    heads = [attention.reshape(-1, *attention.shape[-2:]) for attention in rows]
    total = np.zeros((len(heads[0]), len(heads[0])), widest(*rows))
    for attention, seen, chosen in zip(heads, visible, queries, strict=True):
        for a, b in np.ndindex(*total.shape):
            for query in np.flatnonzero(chosen):
                keys = np.flatnonzero(seen[query])
                pair = [attention[head, query, keys].astype(total.dtype) for head in (a, b)]
                smooth = [[0.999 * p / sum(row) + 0.001 / len(keys) for p in row] for row in pair]
                total[a, b] += _divergence(*smooth)
    return total


def _pairs(x: Any, y: Any, sink_mask: Any, visible: Any) -> Iterator[tuple[Any, ...]]:
    """Each place of (..., query) with both rows, which keys are sinks and which are seen."""
    kind = widest(x, y)
    first, second = np.broadcast_arrays(np.asarray(x).astype(kind), np.asarray(y).astype(kind))
    sinks = np.broadcast_to(np.asarray(sink_mask, dtype=bool), first.shape)
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), first.shape)
    for place in np.ndindex(*first.shape[:-1]):
        yield place, first[place], second[place], sinks[place].tolist(), seen[place].tolist()


def _empty(x: Any, y: Any) -> Array:
    return np.empty(np.broadcast_shapes(np.shape(x), np.shape(y))[:-1], widest(x, y))


def _split_of(row: Array, sinks: Sequence[bool], seen: Sequence[bool]) -> Triple:
    return entropy_split(row, np.asarray(sinks), np.asarray(seen))


def _distance(x: Row, y: Row, metric: str) -> Any:
    pairs = list(zip(x, y, strict=True))
    if metric == "cosine":
        lengths = np.sqrt(sum(a * a for a in x)) * np.sqrt(sum(b * b for b in y))
        return 1 - sum(a * b for a, b in pairs) / lengths
    if metric == "jsd":
        return _divergence(x, y)
    if metric == "root_jsd":
        return np.sqrt(np.maximum(_divergence(x, y), 0))
    if metric == "hellinger":
        return np.sqrt(sum((np.sqrt(a) - np.sqrt(b)) ** 2 for a, b in pairs) / 2)
    if metric == "l1":
        return sum(abs(a - b) for a, b in pairs)
    if metric == "entropy":
        return abs(_entropy(x) - _entropy(y))
    raise ValueError(f"no definition of the distance {metric!r}")


def _divergence(x: Row, y: Row) -> Any:
    """Half the sum of both divergences from the mean of the two, in nats."""
    means = [(a + b) / 2 for a, b in zip(x, y, strict=True)]
    terms = [p * np.log(p / m) for row in (x, y) for p, m in zip(row, means, strict=True) if p]
    return sum(terms) / 2


def _entropy(parts: Row) -> Any:
    return -sum(part * np.log(part) for part in parts if part) + 0 * parts[0]


def _squared_gap(x: Row, y: Row) -> Any:
    """‖clr x - clr y‖²."""
    logs = [[np.log(part) for part in row] for row in (x, y)]
    centred = [[log - _mean(row) for log in row] for row in logs]
    return sum((a - b) ** 2 for a, b in zip(*centred, strict=True))


def _mean(numbers: Sequence[Any]) -> Any:
    return sum(numbers) / len(numbers)
