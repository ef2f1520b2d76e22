"""What a loader hands over: a configuration, tensors under their stored names, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """A configuration in transformers' terms and tensors under the names that transformers gives them.

    `tensors` holds arrays, or anything with a `shape` that `numpy.asarray` reads. `special_ids` gives the
    tokenizer's special tokens by role ("cls_token", "sep_token"). `config_source` and `weights_source` are
    what errors call the two; `name`, `sha256` and `source` become those of the Model.
    """

    config: Mapping[str, Any]
    tensors: Mapping[str, Any]
    tokenizer: Any = None
    special_ids: Mapping[str, int] = field(default_factory=dict)
    name: str = "unnamed"
    sha256: str | None = None
    source: Path | None = None
    config_source: str = "config"
    weights_source: str = "weights"
