"""Configurations of every family with one field spoilt: refused in one line, or read right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from family_models import files_of, saved

from oracle import InputError, forward
from oracle.families import FAMILIES
from validation.random_configs import RANDOM_CONFIGS

pytest.importorskip("transformers", reason="needs the extra 'reference'")

SPOILT: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2,
    10**30,
    0.5,
    float("nan"),
    "x",
    [],
    [None] * 3,
    ["full_attention"] * 3,
    {},
    {"rope_type": "yarn"},
    {"a": {}},
)


def test_there_are_configurations_of_every_family() -> None:
    assert set(RANDOM_CONFIGS) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_spoilt_field_is_refused_or_read_right(family: str, tmp_path: Path) -> None:
    files = files_of(saved(tmp_path, family, RANDOM_CONFIGS[family][0]))
    fields = {*files.config, "rope_scaling", "rope_theta", "quantization_config"} - {"model_type"}
    said, built = [], 0
    for field in sorted(fields):
        for value in SPOILT:
            try:
                model = files.build({field: value})
            except InputError as error:
                said.append(str(error))
            else:
                trace = forward(model, [6, 7, 8], sink="none", keep="attention", truncate=True)
                np.testing.assert_allclose(trace.attention.sum(axis=-1), 1, rtol=1e-12)
                built += 1
    assert not any("\n" in message or len(message) > 4000 for message in said)
    assert len(said) > 50
    assert built > 50
