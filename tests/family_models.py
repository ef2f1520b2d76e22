"""A family held against transformers on random checkpoints with real files: one helper for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file

from oracle import InputError, Model, forward, load_model, logits
from oracle.families import Checkpoint, build_model
from validation.forward_checks import Agreement
from validation.reference import Reference, random_network, torch_threads
from validation.stages import Batch, runner

DRAWS = 20  # of weights, over which float32 errors are pooled
_WITH_LOGITS = 4  # of them
_NAMES = ("oracle-float64", "torch-float64", "oracle-float32", "torch-float32")


class Held(NamedTuple):
    """What the comparison of a family found, over all its configurations and draws."""

    agreement: Agreement
    logits: float  # the largest error in float64 over the largest logit of its text; NaN without a head
    peak: float  # mean largest weight of a row of the flattest draw, over rows with eight keys or more


class Files(NamedTuple):
    """A saved checkpoint as it stands in its files."""

    config: dict[str, Any]
    tensors: dict[str, np.ndarray]

    def build(self, changes: Mapping[str, Any] | None = None, without: tuple[str, ...] = ()) -> Model:
        """The model in float64, with fields of the configuration changed or left out."""
        config = {name: value for name, value in self.config.items() if name not in without}
        return build_model(Checkpoint(config | dict(changes or {}), self.tensors), dtype="float64")

    def refusal(self, field: str, value: Any) -> str:
        """What is said of a field's value, in one line that names the field."""
        with pytest.raises(InputError) as caught:
            self.build({field: value})
        assert "\n" not in str(caught.value)
        assert field in str(caught.value)
        return str(caught.value)


class Judged(NamedTuple):
    """A model in float64 and the rows that transformers has for one text."""

    model: Model
    batch: Batch
    rows: np.ndarray  # (layer, head, query, key)

    def error(self, change: Callable[[Model], Model] | None = None, **settings: Any) -> float:
        """The largest error of the oracle's rows, after a change of the model or of its configuration."""
        model = replace(self.model, config=replace(self.model.config, **settings))
        ids, types = self.batch.token_ids[0], self.batch.token_types[0]
        trace = forward(
            change(model) if change else model, ids, token_types=types, sink="none", keep="attention"
        )
        return float(np.abs(trace.attention - self.rows).max())


def saved(folder: Path, family: str, config: Mapping[str, Any], seed: int = 0) -> Path:
    """A random checkpoint of a configuration, written by transformers."""
    with torch_threads(1):
        return random_network(folder / f"{family}-{seed}", seed, family, **config)


def files_of(folder: Path) -> Files:
    """The configuration and the tensors of a checkpoint."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Files(config, load_file(folder / "model.safetensors"))


def judged(folder: Path) -> Judged:
    """One text of a checkpoint, run by transformers."""
    model = load_model(folder, dtype="float64")
    batch = texts(model, 0)[0]
    with torch_threads(1):
        network = Reference.load(folder, "float64")
        found = network.run(batch.token_ids, token_types=batch.token_types, keep=("attention",))
    whole = Judged(model, batch, found["attention"][0])
    assert whole.error() <= 1e-12
    return whole


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


def hold(folder: Path, family: str, *configs: Mapping[str, Any], draws: int = DRAWS) -> Held:
    """Hold every stage of the oracle against PyTorch in both precisions; configurations take turns.

    In float64 every stage must be within its bound (1e-12 on rows) and, for a causal model, the logits within
    1e-12 of their largest and the likeliest next tokens the same; in float32 the error of the rows, pooled
    over all draws, at most twice PyTorch's own.
    """
    agreement, errors, peaks = Agreement(), [], []
    with torch_threads(1):
        for seed in range(draws):
            place = saved(folder, family, configs[seed % len(configs)], seed)
            model = load_model(place)
            runs = {name: runner(model, name) for name in _NAMES}
            batches = texts(model, seed)
            for batch in batches:
                agreement.add(runs, batch)
            rows = runs["oracle-float64"](batches[0])[0]["attention"][:, :, 8:]
            peaks.append(float(rows.max(axis=-1).mean()))
            if model.config.causal and seed < _WITH_LOGITS:
                errors.append(_logit_error(model, place, batches[0]))
    found = Held(agreement, max(errors, default=float("nan")), min(peaks))
    print(
        f"{family}: rows {agreement.float64.stages['attention'].max_absolute:.1e} in float64, logits "
        f"{found.logits:.1e}, float32 {agreement.ratio:.2f} times PyTorch's error, peak {found.peak:.2f}"
    )
    assert agreement.float64.texts == 7 * draws
    assert agreement.float64.leaving is None, agreement.float64.leaving
    assert agreement.float64.stages["attention"].max_absolute <= 1e-12
    assert max(errors, default=0) <= 1e-12
    assert found.peak > 0.4
    assert 0 < agreement.ratio <= 2
    return found


def _logit_error(model: Model, place: Path, batch: Batch) -> float:
    """Relative to the largest logit; the likeliest token must be the same everywhere."""
    wanted = Reference.load(place, "float64").logits(batch.token_ids)[0]
    wide = model.astype("float64")
    found = logits(wide, forward(wide, batch.token_ids[0], keep="hidden_states"))
    np.testing.assert_array_equal(found.argmax(axis=-1), wanted.argmax(axis=-1))
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
