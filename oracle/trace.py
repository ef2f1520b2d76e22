"""Trace: what one forward pass saw, for one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject

__all__ = ["KEEP_ALL", "KEEP_DEFAULT", "Trace"]

Array = NDArray[Any]

KEEP_DEFAULT = (
    "scores",
    "attention",
    "queries",
    "keys",
    "values",
    "value_norm",
    "transformed_norm",
    "hidden_states",
)
KEEP_ALL = (*KEEP_DEFAULT, "transformed_gram")


@dataclass(frozen=True, eq=False)
class Trace:
    """One text through one model. Arrays that `keep=` left out raise InputError when they are asked for.

    Padding stays in the arrays and is marked invisible: `visible` is False in its rows and columns, its
    attention rows are zeros and its scores minus infinity. Keys that a causal model or a window hides are
    invisible too. Where all layers see the same, `visible` is (query, key); in a model whose windows differ
    by layer it is (layer, 1, query, key), which broadcasts against rows. `visible_in` asks for one layer.
    """

    tokens: tuple[str, ...]
    token_ids: NDArray[np.int64]  # (token,)
    mask: NDArray[np.bool_]  # (token,), False at padding
    sink_mask: NDArray[np.bool_]  # (key,)
    visible: NDArray[np.bool_]  # (query, key), or (layer, 1, query, key) where windows differ by layer
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None  # (token,) of character spans in `text`
    notes: tuple[str, ...] = ()
    _kept: Mapping[str, Array] = field(default_factory=dict, repr=False)
    _told: bool = field(default=False, repr=False)  # the arrays went to `each`, layer by layer

    def visible_in(self, layer: int) -> NDArray[np.bool_]:
        """Which key each query sees in one layer, (query, key)."""
        return self.visible if self.visible.ndim == 2 else self.visible[layer, 0]

    def _get(self, name: str) -> Array:
        if self._told:
            reject(
                f"trace.{name}",
                expected="a Trace that holds arrays",
                found="the one that forward returns with each=, whose layers were told one by one",
                todo="Take the array from the Trace that `each` is called with, or run forward without each.",
            )
        if name not in self._kept:
            reject(
                f"trace.{name}",
                expected="an array that the forward pass was told to keep",
                found=f"only {', '.join(sorted(self._kept)) or 'nothing'}",
                todo=f'Run forward with keep=(..., "{name}").',
            )
        return self._kept[name]

    @property
    def scores(self) -> Array:
        """(layer, head, query, key): after scale, cap and mask, before the softmax; -inf where hidden."""
        return self._get("scores")

    @property
    def attention(self) -> Array:
        """(layer, head, query, key): rows sum to one over visible keys; zeros for padding queries."""
        return self._get("attention")

    @property
    def queries(self) -> Array:
        """(layer, head, token, d_head), after the rotary turn and before the scale."""
        return self._get("queries")

    @property
    def keys(self) -> Array:
        """(layer, head, token, d_head), after the rotary turn; keys that heads share are repeated."""
        return self._get("keys")

    @property
    def values(self) -> Array:
        """(layer, head, token, d_head), bias included; values that heads share are repeated."""
        return self._get("values")

    @property
    def value_norm(self) -> Array:
        """‖v_j‖, (layer, head, key), float64 (longdouble in a longdouble model)."""
        return self._get("value_norm")

    @property
    def transformed_norm(self) -> Array:
        """‖v_j W_O‖ of each head, (layer, head, key), float64 (longdouble in a longdouble model)."""
        return self._get("transformed_norm")

    @property
    def transformed_gram(self) -> Array:
        """f_h·f_g at each key, (layer, key, head, head); kept only when asked for by name."""
        return self._get("transformed_gram")

    @property
    def hidden_states(self) -> Array:
        """(layer + 1, token, d_model): the embeddings, then what each block puts out."""
        return self._get("hidden_states")
