"""The mathematics of record as loops over Python floats: slow, short and independent of the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.model import Model


def affine(x: Any, weight: Any, bias: Any) -> list[float]:
    return [
        math.fsum([float(x[i]) * float(weight[i][j]) for i in range(len(x))] + [float(bias[j])])
        for j in range(len(bias))
    ]


def layer_norm(x: Any, weight: Any, bias: Any, epsilon: float) -> list[float]:
    mean = math.fsum(x) / len(x)
    variance = math.fsum([(value - mean) ** 2 for value in x]) / len(x)
    return [
        (value - mean) / math.sqrt(variance + epsilon) * float(w) + float(b)
        for value, w, b in zip(x, weight, bias, strict=True)
    ]


def gelu(x: float) -> float:
    return 0.5 * x * math.erfc(-x / math.sqrt(2))


def softmax(scores: Sequence[float]) -> list[float]:
    peak = max(scores)
    powers = [math.exp(score - peak) for score in scores]
    return [power / math.fsum(powers) for power in powers]


def add(*vectors: Any) -> list[float]:
    return [math.fsum(float(part) for part in parts) for parts in zip(*vectors, strict=True)]


def dot(x: Any, y: Any) -> float:
    return math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def forward(model: Model, ids: Sequence[int], types: Sequence[int]) -> dict[str, np.ndarray]:
    """Every stage of an unpadded text, by the definition, in the shapes of a Trace."""
    config, table = model.config, model.embeddings
    d_head, epsilon = config.d_head, config.norm_epsilon
    places = range(len(ids))
    x = [
        layer_norm(
            add(table.words[ids[i]], table.positions[i], table.token_types[types[i]]), *table.norm, epsilon
        )
        for i in places
    ]
    stages: dict[str, list[Any]] = {"hidden_states": [x]}
    for layer in model.layers:
        parts = {
            name: [affine(row, *part) for row in x]
            for name, part in (("queries", layer.query), ("keys", layer.key), ("values", layer.value))
        }
        kept: dict[str, list[Any]] = {}
        mixed: list[list[float]] = [[] for _ in ids]
        for head in range(config.n_heads):
            start, stop = head * d_head, (head + 1) * d_head
            q, k, v = ([row[start:stop] for row in parts[name]] for name in ("queries", "keys", "values"))
            scores = [[dot(qi, kj) / math.sqrt(d_head) for kj in k] for qi in q]
            rows = [softmax(row) for row in scores]
            for i in places:
                mixed[i] += [math.fsum(rows[i][j] * v[j][d] for j in places) for d in range(d_head)]
            slice_of_output = layer.output.weight[start:stop]
            written = [affine(vj, slice_of_output, [0.0] * config.d_model) for vj in v]
            values = {
                "queries": q,
                "keys": k,
                "values": v,
                "scores": scores,
                "attention": rows,
                "value_norm": [math.sqrt(dot(vj, vj)) for vj in v],
                "transformed_norm": [math.sqrt(dot(fj, fj)) for fj in written],
                "transformed": written,
            }
            for name, value in values.items():
                kept.setdefault(name, []).append(value)
        for name, value in kept.items():
            stages.setdefault(name, []).append(value)
        x = [
            layer_norm(add(x[i], affine(mixed[i], *layer.output)), *layer.attention_norm, epsilon)
            for i in places
        ]
        widened = [affine([gelu(u) for u in affine(row, *layer.up)], *layer.down) for row in x]
        x = [layer_norm(add(x[i], widened[i]), *layer.output_norm, epsilon) for i in places]
        stages["hidden_states"].append(x)
    return {name: np.array(value) for name, value in stages.items()}


def share(weights: Sequence[float], sinks: Sequence[bool]) -> float:
    """Sink share of one row of weights over its visible keys."""
    total = math.fsum(weights)
    on_sink = math.fsum(w for w, sink in zip(weights, sinks, strict=True) if sink)
    return on_sink / total if total else math.nan


def odds_ratio(row: Sequence[float], norms: Sequence[float], sinks: Sequence[bool]) -> float:
    """r: the weighted mean norm over the sink, divided by that over the content."""
    means = []
    for part in (True, False):
        inside = [(a, n) for a, n, sink in zip(row, norms, sinks, strict=True) if bool(sink) == part]
        mass = math.fsum(a for a, _ in inside)
        if not mass:
            return math.nan
        means.append(math.fsum(a * n for a, n in inside) / mass)
    return means[0] / means[1]


def merge(weights: Any, groups: Sequence[Sequence[int]]) -> list[list[float]]:
    """Key pieces summed, query pieces averaged, nothing normalised."""
    return [
        [math.fsum(float(weights[q][k]) for q in query for k in key) / len(query) for key in groups]
        for query in groups
    ]
