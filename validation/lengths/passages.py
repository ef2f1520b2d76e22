"""Long texts for those who have none: passages that stand in other studies, joined."""

from __future__ import annotations

from validation.audit.passages import load_passages as short_passages
from validation.command_parts import Texts
from validation.studies.pruning.passages import load_passages as prose

__all__ = ["long_passages"]


def long_passages() -> Texts:
    """Two texts of about 1,500 and 2,000 words: the prose of the pruning study, the passages of an audit.

    Passages are joined by blank lines, so that within a text the subject changes every so often.
    """
    first, short = prose(), short_passages()
    whole = ["\n\n".join((first.statistics, *first.evaluation)), "\n\n".join(short)]
    source = f"bundled passages joined into two texts: 3 of 500 words each, and {len(short)} of 100"
    return Texts(source, whole)
