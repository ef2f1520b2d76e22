"""Trials on two causal models drawn at random, which have between them what BERT has not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from oracle.loading import load_model
from validation.mutants.kinds import Trial
from validation.mutants.subjects import Judged, Subjects
from validation.properties import Finding, Implementation
from validation.tally import bounds_for, compare_stages

__all__ = ["CAUSAL_TRIALS", "judged"]

_SEED, _TOKENS, _PADDING = 6, 23, 3
_BOTH: dict[str, Any] = {"vocab_size": 101, "num_hidden_layers": 3, "intermediate_size": 29}
_MODELS: Mapping[str, Mapping[str, Any]] = {
    "gemma2": _BOTH
    | {
        "hidden_size": 36,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 10,
        "sliding_window": 5,
        "query_pre_attn_scalar": 7,
        "attn_logit_softcapping": 19.0,
        "rms_norm_eps": 3e-5,
        "max_position_embeddings": 61,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 3.0},
    },
    "gpt_neox": _BOTH
    | {
        "hidden_size": 60,
        "num_attention_heads": 5,
        "max_position_embeddings": 67,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
    },
}


@cache
def judged(family: str) -> Judged:
    """A random model of one of the two, and its stages by PyTorch in float64; padding stands on the right.

    Raises Unavailable where PyTorch is not installed.
    """
    from validation.reference import Reference, random_network

    with TemporaryDirectory() as directory:
        random_network(directory, _SEED, family, **_MODELS[family])
        model = load_model(directory, dtype="float64")
        ids = np.random.default_rng(_SEED).integers(3, model.config.vocab_size, _TOKENS)
        mask = np.arange(_TOKENS) < _TOKENS - _PADDING
        stages = Reference.load(directory, "float64").run(ids[None], mask[None])
    return Judged(model, ids, mask, np.zeros_like(ids), {name: array[0] for name, array in stages.items()})


def _stage(family: str, name: str) -> Callable[[Implementation, Subjects], Finding]:
    """One stage against PyTorch on real tokens; the error is in units of its bound."""

    def run(implementation: Implementation, subjects: Subjects) -> Finding:
        model, ids, mask, _, stages = judged(family)
        trace = implementation.forward(model, ids, mask=mask, sink="none")
        bound = bounds_for("oracle-float64", "torch-float64")[name]
        worst, place = 0.0, ""
        compared = compare_stages(stages, {name: getattr(trace, name)}, mask, {name: bound})
        for _, layer, result in compared:
            error = float("inf") if np.isnan(result.used) else result.used * bound.limit
            if error > worst:
                worst, place = error, f"layer {layer}, {result.message}"
        return Finding(f"{name} against PyTorch", worst, bound.limit, place)

    return run


CAUSAL_TRIALS = (
    Trial("PyTorch: causal rows", _stage("gemma2", "attention")),
    Trial("PyTorch: causal states", _stage("gemma2", "hidden_states")),
    Trial("PyTorch: keys in groups", _stage("gemma2", "keys")),
    Trial("PyTorch: fused rows", _stage("gpt_neox", "attention")),
)
"""Checks of the forward pass on causal models."""
