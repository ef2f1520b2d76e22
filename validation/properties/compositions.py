"""Laws of rows as compositions: both splits, their sums, their two channels, and the way from scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation import distance_definitions as definitions
from validation.definitions import widest
from validation.properties.finding import Finding, deviation
from validation.properties.implementation import Implementation

__all__ = [
    "aitchison_from_scores",
    "centred_log_ratios",
    "channels_add_up",
    "channels_by_definition",
    "channels_from_scores",
    "entropy_by_definition",
    "entropy_chain_rule",
    "entropy_from_scores",
    "replaced_zeros_keep_ratios",
    "softmax",
    "split_by_definition",
    "split_is_orthogonal",
]

Array = NDArray[Any]

# The promises of the measures: relative to ‖clr x‖² + ‖clr y‖², and in nats. Where all parts are nearly
# equal, both norms vanish beside the logarithms whose differences they are; below one they count as one.
_RELATIVE, _NATS = 1e-12, 1e-13


def centred_log_ratios(implementation: Implementation, parts: Any, visible: Any = None) -> Finding:
    """A part is ln x - mean ln x over the visible parts; others are zero, a row without mass is NaN."""
    found = implementation.clr(parts, visible)
    given = np.asarray(parts).astype(widest(parts))
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), given.shape)
    wanted, size = np.zeros_like(given), 0.0
    for place in np.ndindex(*given.shape[:-1]):
        logs = [np.log(part) for part, see in zip(given[place], seen[place], strict=True) if see]
        if not logs:
            wanted[place] = np.nan
        size = max([size, *map(abs, logs)])  # of what is subtracted: the differences may vanish beside it
        for key in np.flatnonzero(seen[place]):
            wanted[place][key] = np.log(given[place][key]) - sum(logs) / len(logs)
    gap = deviation(found, wanted)
    bound = implementation.rounding(given.shape[-1], parts) * (size or 1.0)
    return Finding("clr by definition", gap[0], bound, gap[1])


def split_is_orthogonal(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """d² = sink term + content, and d² = ‖clr x - clr y‖² over the parts, relative to ‖clr x‖² + ‖clr y‖²."""
    split = implementation.aitchison_split(x, y, sink_mask, visible)
    size = _squared_norms(x, y, sink_mask, visible)
    gap = max(
        deviation(split.sink + split.content, split.total, size),
        deviation(split.total, definitions.aitchison_split(x, y, sink_mask, visible)[0], size),
    )
    return Finding("the split is orthogonal", gap[0], _RELATIVE, gap[1])


def split_by_definition(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """Each of total, sink and content against its own loop, relative to ‖clr x‖² + ‖clr y‖²."""
    wanted = definitions.aitchison_split(x, y, sink_mask, visible)
    found = implementation.aitchison_split(x, y, sink_mask, visible)
    gap = _worst(found, wanted, _squared_norms(x, y, sink_mask, visible))
    return Finding("the split by definition", gap[0], _RELATIVE, gap[1])


def aitchison_from_scores(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """Scores give the split of their softmax rows; scores must be near enough to leave no zero in these."""
    rows = softmax(x, visible), softmax(y, visible)
    wanted = definitions.aitchison_split(*rows, sink_mask, visible)
    found = implementation.aitchison_split_from_scores(x, y, sink_mask, visible)
    gap = _worst(found, wanted, _squared_norms(*rows, sink_mask, visible))
    return Finding("the split from scores", gap[0], _RELATIVE, gap[1])


def replaced_zeros_keep_ratios(
    implementation: Implementation, rows: Any, sink_mask: Any, delta: float, visible: Any = None
) -> Finding:
    """Multiplicative replacement by its definition, on the kept parts; nothing moves in a row without zeros.

    Over the kept parts of a closed row zeros become delta, and the others shrink by 1 - zeros * delta.
    """
    found = implementation.replace_zeros(rows, sink_mask, delta, visible)
    wanted = definitions.replaced_zeros(rows, sink_mask, delta, visible)
    gap = deviation(found, wanted)
    bound = implementation.rounding(np.shape(rows)[-1], rows)
    return Finding("zeros replaced by definition", gap[0], bound, gap[1])


def entropy_chain_rule(
    implementation: Implementation, rows: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """H = h(s) + (1 - s) H(content), with s as the sink share gives it; no content leaves H = h(s)."""
    total, binary, content = implementation.entropy_split(rows, sink_mask, visible)
    share = implementation.sink_share(rows, sink_mask, None, visible)
    wanted = binary + np.where(share == 1, 0, (1 - share) * content)
    gap = deviation(total, wanted)
    return Finding("the chain rule of entropy", gap[0], _NATS, gap[1])


def entropy_by_definition(
    implementation: Implementation, rows: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """Total, binary and content entropy, each part against its own loop."""
    wanted = definitions.entropy_split(rows, sink_mask, visible)
    gap = _worst(implementation.entropy_split(rows, sink_mask, visible), wanted, 1.0)
    return Finding("entropy by definition", gap[0], _NATS, gap[1])


def entropy_from_scores(
    implementation: Implementation, scores: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """Scores give the entropy of their softmax rows."""
    wanted = definitions.entropy_split(softmax(scores, visible), sink_mask, visible)
    gap = _worst(implementation.entropy_split_from_scores(scores, sink_mask, visible), wanted, 1.0)
    return Finding("entropy from scores", gap[0], _NATS, gap[1])


def channels_add_up(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """DH = H(y) - H(x) = sink channel + content channel, row by row; from y to x all three change sign."""
    change = implementation.entropy_change(x, y, sink_mask, visible)
    back = implementation.entropy_change(y, x, sink_mask, visible)
    ends = [implementation.entropy_split(rows, sink_mask, visible).total for rows in (x, y)]
    gap = max(
        deviation(change.sink + change.content, np.where(np.isnan(change.content), np.nan, change.total)),
        deviation(change.total, ends[1] - ends[0]),
        *(deviation(-mirrored, part) for mirrored, part in zip(back, change, strict=True)),
    )
    return Finding("the channels add up", gap[0], _NATS, gap[1])


def channels_by_definition(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """dH, dh - ds mean(Hc) and (1 - mean(s)) dHc, each against its own loop."""
    wanted = definitions.entropy_change(x, y, sink_mask, visible)
    gap = _worst(implementation.entropy_change(x, y, sink_mask, visible), wanted, 1.0)
    return Finding("the channels by definition", gap[0], _NATS, gap[1])


def channels_from_scores(
    implementation: Implementation, x: Any, y: Any, sink_mask: Any, visible: Any = None
) -> Finding:
    """Scores give the change of the entropy of their softmax rows, and both channels of it."""
    rows = softmax(x, visible), softmax(y, visible)
    wanted = definitions.entropy_change(*rows, sink_mask, visible)
    found = implementation.entropy_change_from_scores(x, y, sink_mask, visible)
    gap = _worst(found, wanted, 1.0)
    return Finding("the channels from scores", gap[0], _NATS, gap[1])


def softmax(scores: Any, visible: Any = None) -> Array:
    """Rows of scores over their visible keys, zeros at the others and in a row that sees nothing."""
    given = np.asarray(scores).astype(widest(scores))
    seen = np.broadcast_to(True if visible is None else np.asarray(visible, dtype=bool), given.shape)
    top = np.where(seen, given, -np.inf).max(axis=-1, keepdims=True, initial=-1e300)
    weights = np.where(seen, np.exp(np.where(seen, given - top, 0)), 0)
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def _worst(found: Any, wanted: Any, size: Any) -> tuple[float, str]:
    """The largest deviation of the parts of a split, each beside the part it should be."""
    return max(deviation(part, true, size) for part, true in zip(found, wanted, strict=True))


def _squared_norms(x: Any, y: Any, sink_mask: Any, visible: Any) -> Array:
    """‖clr x‖² + ‖clr y‖² over the kept parts, (..., query); one where it is smaller or undefined."""
    norms = sum(definitions.squared_norm(rows, sink_mask, visible) for rows in (x, y))
    return np.fmax(norms, 1)
