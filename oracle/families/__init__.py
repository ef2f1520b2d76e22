"""One small file per architecture: its tensor names and quirks -> Model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import DTypeLike

from oracle.families import bert
from oracle.families._config import Fields
from oracle.model import Model, float_dtype

__all__ = ["FAMILIES", "build_model"]

# `model_type` of a configuration to the function that builds the model.
FAMILIES = {"bert": bert.build}


def build_model(
    config: Mapping[str, Any],
    tensors: Mapping[str, Any],
    *,
    dtype: DTypeLike = "float32",
    tokenizer: Any = None,
    name: str = "unnamed",
    sha256: str | None = None,
    special_ids: Mapping[str, int] | None = None,
    config_source: str = "config",
    weights_source: str = "weights",
) -> Model:
    """A Model from a configuration in transformers' terms and tensors under a checkpoint's names.

    `tensors` holds arrays, or anything with a `shape` that `numpy.asarray` reads; those stored in `dtype`
    are shared, not copied, and the others are converted one at a time. `special_ids` gives the tokenizer's
    special tokens by role ("cls_token", "sep_token"); `config_source` and `weights_source` are what errors
    call the two. An unknown `model_type`, an option that is not supported and any tensor that is missing,
    unexpected or of another shape raise InputError.
    """
    float_dtype(dtype)
    fields = Fields(config, config_source)
    model_type = fields.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        fields.refuse(
            "model_type",
            expected=" or ".join(FAMILIES),
            todo="Other architectures are not supported, and none is approximated by another.",
        )
    return FAMILIES[model_type](
        config,
        tensors,
        dtype=dtype,
        tokenizer=tokenizer,
        name=name,
        sha256=sha256,
        special_ids=special_ids or {},
        config_source=config_source,
        weights_source=weights_source,
    )
