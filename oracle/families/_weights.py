"""A checkpoint's tensors matched with what a family expects, and read in one dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oracle._checks import reject

__all__ = ["Weights", "match"]

Shape = tuple[int, ...]


class Weights:
    """Tensors under the family's own names; each is read when it is asked for."""

    def __init__(
        self, tensors: Mapping[str, Any], names: Mapping[str, str], dtype: DTypeLike, source: str
    ) -> None:
        """`names` leads from the family's name of a tensor to the checkpoint's."""
        self._tensors, self._names = tensors, names
        self._dtype, self._source = np.dtype(dtype), source

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The tensor in the model's dtype; without a copy where it is stored in that dtype."""
        stored = self._names[name]
        try:
            # A value too large for the dtype would turn into an infinity without a word.
            with np.errstate(over="raise", invalid="ignore"):
                return np.asarray(self._tensors[stored], dtype=self._dtype)
        except FloatingPointError:
            reject(
                f"{self._source}: {stored}",
                expected=f"values that {self._dtype} can hold",
                found="larger ones",
                todo='Load the model with dtype="float64".',
            )


def match(
    tensors: Mapping[str, Any],
    expected: Mapping[str, Shape],
    canonical: Callable[[str], str | None],
    *,
    dtype: DTypeLike,
    source: str,
) -> Weights:
    """Pair every expected tensor with the checkpoint's.

    `canonical` turns a checkpoint's name into the family's, or into None where the tensor has no part in
    the computation. Whatever is missing, unexpected, of the wrong shape or there twice is reported in one
    InputError before any tensor is read.
    """
    names: dict[str, str] = {}
    twice, unexpected = [], []
    for stored in tensors:
        name = canonical(stored)
        if name is None:
            continue
        if name not in expected:
            unexpected.append(f"{stored} {np.shape(tensors[stored])}")
        elif name in names:
            twice.append(f"{names[name]} and {stored}")
        else:
            names[name] = stored
    missing = [f"{name} {shape}" for name, shape in expected.items() if name not in names]
    shapes = [
        f"{stored} is {np.shape(tensors[stored])} where {expected[name]} belongs"
        for name, stored in names.items()
        if tuple(np.shape(tensors[stored])) != expected[name]
    ]
    groups = {"missing": missing, "unexpected": unexpected, "wrong shape": shapes, "the same twice": twice}
    found = "; ".join(f"{label}: {', '.join(items)}" for label, items in groups.items() if items)
    if found:
        reject(
            source,
            expected=f"the {len(expected)} tensors that the configuration calls for",
            found=found,
            todo="Take the weights and the config.json that were saved together.",
        )
    return Weights(tensors, names, dtype, source)
