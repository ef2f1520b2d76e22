"""Which keys are the sink: by token id, by place, by text, or as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import reject

__all__ = ["choose_sinks"]


def choose_sinks(
    sink: str | Sequence[int] | NDArray[Any],
    tokens: Sequence[str],
    token_ids: NDArray[np.int64],
    mask: NDArray[np.bool_],
    sink_ids: Sequence[int],
) -> NDArray[np.bool_]:
    """The sink set as a mask over keys, (key,); padding is never in it.

    `sink` is "special" (the ids in `sink_ids`), "first" (the first real token), "none", "token:TEXT" (every
    token spelled TEXT), key positions ("0,7" or a sequence of integers), or a boolean mask (key,). A position
    outside the text or at padding, a token that does not occur, or "special" for a model that names no
    special ids raises InputError.
    """
    count = len(token_ids)
    chosen = np.zeros(count, dtype=bool)
    if not isinstance(sink, str):
        array = np.asarray(sink)
        if array.dtype == bool:
            if array.shape != (count,):
                _reject(sink, f"a mask of shape ({count},)", f"shape {array.shape}")
            return array & mask
        return _at_positions(array, mask)
    if sink == "special":
        if not len(sink_ids):
            _reject(sink, "a model that names its special tokens", "none named")
        chosen = np.isin(token_ids, np.asarray(sink_ids, dtype=np.int64))
    elif sink == "first":
        chosen[np.flatnonzero(mask)[:1]] = True
    elif sink.startswith("token:"):
        wanted = sink.removeprefix("token:")
        chosen = np.array([token == wanted for token in tokens], dtype=bool).reshape(count) & mask
        if not chosen.any():
            _reject(
                sink, "a token of this text", f"no token spelled {wanted!r} in {' '.join(tokens[:12])} ..."
            )
    elif sink != "none":
        try:
            positions = [int(part) for part in sink.split(",")]
        except ValueError:
            _reject(sink, "special, first, none, token:TEXT or positions like 0,7", repr(sink))
        chosen = _at_positions(np.asarray(positions), mask)
    return chosen & mask


def _at_positions(positions: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    count = len(mask)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        _reject(
            positions,
            "integer key positions in one dimension",
            f"{positions.dtype} of shape {positions.shape}",
        )
    if positions.size and (positions.min() < 0 or positions.max() >= count):
        _reject(positions, f"positions from 0 to {count - 1}", f"{positions.tolist()}")
    places = positions.astype(np.int64)
    padding = places[~mask[places]]
    if padding.size:
        real = np.flatnonzero(mask)
        first = f"the first real token is {real[0]}" if real.size else "there is no real token"
        _reject(positions, "positions of real tokens", f"position {padding[0]}, which is padding; {first}")
    chosen = np.zeros(count, dtype=bool)
    chosen[places] = True
    return chosen


def _reject(sink: Any, expected: str, found: str) -> None:
    reject(
        "sink", expected=expected, found=found, todo="Choose special, first, none, token:TEXT or positions."
    )
