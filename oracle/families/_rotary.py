"""Rotary positions of a configuration, in the fields of transformers 5 and in those of older releases."""

from __future__ import annotations

from collections.abc import Mapping

from oracle.families._config import Fields
from oracle.model import Rotary, RotaryScaling

__all__ = ["read_rotary"]


def read_rotary(
    fields: Fields,
    d_head: int,
    *,
    base: str = "rope_theta",
    part: str = "partial_rotary_factor",
    default_part: float = 1.0,
    whole: bool = False,
) -> Rotary:
    """The rotary positions of `rope_parameters`, or of `rope_scaling` with older fields, `base` and `part`.

    Kinds are "default", "linear" and "llama3"; another is refused by name, and so are settings that differ by
    layer and a part of a head that is not an even number of entries, or not the `whole`.
    """
    field = "rope_scaling" if fields.get("rope_scaling") else "rope_parameters"
    given = fields.get(field) or {}
    if not isinstance(given, Mapping):
        fields.refuse(field, expected="an object of named fields", todo="Correct it.")
    older = {"rope_theta": fields.get(base, 10000.0), "partial_rotary_factor": fields.get(part, default_part)}
    length, trained = fields.get("max_position_embeddings"), fields.get("original_max_position_embeddings")
    lengths = {"original_max_position_embeddings": length if trained is None else trained}
    merged = Fields({**older, **lengths, **given}, f"{fields.source}: {field}")
    for name, value in given.items():
        if isinstance(value, Mapping):
            merged.refuse(name, expected="one setting for all layers", todo="Others are not supported.")
    dims = int(d_head * merged.number("partial_rotary_factor"))
    if whole and dims != d_head:
        merged.refuse("partial_rotary_factor", expected="1", todo="This family turns whole heads.")
    if dims % 2 or not 0 < dims <= d_head:
        merged.refuse(
            "partial_rotary_factor",
            expected=f"a part of the {d_head} entries of a head that is an even number of them",
            todo="Odd numbers are not supported.",
        )
    scaling = _scaling(merged)
    if scaling is not None and scaling.original_positions is not None:
        trained_at = "original_max_position_embeddings"
        fields.alike(trained_at, field, merged.get(trained_at))
    return Rotary(merged.number("rope_theta"), dims, scaling)


def _scaling(merged: Fields) -> RotaryScaling | None:
    named = "rope_type" if merged.get("rope_type") is not None else "type"
    kind = merged.choice(named, "default", {kind: kind for kind in ("default", "linear", "llama3")})
    if kind == "default":
        return None
    factor = merged.number("factor")
    if kind == "linear":
        return RotaryScaling(factor)
    low, high = merged.number("low_freq_factor"), merged.number("high_freq_factor")
    if low >= high:
        merged.refuse(
            "high_freq_factor", expected=f"more than low_freq_factor ({low:g})", todo="Correct one."
        )
    return RotaryScaling(factor, merged.number("original_max_position_embeddings"), low, high)
