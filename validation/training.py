"""Small Llama models trained by steps, with checkpoints as Hugging Face directories at chosen steps.

torch and transformers are imported when they are called. Everything is seeded and runs in one thread, so that
the same recipe gives the same files on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from validation.progress import Progress, silent
from validation.reference import torch_threads
from validation.reference_parts import quiet

__all__ = ["Recipe", "doubling_steps", "train"]

Draw = Callable[[np.random.Generator], NDArray[np.int64]]


class Recipe(NamedTuple):
    """What a run of training depends on beside its texts; AdamW at a constant rate after a linear warm-up."""

    width: int
    layers: int
    heads: int
    context: int  # tokens of a text, BOS included
    vocabulary: int
    bos: int | None
    steps: int
    seed: int
    batch: int = 64
    learning_rate: float = 3e-3
    warm_up: int = 100
    weight_decay: float = 0.1


def doubling_steps(last: int) -> tuple[int, ...]:
    """0, 1, 2, 4 and so on, and `last`."""
    return (0, *(2**power for power in range(last.bit_length()) if 2**power < last), last)


def train(
    recipe: Recipe,
    draw: Draw,
    folder: Path,
    files: Mapping[str, str],
    *,
    at: Sequence[int],
    progress: Progress = silent,
) -> tuple[Path, ...]:
    """Train from `recipe.seed` and save into `folder`/step<N> at the steps `at`; returns these directories.

    `draw` gives the token ids of a batch, (batch, token), from the generator that it is handed; every token
    but the first is predicted. `files` are written into every directory as they are (a tokenizer). Raises
    Unavailable without the reference extra.
    """
    with torch_threads(1):  # raises Unavailable
        import torch
        import transformers

        with quiet(torch, transformers), torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            network = transformers.LlamaForCausalLM(_configuration(transformers, recipe))
            rng = np.random.default_rng(recipe.seed)
            saved = []
            for step in range(recipe.steps + 1):
                if step in at:
                    saved.append(_save(network, folder / f"step{step}", files))
                if step == 0:
                    optimiser = torch.optim.AdamW(
                        network.parameters(), lr=0.0, weight_decay=recipe.weight_decay, fused=True
                    )
                if step < recipe.steps:
                    rate = recipe.learning_rate * min(1.0, (step + 1) / recipe.warm_up)
                    _learn(torch, network, optimiser, torch.from_numpy(draw(rng)), rate)
                if step % 16 == 0:
                    progress(f"training {folder.name}", step, recipe.steps)
    return tuple(saved)


def _configuration(transformers: Any, recipe: Recipe) -> Any:
    return transformers.LlamaConfig(
        vocab_size=recipe.vocabulary,
        hidden_size=recipe.width,
        intermediate_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=recipe.context,
        bos_token_id=recipe.bos,
        eos_token_id=None,
        pad_token_id=None,
        tie_word_embeddings=False,
    )


def _learn(torch: Any, network: Any, optimiser: Any, ids: Any, rate: float) -> None:
    """One step on one batch."""
    for group in optimiser.param_groups:
        group["lr"] = rate
    scores = network(ids).logits[:, :-1]  # (batch, token - 1, vocabulary)
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def _save(network: Any, place: Path, files: Mapping[str, str]) -> Path:
    network.save_pretrained(place)
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    return place
