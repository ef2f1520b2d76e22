"""What every figure of an audit depends on, in the words that stand beside it."""

from __future__ import annotations

from dataclasses import dataclass

from validation.gathering import Gathered
from validation.headline import layer_words, length_words
from validation.wording import counted

__all__ = ["Context", "describe"]

_NAMED = 4  # sinks that are named one by one


@dataclass(frozen=True)
class Context:
    """How many texts and rows, of what length, which sink set and queries, and what was undefined.

    `rows` are those of one head; `undefined` counts rows of all heads that lack a content distribution or
    any mass, `all_rows` what they are of.
    """

    texts: int
    rows: int
    heads: int
    layers: tuple[int, ...]
    lengths: tuple[int, ...]
    sinks: str
    causal_from: int | None
    undefined: int
    all_rows: int

    @property
    def words(self) -> str:
        """All of it in one sentence."""
        start = f" from {self.causal_from} content keys on" if self.causal_from else ""
        return (
            f"{counted(self.texts, 'text')}, {length_words(self.lengths)}, {counted(self.rows, 'row')} of "
            f"each of {counted(self.heads, 'head')} ({layer_words(self.layers)}), content queries{start}, "
            f"sink set {self.sinks}, {self.undefined:,} of {self.all_rows:,} rows undefined"
        )


def describe(gathered: Gathered, rows: int) -> Context:
    """The Context of what was gathered; `rows` are those of one head."""
    table = gathered.table
    names = list(dict.fromkeys(name.partition(" (id ")[0] for name in gathered.sinks.names))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    layers = tuple(sorted(set(table.layer.tolist())))
    return Context(
        texts=len(table.text_lengths()),
        rows=rows,
        heads=len(set(zip(table.layer.tolist(), table.head.tolist(), strict=True))),
        layers=layers,
        lengths=tuple(table.lengths()),
        sinks=", ".join(names[:_NAMED]) + more if names else "empty",
        causal_from=gathered.min_content_keys if table.left_out else None,
        undefined=int((table.zero_content | table.no_mass).sum()),
        all_rows=len(table),
    )
