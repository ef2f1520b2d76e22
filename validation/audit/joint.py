"""Audits of several models on the same texts beside each other: one map, and a sentence for each metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from validation.audit.auditing import Audit
from validation.audit.context import Context
from validation.audit.flips import ALL, Analysis, Scope, together
from validation.audit.rule import CANNOT_SAY, DEPENDS, SAFE, SINK_ALONE, highest, judge
from validation.audit.safety import cell
from validation.headline import layer_words
from validation.metric_names import metric_name
from validation.report.document import Column, Note, Part, Table
from validation.wording import counted, percent

__all__ = ["Compared", "ModelMap", "joint_parts", "map_model"]

_GROUPS = 3  # of layers: the first third, the middle, the last
_RULE = (
    "over models: a metric depends where it does in any of them, it is safe where it is in every one, and "
    "otherwise nothing is concluded of it"
)


class Compared(NamedTuple):
    """Keep against drop for one kind of triple: the rate, the upper end of the floors, and the verdict."""

    flips: float
    floor: float
    verdict: str
    triples: int


class ModelMap(NamedTuple):
    """What is kept of the audit of one model; small, whatever the model."""

    name: str
    context: Context
    whole: Mapping[str, Compared]  # by metric
    groups: Mapping[tuple[int, ...], Mapping[str, Compared]]  # by layers, by metric


def map_model(found: Audit, name: str) -> ModelMap:
    """The whole and each third of the layers; triples of a third are those within its layers, one by one."""
    analysis = found.analysis
    layers = sorted(set(analysis.distances.layers.tolist()))
    thirds = [tuple(part.tolist()) for part in np.array_split(layers, min(_GROUPS, len(layers)))]
    return ModelMap(
        name,
        found.context,
        {metric: _compared(analysis, metric, ALL) for metric in analysis.flips},
        {third: {metric: _pooled(analysis, metric, third) for metric in analysis.flips} for third in thirds},
    )


def joint_parts(maps: Sequence[ModelMap]) -> tuple[Part, ...]:
    """The section at the end: model by metric, thirds of the layers, and the sentences."""
    metrics = list(dict.fromkeys(metric for one in maps for metric in one.whole))
    contexts = [f"{one.name}: {one.context.words}" for one in maps]
    intro = (
        "each cell: flips between keep and drop, then the upper end of the floors, in per cent; ≤ safe, > "
        "depends, ? cannot say, 'sink' heads differ in their sink alone, by the rule above",
        _RULE,
    )
    names = [Column(metric, metric_name(metric)) for metric in metrics]
    whole = tuple((one.name, *(_shown(one.whole.get(metric)) for metric in metrics)) for one in maps)
    groups = tuple(
        (one.name, layer_words(third), *(_shown(found.get(metric)) for metric in metrics))
        for one in maps
        for third, found in one.groups.items()
    )
    model, layers = Column("model", "model"), Column("layers", "layers")
    within = (
        "triples within a layer: those of a group's layers are counted together, in its floors split by split"
    )
    return (
        Note("section", "All models together"),
        Table("joint_map", "Models by metric, all triples", (model, *names), whole, tuple(contexts), intro),
        Table(
            "joint_layers",
            "Groups of layers by metric, within each model",
            (model, layers, *names),
            groups,
            (within,),
        ),
        _listed(maps),
        *(Note("joint_closing", _sentence(maps, metric)) for metric in metrics),
    )


def _compared(analysis: Analysis, metric: str, scope: Scope) -> Compared:
    found = analysis.flips[metric][scope]
    verdict = analysis.verdict(metric, scope)
    return Compared(found.rate, highest(analysis.both_floors(metric, scope)), verdict, found.triples)


def _pooled(analysis: Analysis, metric: str, layers: Sequence[int]) -> Compared:
    """The layers of a group together, flips and floors alike; one without triples says nothing."""
    flips = together([analysis.flips[metric][layer] for layer in layers])
    floors = analysis.pooled_floors(metric, layers)
    verdict = judge(flips, floors, analysis.vanishes(metric, layers))
    return Compared(flips.rate, highest(floors), verdict, flips.triples)


def _shown(found: Compared | None) -> str | None:
    return None if found is None else cell(found.verdict, found.flips, found.floor)


def _listed(maps: Sequence[ModelMap]) -> Table:
    """Every number, for JSON."""
    columns = tuple(
        Column(key, key) for key in ("model", "metric", "layers", "verdict", "flips", "floor", "triples")
    )
    rows = []
    for one in maps:
        for layers, found in {(): one.whole, **one.groups}.items():
            for metric, cells in found.items():
                place = layer_words(layers) if layers else "all"
                rows.append((one.name, metric, place, cells.verdict, cells.flips, cells.floor, cells.triples))
    return Table("joint", "Keep against drop by model, metric and layers", columns, tuple(rows), shown=False)


def _sentence(maps: Sequence[ModelMap], metric: str) -> str:
    """What the models say together of one metric, as it can stand in a paper."""
    held = [(one.name, one.whole[metric]) for one in maps if metric in one.whole]
    by = {
        verdict: [(name, found) for name, found in held if found.verdict == verdict]
        for verdict in (DEPENDS, SAFE, SINK_ALONE, CANNOT_SAY)
    }
    words = {
        DEPENDS: "more verdicts flip than between halves of the texts",
        SAFE: "no more verdicts flip than between halves of the texts",
        SINK_ALONE: "heads differ in their sink alone",
        CANNOT_SAY: "nothing can be said",
    }
    said = "; ".join(
        f"{words[verdict]} in {len(found)} ({'; '.join(_figures(*one) for one in found)})"
        for verdict, found in by.items()
        if found
    )
    if by[DEPENDS]:
        end = "Conclusions of this kind depend on whether the sink is kept."
    elif len(by[SAFE]) == len(maps):
        end = "Here the choice makes no difference to conclusions of this kind."
    else:
        end = "So nothing is concluded."
    return (
        f"{metric_name(metric)}, which of two heads is nearer to a third, with the sink dropped instead of "
        f"kept: of {counted(len(maps), 'model')} {said}. {end}"
    )


def _figures(name: str, found: Compared) -> str:
    return f"{name}: {percent(found.flips)}, floor at most {percent(found.floor)}"
