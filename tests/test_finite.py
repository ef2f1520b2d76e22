"""Models whose forward pass is not finite: refused with the model, the tensor and its layer, on every way."""

import dataclasses

import numpy as np
import pytest
from text_models import small_model

from oracle import InputError
from validation import commands, forward_checks
from validation.audit import audit
from validation.lengths.measuring import measure_lengths
from validation.measuring import measure
from validation.progress import silent

TEXTS = ["the doctor saw the nurse .", "she saw a donkey walk !"]
WAYS = {
    "measure": lambda model: measure(model, TEXTS, engine="oracle"),
    "audit": lambda model: audit(model, TEXTS, engine="oracle"),
    "lengths": lambda model: measure_lengths(model, TEXTS, [6], engine="oracle"),
}


def with_value(number, layer=1, tensor="value"):
    """The small model with one weight of a layer replaced."""
    model = small_model()
    changed = getattr(model.layers[layer], tensor)
    weight = changed.weight.copy()
    weight[2, 3] = number
    layers = list(model.layers)
    layers[layer] = dataclasses.replace(layers[layer], **{tensor: changed._replace(weight=weight)})
    return dataclasses.replace(model, layers=tuple(layers))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_named(way, number):
    with pytest.raises(InputError) as caught:
        WAYS[way](with_value(number))
    assert str(caught.value) == (
        f"model small: expected finite weights; found {number} in layer 1 value weight (1 of 225 numbers are "
        "not finite). Fetch or save the model again."
    )


def test_the_first_tensor_in_the_order_of_use_is_named():
    model = with_value(np.nan, layer=0, tensor="down")
    with pytest.raises(InputError, match=r"nan in layer 0 down weight \(1 of 105"):
        measure(model, TEXTS, engine="oracle")
    words = np.full_like(model.embeddings.words, np.nan)
    model = dataclasses.replace(model, embeddings=dataclasses.replace(model.embeddings, words=words))
    with pytest.raises(InputError, match=r"nan in embeddings words \(300 of 300"):
        measure(model, TEXTS, engine="oracle")


def test_finite_weights_that_leave_the_range_are_told_apart():
    model = small_model().astype("float32")
    layer = model.layers[1]
    high = {name: getattr(layer, name)._replace(bias=np.full(15, 1e30, "f4")) for name in ("query", "key")}
    model = dataclasses.replace(model, layers=(model.layers[0], dataclasses.replace(layer, **high)))
    with pytest.raises(InputError, match=r"attention of layer 1 not finite, though all weights are.*float32"):
        measure(model, TEXTS, engine="oracle")


def test_validate_refuses_such_a_model_before_its_checks(monkeypatch):
    monkeypatch.setattr(commands, "load", lambda name, progress: with_value(np.nan))
    monkeypatch.setattr(forward_checks, "validate_forward", lambda *_, **__: pytest.fail("checks were begun"))
    with pytest.raises(InputError, match="model small: expected finite weights; found nan in layer 1 value"):
        commands.validate("small", commands.Texts("two texts", TEXTS), silent)
