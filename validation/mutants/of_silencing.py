"""Wrong ways to silence heads, on a model whose heads share keys and values in groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model, Trace
from validation.mutants.kinds import Mutant, Trial, instead
from validation.mutants.subjects import Subjects, random_model, token_ids
from validation.properties import Finding, Implementation, silenced_heads_are_cut_slices

__all__ = ["SILENCING_MUTANTS", "SILENCING_TRIAL"]

Array = NDArray[Any]
Mask = NDArray[np.bool_]

_HEADS, _SHARED, _TOKENS = 6, 3, 11  # heads 0 and 1 share the first key head


def _silenced(model: Model) -> Mask:
    """In the second layer one head of a group, in the last one head of each of two groups; none before."""
    cut = np.zeros((model.config.n_layers, _HEADS), bool)
    cut[1, 2] = cut[-1, [1, 4]] = True
    return cut


def _slices(implementation: Implementation, subjects: Subjects) -> Finding:
    model = random_model(8, _HEADS, _SHARED)
    ids = token_ids(model, _TOKENS, seed=8)
    return silenced_heads_are_cut_slices(implementation, model, ids, _silenced(model))


SILENCING_TRIAL = Trial("silenced: W_O cut", _slices)
"""Silenced heads against a W_O without their rows."""


def _with_bias(true: Callable[..., Array], model: Model, trace: Trace, cut: Mask) -> Array:
    """Each head owns an equal part of b_O, which goes with it."""
    layers = tuple(
        layer
        if layer.output.bias is None
        else replace(layer, output=layer.output._replace(bias=layer.output.bias * (1 - heads.mean())))
        for layer, heads in zip(model.layers, cut, strict=True)
    )
    return true(replace(model, layers=layers), trace, cut)


def _other_heads(change: Callable[[Mask], Mask]) -> Any:
    """The true code on other heads than those that were named."""
    return instead(
        "states_without_heads", lambda true, model, trace, cut: true(model, trace, change(cut.copy()))
    )


def _whole_groups(cut: Mask) -> Mask:
    """Whoever shares the keys of a silenced head falls silent too, as if its values were zeroed."""
    groups = cut.reshape(len(cut), _SHARED, -1)
    return np.repeat(groups.any(axis=-1), groups.shape[-1], axis=1)


def _dealt_in_turn(cut: Mask) -> Mask:
    """Heads counted by their place in a group first: 0 3 1 4 2 5 where 0 1 2 3 4 5 belongs."""
    return cut.reshape(len(cut), -1, _SHARED).transpose(0, 2, 1).reshape(cut.shape)


def _first_layer_only(cut: Mask) -> Mask:
    cut[np.flatnonzero(cut.any(axis=1))[0] + 1 :] = False
    return cut


SILENCING_MUTANTS = tuple(
    Mutant(name, "forward", SILENCING_TRIAL.name, apply)
    for name, apply in (
        ("silenced with its share of b_O", instead("states_without_heads", _with_bias)),
        (
            "the other head of a group",
            _other_heads(lambda cut: cut.reshape(-1, 2)[:, ::-1].reshape(cut.shape)),
        ),
        ("the whole group silenced", _other_heads(_whole_groups)),
        ("heads counted across groups", _other_heads(_dealt_in_turn)),
        ("silenced in the first layer only", _other_heads(_first_layer_only)),
    )
)
"""Mistakes in what is silenced."""
