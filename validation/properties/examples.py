"""Small cases that can be worked out by hand, degenerate rows among them."""

from __future__ import annotations

import numpy as np

from validation.properties.finding import Finding, deviation
from validation.properties.implementation import Implementation

__all__ = ["row_examples", "word_example"]

_NAN, _INF = float("nan"), float("inf")
# row, norms, sink keys -> share of attention, share of weighted rows, r
_ROWS = (
    ((0.95, 0.05), (0.6, 1.0), (0,), 0.95, 0.57 / 0.62, 0.6),
    ((0.9, 0.08, 0.02), (1.0, 2.0, 3.0), (0,), 0.9, 0.9 / 1.12, 0.1 / 0.22),
    ((0.25, 0.25, 0.5), (4.0, 2.0, 1.0), (0, 1), 0.5, 0.75, 3.0),
    ((1.0, 0.0, 0.0), (2.0, 1.0, 1.0), (0,), 1.0, 1.0, _NAN),  # no content mass
    ((0.0, 0.5, 0.5), (2.0, 1.0, 1.0), (0,), 0.0, 0.0, _NAN),  # no sink mass
    ((0.3, 0.7), (1.0, 2.0), (), 0.0, 0.0, _NAN),  # no sink
    ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0,), _NAN, _NAN, _NAN),  # no mass at all
    ((0.5, 0.5), (1.0, 0.0), (0,), 0.5, 1.0, _INF),  # content of zero norm
    ((0.5, 0.5), (0.0, 1.0), (0,), 0.5, 0.0, 0.0),  # sink of zero norm
    ((0.5, 0.5), (0.0, 0.0), (0,), 0.5, _NAN, _NAN),  # nothing is handed on
    ((1.0,), (3.0,), (0,), 1.0, 1.0, _NAN),  # one key
)


def row_examples(implementation: Implementation) -> Finding:
    """Share, weighted share and r of rows that can be done by hand."""
    found, wanted = [], []
    for row, norm, sinks, *answers in _ROWS:
        attention = np.array([row])
        sink_mask = np.isin(np.arange(len(row)), sinks)
        found.append(
            [
                implementation.sink_share(attention, sink_mask)[0],
                implementation.sink_share(attention, sink_mask, np.array(norm))[0],
                implementation.norm_odds_ratio(attention, sink_mask, np.array(norm))[0],
            ]
        )
        wanted.append(answers)
    gap = deviation(found, wanted)
    return Finding("rows by hand", gap[0], implementation.rounding(3), gap[1])


def word_example(implementation: Implementation) -> Finding:
    """Four pieces in words {0}, {1, 2}, {3}: keys summed, queries averaged."""
    pieces = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.7, 0.1, 0.1, 0.1]]
    words = [[0.1, 0.5, 0.4], [0.325, 0.5, 0.175], [0.7, 0.2, 0.1]]
    gap = deviation(implementation.merge_words(np.array(pieces), [(0,), (1, 2), (3,)]), words)
    return Finding("words by hand", gap[0], implementation.rounding(4), gap[1])
