"""One small file per architecture: its tensor names and quirks -> Model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from numpy.typing import DTypeLike

from oracle.families import (
    albert,
    bert,
    distilbert,
    electra,
    gemma2,
    gpt2,
    gpt_neox,
    llama,
    mistral,
    opt,
    qwen2,
    qwen3,
    roberta,
)
from oracle.families._checkpoint import Checkpoint
from oracle.families._config import Fields
from oracle.families._layout import Layout, assemble
from oracle.model import Model, ModelConfig, float_dtype

__all__ = ["FAMILIES", "Checkpoint", "build_model"]

Plan = Callable[[Fields, Checkpoint], tuple[ModelConfig, Layout]]

FAMILIES: Mapping[str, Plan] = {
    "albert": albert.plan,
    "bert": bert.plan,
    "distilbert": distilbert.plan,
    "electra": electra.plan,
    "gemma2": gemma2.plan,
    "gpt2": gpt2.plan,
    "gpt_neox": gpt_neox.plan,
    "llama": llama.plan,
    "mistral": mistral.plan,
    "opt": opt.plan,
    "qwen2": qwen2.plan,
    "qwen3": qwen3.plan,
    "roberta": roberta.plan,
}
"""`model_type` of a configuration to the function that says what the model is and where its parts stand."""


def build_model(checkpoint: Checkpoint, *, dtype: DTypeLike = "float32") -> Model:
    """The Model of a checkpoint, in "float32", "float64" or "longdouble".

    Tensors stored in `dtype` are shared, not copied, and the others are converted one at a time. An unknown
    `model_type`, an option that is not supported and any tensor that is missing, unexpected or of another
    shape raise InputError; nothing near is put in the place of what is unknown.
    """
    wanted = float_dtype(dtype)
    fields = Fields(checkpoint.config, checkpoint.config_source)
    model_type = fields.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        fields.refuse(
            "model_type",
            expected=" or ".join(FAMILIES),
            todo="Other architectures are not supported, and none is approximated by another.",
        )
    fields.absent("pruned_heads", "Save the model with all of its heads.")
    fields.absent("quantization_config", "Save the model dequantised.")
    fields.absent("per_layer_config", "Layers of different settings are not supported.")
    fields.absent("transformers_weights", "Save the model anew: its weights are in a file of another name.")
    settings, layout = FAMILIES[model_type](fields, checkpoint)
    if settings.causal:
        fields.on("is_causal", "Rows that see the future are not supported in this family.")
        settings = replace(settings, bos_id=_bos_id(fields, checkpoint, settings.vocab_size))
    return assemble(checkpoint, settings, layout, wanted)


def _bos_id(fields: Fields, checkpoint: Checkpoint, vocab_size: int) -> int | None:
    """BOS by the tokenizer or else by the configuration; None where it has no row in the embedding."""
    named = checkpoint.special_ids.get("bos_token", fields.get("bos_token_id"))
    return named if type(named) is int and 0 <= named < vocab_size else None
