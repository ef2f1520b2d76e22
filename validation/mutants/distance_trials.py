"""The checks that mutants of compositions, distances and verdicts are put to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from oracle import CONVENTIONS, METRICS
from validation import properties as laws
from validation.mutants.kinds import Trial
from validation.mutants.subjects import Subjects
from validation.properties import Finding, Implementation

__all__ = ["DISTANCE_TRIALS"]

_ALL = tuple((m, c) for m in METRICS for c in CONVENTIONS if (m, c) != ("aitchison_sink", "drop"))
_CARRIED = ("jsd", "root_jsd", "hellinger", "l1", "entropy")
_METRICS = tuple((m, c) for m, c in _ALL if m not in ("cosine", "jsd"))
_POOLED = (("root_jsd", "keep"), ("entropy", "drop"))
_DELTA = 1e-4

Law = Callable[[Implementation, Subjects], Finding]


def _each(law: Callable[..., Finding], over: Iterable[tuple[str, ...]]) -> Law:
    """The worst finding of law(implementation, subjects, *names), names a metric and maybe a convention."""

    def run(implementation: Implementation, subjects: Subjects) -> Finding:
        findings = [law(implementation, subjects, *names) for names in over]
        return max(findings, key=lambda finding: (not finding.ok, finding.error / finding.bound))

    return run


def _on_rows(law: Callable[..., Finding]) -> Callable[..., Finding]:
    """law(implementation, x, y, sink_mask, metric, convention, visible) on the seeded rows."""

    def run(implementation: Implementation, subjects: Subjects, metric: str, convention: str) -> Finding:
        pair = subjects.pair
        return law(implementation, *pair.rows[:2], pair.sink_mask, metric, convention, pair.visible)

    return run


def _triangle(implementation: Implementation, subjects: Subjects, metric: str, convention: str) -> Finding:
    pair = subjects.pair.between()
    return laws.triangle_inequality(
        implementation, *pair.rows, pair.sink_mask, metric, convention, pair.visible
    )


def _equal_shares(implementation: Implementation, subjects: Subjects, metric: str) -> Finding:
    pair = subjects.pair.equal_shares()
    return laws.equal_shares_scale_keep(implementation, *pair.rows[:2], pair.sink_mask, metric, pair.visible)


def _without_sink(implementation: Implementation, subjects: Subjects, metric: str) -> Finding:
    pair = subjects.pair
    return laws.keep_is_drop_without_sink(
        implementation, *pair.rows[:2], pair.sink_mask, metric, pair.visible
    )


def _key_order(implementation: Implementation, subjects: Subjects, metric: str, convention: str) -> Finding:
    pair = subjects.pair
    order = np.roll(np.arange(len(pair.sink_mask)), 5)
    return laws.key_order_changes_no_distance(
        implementation, *pair.rows[:2], pair.sink_mask, metric, convention, order, pair.visible
    )


def _padding(implementation: Implementation, subjects: Subjects, metric: str, convention: str) -> Finding:
    pair = subjects.pair.real()
    return laws.padding_changes_no_distance(
        implementation, *pair.rows[:2], pair.sink_mask, metric, convention, 2
    )


def _heads(implementation: Implementation, subjects: Subjects, metric: str, convention: str) -> Finding:
    texts = subjects.head_texts
    return laws.heads_are_means_of_rows(
        implementation, texts.rows, texts.sink_mask, metric, convention, texts.visible, texts.queries
    )


def _some_texts(law: Callable[..., Finding], chosen: tuple[int, ...]) -> Callable[..., Finding]:
    """A law of texts in another order, or of some of them."""

    def run(implementation: Implementation, subjects: Subjects, metric: str, convention: str) -> Finding:
        rows, sinks, visible, queries = subjects.head_texts
        return law(implementation, rows, sinks, metric, convention, visible, queries, chosen)

    return run


def _on_pair(law: Callable[..., Finding]) -> Law:
    """law(implementation, x, y, sink_mask, visible) on the seeded rows."""
    return lambda i, s: law(i, *s.pair.rows[:2], s.pair.sink_mask, s.pair.visible)


def _on_scores(law: Callable[..., Finding], count: int) -> Law:
    """law(implementation, scores, ..., sink_mask, visible) on the seeded scores."""
    return lambda i, s: law(i, *s.pair.scores[:count], s.pair.sink_mask, s.pair.visible)


def _on_row(law: Callable[..., Finding]) -> Law:
    return lambda i, s: law(i, s.pair.rows[0], s.pair.sink_mask, s.pair.visible)


def _replaced(implementation: Implementation, subjects: Subjects) -> Finding:
    rows = subjects.pair.rows[0]
    few = np.where(rows < 0.02, 0, rows)
    few /= np.where(subjects.pair.visible, few, 0).sum(axis=-1, keepdims=True)
    return laws.replaced_zeros_keep_ratios(
        implementation, few, subjects.pair.sink_mask, _DELTA, subjects.pair.visible
    )


DISTANCE_TRIALS = (
    Trial("clr by loops", lambda i, s: laws.centred_log_ratios(i, s.pair.rows[0], s.pair.visible)),
    Trial("split is orthogonal", _on_pair(laws.split_is_orthogonal)),
    Trial("split by loops", _on_pair(laws.split_by_definition)),
    Trial("split from scores", _on_scores(laws.aitchison_from_scores, 2)),
    Trial("zeros replaced by loops", _replaced),
    Trial("entropy's chain rule", _on_row(laws.entropy_chain_rule)),
    Trial("entropy by loops", _on_row(laws.entropy_by_definition)),
    Trial("entropy from scores", _on_scores(laws.entropy_from_scores, 1)),
    Trial("channels add up", _on_pair(laws.channels_add_up)),
    Trial("channels by loops", _on_pair(laws.channels_by_definition)),
    Trial("channels from scores", _on_scores(laws.channels_from_scores, 2)),
    Trial("distances by loops", _each(_on_rows(laws.distance_by_definition), _ALL)),
    Trial("distances are symmetric", _each(_on_rows(laws.distance_is_symmetric), _ALL)),
    Trial("triangle inequality", _each(_triangle, _METRICS)),
    Trial("equal shares scale keep", _each(_equal_shares, [(metric,) for metric in _CARRIED])),
    Trial("keep is drop, no sink", _each(_without_sink, [(metric,) for metric in METRICS[:-1]])),
    Trial("key order, distances", _each(_key_order, _ALL)),
    Trial("padding, distances", _each(_padding, _ALL)),
    Trial("heads by loops", _each(_heads, _POOLED)),
    Trial("chosen texts by loops", _each(_some_texts(laws.chosen_texts_by_loops, (0, 2)), _POOLED)),
    Trial("text order is free", _each(_some_texts(laws.text_order_changes_no_sum, (2, 0, 1)), _POOLED)),
    Trial(
        "clark2019 by loops",
        lambda i, s: laws.preset_by_definition(
            i, s.head_texts.rows, s.head_texts.visible, s.head_texts.queries
        ),
    ),
    Trial("flips by brute force", lambda i, s: laws.flips_by_brute_force(i, *s.matrices)),
    Trial(
        "flips within groups",
        lambda i, s: laws.flips_by_brute_force(i, *s.matrices, np.arange(len(s.matrices[0])) % 2),
    ),
    Trial("flips with margins", lambda i, s: laws.flips_by_brute_force(i, *s.matrices, None, 0.3)),
    Trial("flips are symmetric", lambda i, s: laws.flips_are_symmetric(i, *s.matrices)),
    Trial("no flips with itself", lambda i, s: laws.no_flips_with_itself(i, s.matrices[1])),
    Trial(
        "monotone maps: same flips", lambda i, s: laws.monotone_changes_no_verdict(i, *s.distinct_matrices)
    ),
    Trial("a reversal flips all", lambda i, s: laws.flips_of_a_reversal(i, s.matrices[0])),
    Trial("arccos by loops", lambda i, s: laws.arccos_by_definition(i, *s.distinct_matrices)),
)
"""In the order of their mutants."""
