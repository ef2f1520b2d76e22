from __future__ import annotations

from dataclasses import FrozenInstanceError

import ml_dtypes
import numpy as np
import pytest
from oracle_models import arrays_in as arrays
from oracle_models import random_model
from wording import refused

from oracle.model import Layer, Linear, float_dtype


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_a_cast_reaches_every_weight_and_keeps_the_rest(dtype):
    model = random_model()
    cast = model.astype(dtype)
    assert cast.dtype == dtype
    weights = arrays(cast.embeddings) + arrays(cast.layers)
    assert len(weights) == 5 + 16 * model.config.n_layers
    assert {weight.dtype for weight in weights} == {np.dtype(dtype)}
    assert isinstance(cast.layers[0], Layer)
    assert isinstance(cast.layers[1].up, Linear)
    assert cast.config is model.config
    assert cast.name == model.name


def test_a_cast_leaves_the_model_alone_and_rounds_once():
    model = random_model()
    before = [weight.copy() for weight in arrays(model.layers)]
    narrow = model.astype("float32")
    assert all(np.array_equal(a, b) for a, b in zip(arrays(model.layers), before, strict=True))
    for weight, rounded in zip(arrays(model.layers), arrays(narrow.layers), strict=True):
        np.testing.assert_array_equal(rounded, weight.astype(np.float32))
    widened = narrow.astype("longdouble")
    np.testing.assert_array_equal(widened.layers[0].query.weight, narrow.layers[0].query.weight)


def test_a_cast_to_the_same_dtype_is_the_same_model():
    model = random_model()
    assert model.astype("float64") is model


def test_a_model_cannot_be_changed_by_accident():
    with pytest.raises(FrozenInstanceError):
        random_model().name = "other"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("float32", np.float32),
        (np.float64, np.float64),
        (np.dtype("float32"), np.float32),
        ("longdouble", np.longdouble),
        (np.longdouble, np.longdouble),
    ],
)
def test_the_three_dtypes_by_name_and_by_type(given, kind):
    assert float_dtype(given) == kind


@pytest.mark.parametrize(
    "given", ["float16", "bfloat16", "double trouble", None, int, 3, object(), ml_dtypes.bfloat16]
)
def test_other_dtypes_are_refused(given):
    with refused("dtype", "float32 or float64 or longdouble"):
        float_dtype(given)
