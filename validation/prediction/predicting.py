"""`predict`: the frozen prediction of a model's flip rates, beside what is then observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import oracle
from oracle._checks import reject
from oracle.distances import CONVENTIONS
from oracle.model import Model
from oracle.trace import Trace
from validation.audit.context import describe
from validation.audit.distances import DistanceGatherer, Distances
from validation.audit.halves import text_halves
from validation.audit.rule import Floor
from validation.choices import parse_layers
from validation.engines import load_engine
from validation.gathering import gather
from validation.headline import row_notes
from validation.prediction.frozen import Predictor, load_predictor
from validation.prediction.judging import Judged, judge_rate, predict_rate
from validation.prediction.statistics import Statistics, describe_heads, log_content_keys
from validation.prediction.tables import closing_note, predictor_notes, rate_tables, statistics_table
from validation.progress import Progress, silent
from validation.report.document import Note, Part
from validation.table import MIN_CONTENT_KEYS, content_queries

__all__ = ["Predicted", "judge_distances", "predict"]


class Predicted(NamedTuple):
    """The report of a prediction, and what it is made from."""

    parts: tuple[Part, ...]
    statistics: Statistics
    judged: tuple[Judged, ...]


def predict(
    model: Model,
    texts: str | Sequence[str],
    *,
    sink: Any = "special",
    layers: str | Sequence[int] | None = None,
    truncate: bool = False,
    engine: str = "fastpath",
    seed: int = 0,
    predictor: Predictor | None = None,
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> Predicted:
    """Predict how many verdicts about heads of `model` flip between keep and drop, then look.

    `sink`, `layers`, `truncate` and `engine` are those of `validation.audit.audit`, and so are the rows that
    count. `seed` draws the halves of the texts; `predictor` is the frozen one unless another is given.
    InputError where no text has a content query, and for a model whose layers see different keys.
    """
    frozen = load_predictor() if predictor is None else predictor
    measures = load_engine(engine, on_compile)
    chosen = parse_layers(layers, model.config.n_layers)
    gatherer = DistanceGatherer(measures, chosen, metrics=tuple(frozen.metrics))
    keys = []

    def add(text: int, trace: Trace) -> None:
        if trace.visible.ndim != 2:
            reject(
                "model",
                expected="layers that all see the same keys",
                found="windows that differ by layer",
                todo="Take another model: the statistics of its heads would be of different rows.",
            )
        gatherer.add(text, trace.attention, trace.sink_mask, trace.visible, trace.scores)
        queries, _ = content_queries(trace.sink_mask, trace.visible)
        keys.append(log_content_keys(trace.sink_mask, trace.visible[queries]))

    gathered = gather(
        model,
        [texts] if isinstance(texts, str) else texts,
        sink=sink,
        weightings=("attention",),
        layers=chosen,
        truncate=truncate,
        progress=progress,
        each=add,
        keep=("scores",),
        measures=measures,
    )
    distances = gatherer.result()
    if distances is None:
        reject(
            "texts",
            expected="a text with a token beside the sinks",
            found="no content query in any",
            todo="Give a text with words, or another sink set.",
        )
    log_keys = float(np.concatenate(keys).mean())
    statistics = describe_heads(distances.sink_share, distances.content_entropy, log_keys)
    judged = judge_distances(frozen, statistics, distances, measures.verdict_flips, seed, progress)
    words = describe(gathered, distances.rows).words
    parts: tuple[Part, ...] = (
        *gathered.warnings,
        gathered.sinks.note(),
        *row_notes(gathered.table, "content", MIN_CONTENT_KEYS),
        *gathered.notes,
        gathered.sinks.undeclared_part(),
        *predictor_notes(frozen, model.sha256 in frozen.models),
        statistics_table(frozen, statistics, words),
        Note("section", "Verdicts that flip when the sink is dropped: predicted, then observed"),
        *rate_tables(judged, words),
        closing_note(judged, model.name, words, model.sha256 in frozen.models),
    )
    return Predicted(parts, statistics, judged)


def judge_distances(
    predictor: Predictor,
    statistics: Statistics,
    distances: Distances,
    flips: Callable[..., oracle.VerdictFlips] = oracle.verdict_flips,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Judged, ...]:
    """Predict every metric from `statistics`, then compare with `distances`; `flips` is a `verdict_flips`."""
    halves = text_halves(distances.blocks, seed=seed)
    found = []
    for done, metric in enumerate(predictor.metrics):
        progress("verdicts", done, len(predictor.metrics))
        keep, drop = (distances.mean(metric, convention) for convention in CONVENTIONS)
        seen = flips(keep, drop)
        floors = []
        for convention in CONVENTIONS:
            pairs = [[distances.mean(metric, convention, half) for half in split] for split in halves]
            floors.append(Floor(np.array([flips(first, second).rate for first, second in pairs])))
        prediction = predict_rate(predictor, metric, statistics, floors[0], seen.triples)
        laws = oracle.gaussian_flip_rate(keep, drop)
        law = float(np.nanmean(laws)) if not np.isnan(laws).all() else float("nan")
        verdict = judge_rate(prediction, seen.rate)
        both = (floors[0], floors[1])
        found.append(Judged(metric, prediction, seen.rate, both, law, seen.triples, verdict))
    progress("verdicts", len(predictor.metrics), len(predictor.metrics))
    return tuple(found)
