"""What the distances between heads are called in tables and figures."""

from __future__ import annotations

__all__ = ["METRIC_NAMES", "metric_name"]

METRIC_NAMES = {
    "aitchison": "Aitchison",
    "aitchison_sink": "Aitchison sink",
    "clark2019": "Clark et al. 2019",
    "cosine": "cosine",
    "entropy": "entropy",
    "hellinger": "Hellinger",
    "jsd": "JSD",
    "l1": "L1",
    "root_jsd": "root JSD",
}


def metric_name(metric: str) -> str:
    """The name of `metric` for the eye; one that is not in METRIC_NAMES is shown as it is."""
    return METRIC_NAMES.get(metric, metric)
