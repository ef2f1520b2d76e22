"""How close two runs of the forward pass must be, stage by stage, and how close they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle.model import Model
from validation.compare import Comparison, compare
from validation.stages import AXES, DERIVED, precision_of, truer

__all__ = ["Bound", "Stage", "Tally", "bounds_for", "compare_stages", "float32_limit"]

Array = NDArray[Any]

_LIMITS = {"float32": 1e-5, "float64": 1e-12, "longdouble": 1e-15}
_DEEP_FLOAT32 = 2e-5  # of SmolLM2 and its like
_UNITS = dict.fromkeys(AXES, "row norm") | dict.fromkeys(DERIVED, "value")
_UNITS |= {"scores": "max |score|", "attention": "1"}
_LETTERS = {"text": "x", "layer": "L", "head": "H", "token": "t", "query": "q", "key": "k"}


class Bound(NamedTuple):
    """How large an error may be: `limit` times what `of` names."""

    limit: float
    of: str  # "1", "row norm", "max |score|" or "value"


@dataclass
class Stage:
    """What the comparisons of one stage found, over layers and texts; a refused one makes the errors NaN."""

    name: str
    bound: Bound
    shape: tuple[int | str, ...] = ()  # T where it is the number of tokens
    dtypes: tuple[str, ...] = ()  # found, then expected where it differs
    max_absolute: float = 0.0
    max_relative: float = 0.0
    max_ulps: float = 0.0
    used: float = -1.0  # the largest error over its bound
    worst: Mapping[str, int] = field(default_factory=dict)
    within: bool = True

    def add(self, place: Mapping[str, int], found: Comparison) -> None:
        """Take one comparison in; the place with the largest part of its bound is remembered."""
        for name in ("max_absolute", "max_relative", "max_ulps"):
            setattr(self, name, float(np.maximum(getattr(self, name), getattr(found, name))))  # NaN stays
        if found.used > self.used if found.within == self.within else self.within:
            self.used = found.used
            self.worst = {**place, **dict(zip(AXES[self.name], found.worst or (), strict=False))}
        self.within &= found.within

    @property
    def place(self) -> str:
        """The worst place in letters: x text (from 1), L layer, H head, t token, q query, k key, d entry."""
        return " ".join(
            f"{_LETTERS.get(axis, 'd')}{index + (axis == 'text')}" for axis, index in self.worst.items()
        )


class Tally:
    """Two implementations over many texts: every stage, and the first comparison that left its bound."""

    def __init__(self, first: str, second: str, model: Model | None = None) -> None:
        """Of the two, the more precise is what is expected; `model` is who runs, for `bounds_for`."""
        self.expected, self.found = truer(first, second)
        derived = all(name.startswith("oracle") for name in (first, second))  # nobody else has them
        self.stages = {
            name: Stage(name, bound)
            for name, bound in bounds_for(first, second, model).items()
            if derived or name not in DERIVED
        }
        self.texts = 0
        self.leaving: str | None = None

    def add(self, expected: Mapping[str, Array], found: Mapping[str, Array], mask: NDArray[np.bool_]) -> None:
        """Compare two runs of the next text; a stage that one side does not return raises LookupError."""
        for side, given in ((self.expected, expected), (self.found, found)):
            missing = [name for name in self.stages if name not in given]
            if missing:
                raise LookupError(f"{side} returned no {', '.join(missing)}")
        for name, stage in self.stages.items():
            self._describe(stage, expected[name], found[name], len(mask))
        bounds = {name: stage.bound for name, stage in self.stages.items()}
        for name, layer, result in compare_stages(expected, found, mask, bounds):
            place = {"text": self.texts} if layer is None else {"text": self.texts, "layer": layer}
            self.stages[name].add(place, result)
            if not result.within:
                self._leave(name, place, result.message)
        self.texts += 1

    def _describe(self, stage: Stage, expected: Array, found: Array, count: int) -> None:
        """Note shape and dtypes, and hold both sides to the dtype that they promise."""
        names = ("layer", *AXES[stage.name]) if stage.name != "embeddings" else AXES[stage.name]
        stage.shape = tuple(
            "T" if axis in ("token", "query", "key") and size == count else size
            for axis, size in zip(names, found.shape, strict=False)
        )
        stage.dtypes = tuple(dict.fromkeys((_dtype_words(found.dtype), _dtype_words(expected.dtype))))
        for name, array in ((self.found, found), (self.expected, expected)):
            promised = np.dtype(precision_of(name))
            if stage.name in DERIVED:
                promised = np.result_type(promised, np.float64)
            if array.dtype != promised:
                stage.within = False
                self._leave(stage.name, {"text": self.texts}, f"dtype of {name} is {array.dtype}")

    def _leave(self, name: str, place: Mapping[str, int], message: str) -> None:
        where = ", ".join(f"{axis} {index + (axis == 'text')}" for axis, index in place.items())
        self.leaving = self.leaving or f"{name} ({where}): {message}"


def bounds_for(first: str, second: str, model: Model | None = None) -> dict[str, Bound]:
    """The bound of every stage for a pair of implementations, set by the less precise of the two.

    Attention rows, absolute: `float32_limit` where one side is float32 (1e-5 without a model), 1e-12 where
    the least is float64. Scores stand against the largest |score| of their head, vectors against their norm,
    each by the same number. In float64 what `float32_limit` estimates is 1.3e-14 for MiniLM and 3.9e-14 for
    SmolLM2.
    """
    coarse = precision_of(truer(first, second)[1])
    limit = _LIMITS[coarse] if model is None or coarse != "float32" else float32_limit(model)
    return {name: Bound(limit, of) for name, of in _UNITS.items()}


def float32_limit(model: Model) -> float:
    """What this model is held to in float32: 1e-5, or 2e-5 where its products alone may take more than 1e-5.

    A product of length n adds about u sqrt(n) of the row's norm (u the unit roundoff, errors of random sign),
    and products in sequence add in quadrature: u sqrt(width * products a layer * layers). MiniLM, with six
    products of 384 in each of six layers, has 118 u = 7e-6 and so 1e-5; SmolLM2, with seven (it has a gate)
    of 576 in 30 layers, has 348 u = 2.1e-5 and so 2e-5. No model gets more: both were fixed beforehand.
    """
    products = sum(6 + (layer.gate is not None) for layer in model.layers)
    unit = float(np.finfo(np.float32).eps) / 2
    estimate = unit * float(np.sqrt(model.config.d_model * products))
    return _LIMITS["float32"] if estimate <= _LIMITS["float32"] else _DEEP_FLOAT32


def compare_stages(
    expected: Mapping[str, Array],
    found: Mapping[str, Array],
    mask: NDArray[np.bool_],
    bounds: Mapping[str, Bound],
) -> Iterator[tuple[str, int | None, Comparison]]:
    """Compare two runs of one text in the order of computation: (stage, layer or None, comparison).

    Stages are those that `bounds` names. Only real tokens are compared: a padding query's row is no
    measurement, and the two engines fill it differently. Indices are those of the padded text.
    """
    for stage, layer in _steps(len(expected["hidden_states"]) - 1):
        if stage not in bounds:
            continue
        bound, whole = bounds[stage], tuple(side[stage] for side in (expected, found))
        if whole[0].shape != whole[1].shape:
            yield stage, layer, compare(whole[0], whole[1])
            continue
        if stage == "hidden_states":  # entry 0 stands before the first layer
            whole = tuple(array[0 if layer is None else layer + 1] for array in whole)
        elif layer is not None:
            whole = tuple(array[layer] for array in whole)
        tokens = tuple(axis for axis, name in enumerate(AXES[stage]) if name in ("token", "query", "key"))
        pair = [_pick(array, mask, tokens) for array in whole]
        result = compare(
            pair[0],
            pair[1],
            absolute=bound.limit if bound.of == "1" else None,
            relative=None if bound.of == "1" else bound.limit,
            scale=_scale(pair[0], bound.of),
        )
        yield stage, layer, _moved(result, mask, tokens)


def _dtype_words(dtype: np.dtype[Any]) -> str:
    """NumPy's name, but "longdouble (80-bit)" for what it calls float128 on this processor."""
    bits = {63: 80, 105: 106, 112: 128}.get(int(np.finfo(np.longdouble).nmant))
    return f"longdouble ({bits}-bit)" if dtype == np.longdouble and bits else str(dtype)


def _steps(n_layers: int) -> Iterator[tuple[str, int | None]]:
    yield "embeddings", None
    yield "hidden_states", None
    for layer in range(n_layers):
        for stage in AXES:
            if stage != "embeddings":
                yield stage, layer


def _pick(array: Array, mask: NDArray[np.bool_], axes: tuple[int, ...]) -> Array:
    for axis in () if mask.all() else axes:
        array = np.compress(mask, array, axis=axis)
    return array


def _scale(expected: Array, of: str) -> Array | None:
    wide = expected.astype(np.result_type(expected.dtype, np.float64), copy=False)
    if of == "row norm":
        return np.asarray(np.linalg.norm(wide, axis=-1, keepdims=True))
    if of == "max |score|":
        sizes = np.where(np.isfinite(wide), np.abs(wide), 0)  # -inf where a key is hidden
        return np.asarray(sizes.max(axis=(-2, -1), keepdims=True, initial=0))
    return None


def _moved(found: Comparison, mask: NDArray[np.bool_], axes: tuple[int, ...]) -> Comparison:
    """The same comparison with its worst index in the padded text."""
    if found.worst is None or mask.all():
        return found
    real = np.flatnonzero(mask)
    place = tuple(int(real[i]) if axis in axes else i for axis, i in enumerate(found.worst))
    return replace(found, worst=place, message=found.message.replace(str(found.worst), str(place), 1))
