"""Which subjects a trial asked for, so that the T it was run at is read from them."""

from __future__ import annotations

from typing import Any

from validation.mutants.subjects import Subjects

__all__ = ["Watched"]


class Watched:
    """Stands for the `Subjects` of a trial, and remembers what was asked for."""

    def __init__(self, subjects: Subjects) -> None:
        """Nothing asked for yet."""
        self._subjects, self._asked = subjects, set[str]()

    def __getattr__(self, name: str) -> Any:
        self._asked.add(name)
        return getattr(self._subjects, name)

    @property
    def lengths(self) -> tuple[int, ...]:
        """T of the rows asked for: their visible keys, each number once, sorted; empty without rows.

        Where one mask of keys holds for a whole text these are its real tokens; of a causal text T are its
        tokens without the padding. Models of the user's and PyTorch's, and matrices of heads, are no rows.
        """
        whole, asked = self._subjects, self._asked
        found: list[Any] = []
        if "rows" in asked:
            found.append(whole.rows.visible.sum())
        if "pair" in asked:
            found.append(whole.pair.visible.sum())
        if "heads" in asked:
            found.append(whole.heads[0].shape[-1])
        if "words" in asked:
            found.append(whole.words.weights["attention"].shape[-1])
        if "head_texts" in asked:
            found += [seen.any(axis=0).sum() for seen in whole.head_texts.visible]
        if "ids" in asked:
            found.append(whole.mask.sum() if "mask" in asked else len(whole.ids))
        if "traces" in asked:
            found += [trace.mask.sum() for trace in whole.traces]
        return tuple(sorted({int(length) for length in found}))
