"""The checks that mutants are put to: laws, closed forms and hand-done numbers, and PyTorch for the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle import Unavailable
from validation import properties as laws
from validation.mutants.causal_trials import CAUSAL_TRIALS
from validation.mutants.distance_trials import DISTANCE_TRIALS
from validation.mutants.kinds import Trial
from validation.mutants.of_silencing import SILENCING_TRIAL
from validation.mutants.subjects import NO_SINK, Subjects
from validation.properties import Finding, Implementation
from validation.tally import bounds_for, compare_stages

__all__ = ["TRIALS"]

_UNMOVED = 0.01


def _norms_matter(implementation: Implementation, subjects: Subjects) -> Finding:
    """On a real model hardly any row has the same share, to the last digit, with and without norms."""
    if not any(trace.sink_mask.any() for trace in subjects.traces):
        raise Unavailable(NO_SINK)
    same, total = 0, 0
    for trace in subjects.traces:
        plain = implementation.sink_share(trace.attention, trace.sink_mask)
        weighted = implementation.sink_share(trace.attention, trace.sink_mask, trace.value_norm)
        inside = (plain > 0) & (plain < 1)
        same, total = same + int((plain == weighted)[inside].sum()), total + int(inside.sum())
    return Finding("rows that norms leave unmoved", same / total if total else float("inf"), _UNMOVED)


def _rows_close(implementation: Implementation, subjects: Subjects) -> Finding:
    """float16 rows sum to one only roughly, and must be closed."""
    return laws.rows_sum_to_one(
        implementation, subjects.rows.attention.astype(np.float16), subjects.rows.visible
    )


def _stage(name: str) -> Callable[[Implementation, Subjects], Finding]:
    """One stage against PyTorch on real tokens, as `diff` compares it; the error is in units of its bound."""

    def run(implementation: Implementation, subjects: Subjects) -> Finding:
        model, ids, mask, types, stages = subjects.judged
        trace = implementation.forward(model, ids, mask=mask, token_types=types)
        found = trace.hidden_states[0] if name == "embeddings" else getattr(trace, name)
        bound = bounds_for("oracle-float64", "torch-float64")[name]
        worst, place = 0.0, ""
        for _, layer, result in compare_stages(stages, {name: found}, mask, {name: bound}):
            error = float("inf") if np.isnan(result.used) else result.used * bound.limit
            if error > worst:
                worst, place = error, result.message if layer is None else f"layer {layer}, {result.message}"
        return Finding(f"{name} against PyTorch", worst, bound.limit, place)

    return run


def _padding(left: bool) -> Callable[[Implementation, Subjects], Finding]:
    def run(implementation: Implementation, subjects: Subjects) -> Finding:
        ids = np.array(subjects.ids)[subjects.mask]
        padding = len(subjects.mask) - len(ids)
        return laws.padded_run_is_plain_run(implementation, subjects.small, ids, padding, left)

    return run


_ALL = (
    Trial("rows by hand", lambda i, s: laws.row_examples(i)),
    Trial("words by hand", lambda i, s: laws.word_example(i)),
    Trial("rows sum to one", _rows_close),
    Trial("share in [0, 1]", lambda i, s: laws.share_in_range(i, *s.rows)),
    Trial("shares by loops", lambda i, s: laws.share_by_definition(i, *s.rows)),
    Trial("share of weights", lambda i, s: laws.share_of_weights(i, *s.rows)),
    Trial("odds law", lambda i, s: laws.odds_law(i, *s.rows)),
    Trial("r > 1 iff share grows", lambda i, s: laws.ratio_decides_direction(i, *s.rows)),
    Trial("norm scale is free", lambda i, s: laws.norm_scale_is_free(i, *s.rows[:3], 3.7, s.rows.visible)),
    Trial(
        "unit norms: same bits",
        lambda i, s: laws.unit_norms_are_attention(i, s.rows.attention, s.rows.sink_mask, s.rows.visible),
    ),
    Trial(
        "key order is free",
        lambda i, s: laws.key_order_is_free(
            i, *s.rows[:3], np.roll(np.arange(len(s.mask)), 5), s.rows.visible
        ),
    ),
    Trial("padding is free", lambda i, s: laws.padding_is_free(i, *s.rows.real(), 2)),
    Trial("ratio by loops", lambda i, s: laws.ratio_by_definition(i, s.rows.norm, *s.rows[1::2])),
    Trial("‖a f‖ = a ‖f‖", lambda i, s: laws.norm_commutes_with_weight(i, *s.heads)),
    Trial("head sum by loops", lambda i, s: laws.head_sum_by_definition(i, *s.heads)),
    Trial(
        "words by loops",
        lambda i, s: laws.words_by_definition(
            i, s.words.weights["value_norm"], [u.tokens for u in s.words.units]
        ),
    ),
    Trial("opened rows by loops", lambda i, s: laws.rows_opened_by_definition(i, *s.words)),
    Trial(
        "‖v‖ by loops",
        lambda i, s: laws.value_norm_by_definition(i, s.small, s.ids),
    ),
    Trial(
        "‖v W_O‖ by loops",
        lambda i, s: laws.transformed_norm_by_definition(i, s.small, s.ids),
    ),
    Trial("norms move real rows", _norms_matter),
    Trial("rows of a trace", lambda i, s: laws.rows_of_a_trace(i, s.small, s.ids, s.mask)),
    Trial("padding, right", _padding(left=False)),
    Trial("padding, left", _padding(left=True)),
    Trial("PyTorch: embeddings", _stage("embeddings")),
    Trial("PyTorch: scores", _stage("scores")),
    Trial("PyTorch: rows", _stage("attention")),
    Trial("PyTorch: values", _stage("values")),
    Trial("PyTorch: states", _stage("hidden_states")),
    *DISTANCE_TRIALS,
    *CAUSAL_TRIALS,
    SILENCING_TRIAL,
)

TRIALS = {trial.name: trial for trial in _ALL}
"""Every trial by its name."""
