"""From the last block of a causal model to its predictions: logits, and the perplexity of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, reject
from oracle.block import normed
from oracle.forward import forward
from oracle.model import Head, Linear, Model
from oracle.ops import linear
from oracle.trace import Trace

__all__ = ["check_language_model", "log_likelihood", "logits", "perplexity"]

Array = NDArray[Any]

_ROWS = 64  # widened at once: a vocabulary is long


def check_language_model(model: Model) -> Head:
    """The language-model head of `model`; InputError, which says what it is instead, where there is none."""
    head = model.head
    if head is None or (head.words is None and not model.config.tied_head):
        reject(
            "model",
            expected="a causal model with its language-model head",
            found=f"{model.name}, " + ("a model of another kind" if head is None else "saved without one"),
            todo="Take a checkpoint of the whole language model.",
        )
    return head


def logits(model: Model, hidden_or_trace: Array | Trace) -> Array:
    """Scores of every word of the vocabulary as the next token, (..., token, vocabulary).

    Takes what the last block puts out, (..., token, d_model), or a Trace that kept `hidden_states`. The final
    norm, a projection where there is one, the map to the vocabulary (tied to the embeddings or its own) and
    the cap c tanh(logit / c) follow; the result has the dtype of the model. Raises InputError for a model
    without a language-model head and for states of another width.
    """
    head, config = check_language_model(model), model.config
    given = hidden_or_trace.hidden_states[-1] if isinstance(hidden_or_trace, Trace) else hidden_or_trace
    states = as_array("hidden_or_trace", given)
    if states.ndim < 2 or states.shape[-1] != config.d_model:
        reject(
            "hidden_or_trace",
            expected=f"a Trace, or states (..., token, d_model = {config.d_model})",
            found=f"shape {states.shape}",
            todo="Pass the output of the last block, trace.hidden_states[-1].",
        )
    states = states.astype(model.dtype, copy=False)
    if head.norm is not None:
        states = normed(states, head.norm, config)
    if head.project is not None:
        states = linear(states, head.project)
    found = linear(states, head.words or Linear(model.embeddings.words.T))
    if config.logit_cap is not None:
        cap = found.dtype.type(config.logit_cap)
        found /= cap
        np.tanh(found, out=found)
        found *= cap
    return found


def log_likelihood(scores: Array, token_ids: Sequence[int] | Array) -> Array:
    """Log probability (nats) of every token but the first, given those before it: (token - 1,), 0 or less.

    `scores` are logits (token, vocabulary); row t predicts token t + 1. ln p = z - log-sum-exp of the row, in
    float64 (longdouble when given longdouble). Raises InputError where the two do not fit.
    """
    rows, ids = as_array("scores", scores), as_array("token_ids", token_ids)
    if rows.ndim != 2 or ids.shape != rows.shape[:1] or (ids.size and ids.dtype.kind not in "iu"):
        reject(
            "token_ids",
            expected="an integer for each row of logits (token, vocabulary)",
            found=f"{ids.dtype} of shape {ids.shape} for logits {rows.shape}",
            todo="Pass trace.token_ids beside the logits of that trace.",
        )
    found = np.empty(max(len(ids) - 1, 0), np.result_type(rows.dtype, np.float64))
    for start in range(0, len(found), _ROWS):
        wide = rows[start : min(start + _ROWS, len(found))].astype(found.dtype)
        wide -= wide.max(axis=-1, keepdims=True)
        place = ids[start + 1 : start + 1 + len(wide), None].astype(np.int64)
        chosen = np.take_along_axis(wide, place, axis=-1)[:, 0]
        found[start : start + len(wide)] = chosen - np.log(np.exp(wide).sum(axis=-1))
    return found


def perplexity(
    model: Model, text_or_token_ids: str | Sequence[int] | Array, *, truncate: bool = False
) -> float:
    """The exponential of the mean negative log likelihood (nats) of all tokens but the first: 1 or more.

    One pass, no sliding window: a text longer than the model's positions raises InputError, unless `truncate`
    keeps its first positions. The first token is given, whether it is a BOS or not; a BOS is there where the
    tokenizer puts one, or among the ids. Fewer than two tokens predict nothing: NaN. Errors as in `forward`
    and `logits`.
    """
    trace = forward(model, text_or_token_ids, sink="none", keep=("hidden_states",), truncate=truncate)
    if len(trace.token_ids) < 2:
        return float("nan")
    return float(np.exp(-log_likelihood(logits(model, trace), trace.token_ids).mean()))
