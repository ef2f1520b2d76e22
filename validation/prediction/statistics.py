"""The few numbers that a flip rate is predicted from; all of them can be had without dropping the sink."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEATURES", "Statistics", "describe_heads", "log_content_keys"]

Array = NDArray[Any]


class Statistics(NamedTuple):
    """Of the heads that are compared, over the rows that count; NaN where it is undefined."""

    sink_share: float  # mean over the heads, in [0, 1]
    sink_spread: float  # standard deviation of the sink share between the heads
    content_entropy: float  # mean over the heads, over the mean log number of content keys: in [0, 1]
    content_keys: float  # n, the geometric mean over the rows

    def features(self) -> Array:
        """What stands in the linear form beside its constant, (4,), in the order of FEATURES."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share, spread, entropy, keys = np.array(self, dtype=np.float64)
            return np.array([np.log(share) - np.log1p(-share), np.log(spread), entropy, np.log(keys)])


FEATURES = ("logit of sink_share", "log of sink_spread", "content_entropy", "log of content_keys")


def describe_heads(sink_share: Array, content_entropy: Array, log_keys: float) -> Statistics:
    """Statistics of heads from the mean sink share and content entropy (nats) of each, both (head,).

    `log_keys` is the mean of `log_content_keys`. A head without content is left out of the entropy.
    """
    defined = content_entropy[~np.isnan(content_entropy)]
    entropy = float(defined.mean()) / log_keys if len(defined) and log_keys > 0 else float("nan")
    return Statistics(float(sink_share.mean()), float(sink_share.std()), entropy, float(np.exp(log_keys)))


def log_content_keys(sink_mask: NDArray[np.bool_], visible: NDArray[np.bool_]) -> Array:
    """Log of the visible content keys of each row, (query,); `visible` (query, key) has rows that count only.

    A row without a content key gives 0, as one with a single key does: neither has an entropy to speak of.
    """
    return np.log(np.maximum((visible & ~sink_mask).sum(axis=-1), 1))
