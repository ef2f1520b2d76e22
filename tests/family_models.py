"""A family held against transformers on random checkpoints with real files: one helper for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oracle import Model, load_model, logits
from validation.forward_checks import Agreement
from validation.reference import Reference, random_network, torch_threads
from validation.stages import Batch, runner

__all__ = ["DRAWS", "Held", "hold", "saved", "texts"]

DRAWS = 20  # of weights, over which float32 errors are pooled
NAMES = ("oracle-float64", "torch-float64", "oracle-float32", "torch-float32")


class Held(NamedTuple):
    """What a family's comparison found, over all its configurations and draws."""

    agreement: Agreement
    logits: float  # the largest error in float64 over the largest logit of its text; NaN without a head
    peaks: float  # mean largest weight of a row of the worst draw, over rows with eight keys or more
    models: list[Model]


def saved(folder: Path, family: str, config: dict[str, Any], seed: int = 0, **named: Any) -> Model:
    """A random model of a configuration, written by transformers and loaded by the oracle."""
    with torch_threads(1):
        return load_model(random_network(folder, seed, family, **config), **named)


def texts(model: Model, seed: int) -> list[Batch]:
    """A text alone, and three of prime lengths padded on either side; no token is the padding id."""
    rng = np.random.default_rng(seed)
    pad = model.config.pad_id or 0
    types = model.embeddings.token_types
    usual = np.delete(np.arange(model.config.vocab_size), pad)
    batches = []
    for lengths, width, left in (((23,), 23, False), ((19, 13, 7), 20, False), ((19, 13, 7), 20, True)):
        shape = len(lengths), width
        batch = Batch(np.full(shape, pad), np.zeros(shape, bool), np.zeros(shape, np.int64))
        for text, length in enumerate(lengths):
            here = slice(width - length, width) if left else slice(0, length)
            batch.token_ids[text, here] = rng.choice(usual, length)
            batch.mask[text, here] = True
            if types is not None:
                batch.token_types[text, here] = rng.integers(len(types), size=length)
        batches.append(batch)
    return batches


def hold(folder: Path, family: str, *configs: dict[str, Any], draws: int = DRAWS) -> Held:
    """Compare every stage of the oracle with PyTorch in both precisions; configurations take turns.

    In float64 every stage must be within its bound (1e-12 on rows) and, for a causal model, the logits within
    1e-12 of their largest and the likeliest next tokens the same; in float32 the pooled error of the rows at
    most twice PyTorch's own. Fails by AssertionError; returns what was measured.
    """
    agreement, errors, peaks, models = Agreement(), [], [], []
    with torch_threads(1):
        for seed in range(draws):
            place = folder / f"{family}-{seed}"
            model = saved(place, family, configs[seed % len(configs)], seed)
            models.append(model)
            runs = {name: runner(model, name) for name in NAMES}
            for batch in texts(model, seed):
                agreement.add(runs, batch)
            alone = texts(model, seed)[0]
            rows = runs["oracle-float64"](alone)[0]["attention"][:, :, 8:]
            peaks.append(float(rows.max(axis=-1).mean()))
            if model.config.causal:
                errors.append(_logit_error(model, place, alone))
    assert agreement.float64.leaving is None, agreement.float64.leaving
    assert agreement.float64.stages["attention"].max_absolute <= 1e-12
    assert max(errors, default=0) <= 1e-12
    if draws >= DRAWS:
        assert 0 < agreement.ratio <= 2, agreement.ratio
    return Held(agreement, max(errors, default=float("nan")), min(peaks), models)


def _logit_error(model: Model, place: Path, batch: Batch) -> float:
    from oracle import forward

    ids = batch.token_ids[0]
    wanted = Reference.load(place, "float64").logits(batch.token_ids)[0]
    wide = model.astype("float64")
    found = logits(wide, forward(wide, ids, keep="hidden_states"))
    np.testing.assert_array_equal(found.argmax(axis=-1), wanted.argmax(axis=-1))
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
