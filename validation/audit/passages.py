"""Twenty short passages of different kinds, to audit a model without a text of one's own."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["load_passages"]


def load_passages() -> tuple[str, ...]:
    """Twenty English passages, each of 100 to 130 word pieces with MiniLM's tokenizer, specials included.

    Written for this project before any of them was measured: news, a recipe, dialogue, a lease, a code
    comment, a letter, an abstract and so on, so that no one kind of text decides. They stand in passages.txt,
    one a line.
    """
    text = files(__package__).joinpath("passages.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
