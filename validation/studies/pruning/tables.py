"""The tables of the pruning study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle import Trace
from validation.report.document import Column, Table
from validation.studies.pruning.choosing import Choice, layer_counts
from validation.studies.pruning.criteria import CRITERIA
from validation.studies.pruning.results import Results

__all__ = ["tables", "text_table"]

_MANY = "+"  # more heads of a layer than one digit says


def text_table(traces: Sequence[Trace], results: Results) -> Table:
    """The three texts: what each is for, its length, and the perplexity of the whole model."""
    columns = (
        Column("text", "text"),
        Column("T", "T", "d"),
        Column("predicted", "tokens predicted", "d"),
        Column("perplexity", "perplexity, no head cut", ",.4f"),
    )
    rows: list[tuple[Any, ...]] = [("statistics of the heads", len(traces[0].token_ids), None, None)]
    for text, trace in enumerate(traces[1:]):
        count = len(trace.token_ids)
        rows.append((f"evaluation {text + 1}", count, count - 1, float(np.exp(results.nll[text, ()]))))
    return Table("texts", "The texts", columns, tuple(rows))


def tables(results: Results) -> tuple[Table, ...]:
    """Statistics, ratios and profiles by budget, channels; for JSON alone every head and every trial."""
    return (
        _criteria(results),
        *(
            table(results, budget, number)
            for number, budget in enumerate(results.counts)
            for table in (_ratios, _profile)
        ),
        _channels(results),
        _heads(results),
        _trials(results),
    )


def _criteria(results: Results) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("least", "least", ".4f"),
        Column("median", "median", ".4f"),
        Column("most", "most", ".4f"),
        Column("between_layers", "between layers", ".1%"),
        Column("undefined", "heads without", "d"),
    )
    rows = []
    for name, values in results.statistics.values.items():
        known = values[~np.isnan(values)]
        rows.append(
            (
                CRITERIA[name],
                *(float(f(known)) if known.size else float("nan") for f in (np.min, np.median, np.max)),
                _between_layers(values),
                values.size - known.size,
            )
        )
    n_layers, n_heads = results.shape
    counted = sorted(set(results.statistics.rows))
    return Table(
        "criteria",
        f"What heads are chosen by, over {n_layers * n_heads} heads ({n_layers} layers of {n_heads})",
        columns,
        tuple(rows),
        (
            f"each a mean over {' to '.join(map(str, counted))} rows of the first text; entropies in nats",
            "norm-weighted: by the norm of the value vector; content contribution: ‖sum of a·f over the "
            "content‖ over the median norm of what enters the layer",
            "between layers: the part of the variance over heads that lies between the layers' means",
        ),
    )


def _ratios(results: Results, budget: float, number: int) -> Table:
    texts = range(results.texts)
    columns = (
        Column("heads_by", "heads cut"),
        *(Column(f"text_{text + 1}", f"text {text + 1}", ",.2f") for text in texts),
        Column("matched_median", "matched: median", ",.2f"),
        Column("matched_least", "least", ",.2f"),
        Column("matched_most", "most", ",.2f"),
        Column("beyond_layers", "text 1 over median", ",.2f"),
        Column("below", "draws below"),
    )
    uniform = results.uniform(budget)
    rows: list[tuple[Any, ...]] = [
        (f"uniform draws, {name}", *map(float, f(uniform, axis=1)), None, None, None, None, None)
        for name, f in (("median", np.median), ("least", np.min), ("most", np.max))
    ]
    for choice in results.choices:
        own, matched = results.chosen(budget, choice), results.matched(budget, choice)
        spread = (float(np.median(matched)), float(matched.min()), float(matched.max()))
        below = f"{(matched < own[0]).sum()} of {len(matched)}"
        rows.append((choice.label, *map(float, own), *spread, results.beyond_layers(budget, choice), below))
    total, cut, draws = results.shape[0] * results.shape[1], results.counts[budget], uniform.shape[1]
    return Table(
        f"pruned_{number}",
        f"{100 * budget:.4g}% of the heads cut ({cut} of {total}): perplexity over that of the whole model",
        columns,
        tuple(rows),
        (
            f"matched: {draws} random draws with as many heads in each layer as the choice, on text 1; draws "
            "below: those with a smaller ratio than the choice",
        ),
    )


def _channels(results: Results) -> Table:
    columns = (
        Column("budget", "budget", ".4g"),
        Column("end", "cut from"),
        Column("content", "content entropy", ",.2f"),
        Column("kept", "entropy, sink kept", ",.2f"),
        Column("quotient", "one over the other", ",.2f"),
        Column("matched_quotient", "of matched medians", ",.2f"),
    )
    rows = []
    for budget in results.counts:
        for highest in (True, False):
            pair = Choice("content_entropy", highest), Choice("entropy", highest)
            own = [float(results.chosen(budget, choice)[0]) for choice in pair]
            layers = [float(np.median(results.matched(budget, choice))) for choice in pair]
            end = "highest" if highest else "lowest"
            rows.append((budget, end, *own, own[0] / own[1], layers[0] / layers[1]))
    note = "of matched medians: the same quotient of the medians of their layer-matched draws"
    return Table("channels", "The two conventions of the entropy, on text 1", columns, tuple(rows), (note,))


def _profile(results: Results, budget: float, number: int) -> Table:
    columns = (
        Column("choice", "choice"),
        Column("heads_by_layer", "heads in each layer, from the first"),
        Column("layers", "layers", "d"),
        Column("shared", "shared", ".0%"),
    )
    rows = []
    for choice in results.choices:
        counts = layer_counts(results.heads(budget, choice), results.shape)
        drawn = "".join("." if not n else str(n) if n < 10 else _MANY for n in counts)
        touched = sum(count > 0 for count in counts)
        rows.append((choice.label, drawn, touched, results.shared(budget, choice)))
    notes = ["shared: the part of its heads that a layer-matched draw cuts too, on average"]
    if results.shape[1] > 9:
        notes.append(f"{_MANY}: more than nine heads")
    title = f"Where they stand, {100 * budget:.4g}% of the heads"
    return Table(f"profile_{number}", title, columns, tuple(rows), tuple(notes))


def _heads(results: Results) -> Table:
    names = tuple(results.statistics.values)
    columns = (Column("layer", "layer", "d"), Column("head", "head", "d"), *(Column(n, n) for n in names))
    rows = tuple(
        (layer, head, *(float(results.statistics.values[name][layer, head]) for name in names))
        for layer, head in np.ndindex(results.shape)
    )
    return Table("heads", "Statistics of every head", columns, rows, shown=False)


def _trials(results: Results) -> Table:
    columns = (
        Column("budget", "budget"),
        Column("kind", "kind"),
        Column("choice", "choice"),
        Column("draw", "draw"),
        Column("text", "text"),
        Column("nll", "nats a token"),
        Column("ratio", "ratio"),
        Column("heads", "heads"),
    )
    rows = []
    for trial in results.trials:
        kind = "uniform" if trial.choice is None else "choice" if trial.draw is None else "matched"
        key = None if trial.choice is None else trial.choice.key
        nll = results.nll[trial.text, trial.heads]
        heads = " ".join(f"{head // results.shape[1]}.{head % results.shape[1]}" for head in trial.heads)
        rows.append((trial.budget, kind, key, trial.draw, trial.text + 1, nll, results.ratio(trial), heads))
    return Table(
        "trials", "Every set of heads that was cut, as layer.head", columns, tuple(rows), shown=False
    )


def _between_layers(values: Any) -> float:
    """The part of the variance of (layer, head) values that lies between layers; NaN heads are left out."""
    known = ~np.isnan(values)
    if not known.any():
        return float("nan")
    counts = known.sum(axis=1)
    means = np.where(known, values, 0).sum(axis=1) / np.maximum(counts, 1)
    total = np.var(values[known])
    between = (counts * (means - values[known].mean()) ** 2).sum() / counts.sum()
    return float(between / total) if total else float("nan")
