"""What each change of the scores must do to each distance, written down with its proof before any run."""

from __future__ import annotations

from typing import NamedTuple

from oracle.distances import CONVENTIONS, METRICS

__all__ = ["CHANGES", "EXPECTATIONS", "SINKS", "Expectation", "expectation"]

SINKS = ("one", "several")
"""Sink sets: a single key, or two and more that make one part."""

CHANGES = {
    "constant": "a constant added to the scores of a row, another one in each of the two rows",
    "sink score": "another score for each sink key, not the same in the two rows",
    "offset": "one offset for each key, added to both rows",
    "permutation": "the keys in another order, the same in both rows",
    "temperature": "the scores of both rows multiplied by t; is there a power p with d -> t^p d?",
}
"""What is done to the scores of two heads at one query."""

_OTHERS = tuple(metric for metric in METRICS if not metric.startswith("aitchison"))
_SQUARED = ("aitchison", "aitchison_sink")


class Expectation(NamedTuple):
    """For some cells of the table: whether the distance stays (under "temperature": scales), and why.

    `power` is p of d -> t^p d, zero for all other changes.
    """

    name: str
    change: str
    sinks: tuple[str, ...]
    metrics: tuple[str, ...]
    conventions: tuple[str, ...]
    holds: bool
    reason: str
    power: int = 0


EXPECTATIONS = (
    Expectation(
        "constant",
        "constant",
        SINKS,
        METRICS,
        CONVENTIONS,
        True,
        "The softmax divides a common factor out: no row moves.",
    ),
    Expectation(
        "sink score, dropped",
        "sink score",
        SINKS,
        METRICS,
        ("drop",),
        True,
        "The ratios of content weights do not hold the sink's score, and drop closes them.",
    ),
    Expectation(
        "sink score, kept",
        "sink score",
        SINKS,
        METRICS,
        ("keep",),
        False,
        "The sink's share, and its log-ratio to the content, grow with its score.",
    ),
    Expectation(
        "offset, content",
        "offset",
        SINKS,
        ("aitchison",),
        ("drop",),
        True,
        "ln x and ln y move by one and the same vector, which leaves clr x - clr y.",
    ),
    Expectation(
        "offset, one sink",
        "offset",
        ("one",),
        _SQUARED,
        ("keep",),
        True,
        "So does the score of a single sink key: every log-ratio moves alike in both rows.",
    ),
    Expectation(
        "offset, several sinks",
        "offset",
        ("several",),
        _SQUARED,
        ("keep",),
        False,
        "The sink part's score is a log-sum-exp, which offsets move by more in one row than in another.",
    ),
    Expectation(
        "offset, weights",
        "offset",
        SINKS,
        _OTHERS,
        CONVENTIONS,
        False,
        "These read the weights themselves, and an offset gives the mass to other keys.",
    ),
    Expectation(
        "permutation",
        "permutation",
        SINKS,
        METRICS,
        CONVENTIONS,
        True,
        "Every distance is made of sums over parts, in any order.",
    ),
    Expectation(
        "temperature, content",
        "temperature",
        SINKS,
        ("aitchison",),
        ("drop",),
        True,
        "ln x and ln y are multiplied by t, up to a constant, and so d² by t².",
        2,
    ),
    Expectation(
        "temperature, one sink",
        "temperature",
        ("one",),
        _SQUARED,
        ("keep",),
        True,
        "The log-ratio of a single sink key is multiplied by t as well.",
        2,
    ),
    Expectation(
        "temperature, several sinks",
        "temperature",
        ("several",),
        _SQUARED,
        ("keep",),
        False,
        "The log-sum-exp of t z is not t times that of z.",
    ),
    Expectation(
        "temperature, weights",
        "temperature",
        SINKS,
        _OTHERS,
        CONVENTIONS,
        False,
        "These are bounded, or curved in t: no power of t serves all pairs of rows.",
    ),
)
"""One law after another; each cell of the table falls under exactly one."""


def expectation(change: str, sinks: str, metric: str, convention: str) -> Expectation:
    """The one that speaks of a cell."""
    (found,) = (
        law
        for law in EXPECTATIONS
        if law.change == change
        and sinks in law.sinks
        and metric in law.metrics
        and convention in law.conventions
    )
    return found
