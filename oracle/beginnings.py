"""What stands at position 0 of a causal model's text, said in words: a BOS, two of them, or none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oracle.inputs import Tokens
from oracle.model import Model

__all__ = ["beginning_notes"]


def beginning_notes(model: Model, read: Tokens, real: NDArray[np.bool_]) -> tuple[str, ...]:
    """Notes on the first real token of a causal model, the key of its default sink set; () for other models.

    `real` (token,) is False at padding. A note begins with WARNING where that token is no BOS, or where a BOS
    follows it that is one too.
    """
    config, places = model.config, np.flatnonzero(real)
    if not config.causal or not len(places):
        return ()
    if config.bos_id is None:
        return ("the model names no BOS: position 0 is the first token of the text itself",)
    name = model.tokenizer.id_to_token(config.bos_id) if model.tokenizer is not None else None
    bos = f"id {config.bos_id}" if name is None else f"{name} (id {config.bos_id})"
    is_bos = read.ids[places[:2]] == config.bos_id
    if not is_bos[0]:
        whose = "the ids begin with none" if read.offsets is None else "the tokenizer adds none"
        return (f"WARNING: position 0 is not the BOS, which would be {bos}: {whose}",)
    own = read.offsets is None or read.offsets[places[0]][1] > read.offsets[places[0]][0]
    said = f"position 0 is the BOS {bos}, " + (
        "which the text begins with" if own else "which the tokenizer adds"
    )
    if is_bos.all() and len(places) > 1:
        return (said, f"WARNING: a second BOS, {bos}, follows at position 1: the text begins with one itself")
    return (said,)
