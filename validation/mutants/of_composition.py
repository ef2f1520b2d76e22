"""Wrong compositions: splits of distances and entropies with one mistake each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import AitchisonSplit, EntropyChange
from validation.mutants.kinds import Mutant, instead

__all__ = ["COMPOSITION_MUTANTS", "closed", "content_keys", "without_mask"]

Array = NDArray[Any]


def closed(rows: Any) -> Array:
    """Rows over all their keys, garbage at padding included, closed to sum to one."""
    weights = np.asarray(rows, dtype=np.float64)
    return weights / weights.sum(axis=-1, keepdims=True)


def without_mask(true: Any, x: Any, y: Any, sinks: Any, *others: Any) -> Any:
    """The true measure of two rows with everything visible; `others` end with the mask that is left out."""
    return true(closed(x), closed(y), sinks, *others[:-1])


def _logs_not_centred(true: Any, parts: Any, visible: Any = None) -> Array:
    seen = np.broadcast_to(True if visible is None else visible, np.shape(parts))
    return np.log(parts, where=seen, out=np.zeros(np.shape(parts)))


def content_keys(x: Any, sinks: Any, visible: Any) -> NDArray[np.bool_]:
    """The content keys of every row, in the shape of the rows; all keys are seen where `visible` is None."""
    seen = np.ones_like(sinks) if visible is None else visible
    return np.broadcast_to(seen & ~sinks, np.shape(x))


def _factor_squared(true: Any, x: Any, y: Any, sinks: Any, visible: Any = None) -> AitchisonSplit:
    """n/(n+1) taken twice, in the sink term alone."""
    split, count = true(x, y, sinks, visible), content_keys(x, sinks, visible).sum(axis=-1)
    return split._replace(sink=split.sink * count / (count + 1))


def _no_factor(true: Any, x: Any, y: Any, sinks: Any, visible: Any = None) -> AitchisonSplit:
    split, count = true(x, y, sinks, visible), content_keys(x, sinks, visible).sum(axis=-1)
    sink = split.sink * (count + 1) / count
    return AitchisonSplit(sink + split.content, sink, split.content)


def _about_all_parts(true: Any, x: Any, y: Any, sinks: Any, visible: Any = None) -> AitchisonSplit:
    """The geometric mean of all kept parts in the place of the content's; the total stays right."""
    split, count = true(x, y, sinks, visible), content_keys(x, sinks, visible).sum(axis=-1)
    sink = split.sink * count / (count + 1)
    return split._replace(sink=sink, content=split.total - sink)


def _arithmetic_mean(true: Any, x: Any, y: Any, sinks: Any, visible: Any = None) -> AitchisonSplit:
    """The sink against the arithmetic mean of the content: an odds, without a logarithm of the content."""
    split, content = true(x, y, sinks, visible), content_keys(x, sinks, visible)
    count = content.sum(axis=-1)
    masses = [np.where(content, rows, 0).sum(axis=-1) for rows in (x, y)]
    odds = [np.log((1 - mass) / (mass / count)) for mass in masses]
    sink = (odds[0] - odds[1]) ** 2 * count / (count + 1)
    return AitchisonSplit(sink + split.content, sink, split.content)


def _one_sink_score(combine: Any) -> Any:
    """Sink scores combined otherwise than by a log-sum-exp; the first sink key stands for all of them."""

    def wrong(true: Any, *given: Any) -> Any:
        *scores, sinks, visible = given
        seen = np.ones_like(sinks) if visible is None else visible
        first = np.arange(len(sinks)) == np.argmax(sinks)
        alone = [
            np.where(first, combine(score[..., sinks], axis=-1, keepdims=True), score) for score in scores
        ]
        return true(*alone, sinks, seen & (first | ~sinks))

    return wrong


def _floor_without_scaling(true: Any, rows: Any, sinks: Any, delta: float, visible: Any = None) -> Any:
    """Zeros raised to delta with nothing taken from the others."""
    found = true(rows, sinks, delta, visible)
    raised = found == delta
    return np.where(raised, delta, found / (1 - raised.sum(axis=-1, keepdims=True) * delta))


def _content_unweighted(true: Any, rows: Any, sinks: Any, visible: Any = None) -> Any:
    split = true(rows, sinks, visible)
    return split._replace(total=split.binary + split.content)


def _in_bits(true: Any, *given: Any) -> Any:
    split = true(*given)
    return type(split)(*(part / np.log(2) for part in split))


def _first_share(true: Any, x: Any, y: Any, sinks: Any, visible: Any = None) -> EntropyChange:
    """The content channel weighed by 1 - s of the first row, beside a sink channel about the mean."""
    change, content = true(x, y, sinks, visible), content_keys(x, sinks, visible)
    masses = [np.where(content, rows, 0).sum(axis=-1) for rows in (x, y)]
    return change._replace(content=change.content * masses[0] / ((masses[0] + masses[1]) / 2))


def _binary_alone(true: Any, x: Any, y: Any, sinks: Any, visible: Any = None) -> EntropyChange:
    """Dh for the sink channel, all the rest for the content: the sum is right."""
    change, content = true(x, y, sinks, visible), content_keys(x, sinks, visible)
    binary = []
    for rows in (x, y):
        mass = np.where(content, rows, 0).sum(axis=-1)
        binary.append(-mass * np.log(mass) - (1 - mass) * np.log(1 - mass))
    sink = binary[1] - binary[0]
    return EntropyChange(change.total, sink, change.total - sink)


COMPOSITION_MUTANTS = tuple(
    Mutant(name, "distance", trial, apply)
    for name, trial, apply in (
        ("logarithms not centred", "clr by loops", instead("clr", _logs_not_centred)),
        ("n/(n+1) taken twice", "split is orthogonal", instead("aitchison_split", _factor_squared)),
        ("n/(n+1) left out", "split by loops", instead("aitchison_split", _no_factor)),
        ("content about all parts", "split by loops", instead("aitchison_split", _about_all_parts)),
        ("sink against mean content", "split is orthogonal", instead("aitchison_split", _arithmetic_mean)),
        ("split with padding", "split by loops", instead("aitchison_split", without_mask)),
        (
            "largest sink score alone",
            "split from scores",
            instead("aitchison_split_from_scores", _one_sink_score(np.max)),
        ),
        (
            "mean of the sink scores",
            "split from scores",
            instead("aitchison_split_from_scores", _one_sink_score(np.mean)),
        ),
        (
            "zeros raised, none scaled",
            "zeros replaced by loops",
            instead("replace_zeros", _floor_without_scaling),
        ),
        ("content entropy unweighted", "entropy's chain rule", instead("entropy_split", _content_unweighted)),
        ("entropy in bits", "entropy by loops", instead("entropy_split", _in_bits)),
        (
            "entropy of largest sink score",
            "entropy from scores",
            instead("entropy_split_from_scores", _one_sink_score(np.max)),
        ),
        ("channel at the first share", "channels add up", instead("entropy_change", _first_share)),
        ("dh alone for the sink", "channels by loops", instead("entropy_change", _binary_alone)),
        (
            "change of largest sink score",
            "channels from scores",
            instead("entropy_change_from_scores", _one_sink_score(np.max)),
        ),
    )
)
"""Mistakes in log-ratios, splits and channels."""
