from __future__ import annotations

import numpy as np
import pytest
from oracle_models import CLS, SEP, letter_tokenizer, random_model
from wording import refused

from oracle import Trace, forward
from oracle.trace import KEEP_ALL, KEEP_DEFAULT

IDS = [CLS, 9, 4, 44, 21, 17, SEP]
SHAPES = {
    "scores": (2, 3, 7, 7),
    "attention": (2, 3, 7, 7),
    "queries": (2, 3, 7, 5),
    "keys": (2, 3, 7, 5),
    "values": (2, 3, 7, 5),
    "value_norm": (2, 3, 7),
    "transformed_norm": (2, 3, 7),
    "hidden_states": (3, 7, 13),
    "transformed_gram": (2, 7, 3, 3),
}
WIDE = {"value_norm", "transformed_norm", "transformed_gram"}


def test_every_array_has_a_property_of_its_name():
    assert set(SHAPES) == set(KEEP_ALL)
    assert set(KEEP_ALL) - set(KEEP_DEFAULT) == {"transformed_gram"}
    assert all(isinstance(getattr(Trace, name), property) for name in KEEP_ALL)


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
def test_shapes_and_dtypes(dtype):
    trace = forward(random_model().astype(dtype), IDS, keep=KEEP_ALL)
    for name, shape in SHAPES.items():
        array = getattr(trace, name)
        assert array.shape == shape, name
        assert array.dtype == (np.result_type(dtype, np.float64) if name in WIDE else dtype), name


@pytest.mark.parametrize("name", KEEP_ALL)
def test_what_was_not_kept_says_how_to_keep_it(name):
    trace = forward(random_model(), IDS, keep=[other for other in KEEP_ALL if other != name])
    with refused(f"trace.{name}", f'keep=(..., "{name}")'):
        getattr(trace, name)


@pytest.mark.parametrize("name", KEEP_ALL)
def test_one_array_kept_alone_is_the_same_array(name):
    model = random_model()
    alone, full = (forward(model, IDS, keep=keep) for keep in ((name,), KEEP_ALL))
    np.testing.assert_array_equal(getattr(alone, name), getattr(full, name))
    with refused(f"trace.{'keys' if name == 'scores' else 'scores'}", f"only {name}"):
        _ = alone.keys if name == "scores" else alone.scores


def test_nothing_kept_is_a_trace_without_arrays():
    trace = forward(random_model(), IDS, keep=())
    assert trace.token_ids.tolist() == IDS
    with refused("trace.attention", "only nothing"):
        _ = trace.attention


def test_keep_reads_a_string_of_names():
    trace = forward(random_model(), IDS, keep="attention,keys")
    assert trace.attention.shape == SHAPES["attention"]
    assert trace.keys.shape == SHAPES["keys"]


def test_unknown_names_are_refused():
    with refused("keep", "scores, attention", "logits, rows"):
        forward(random_model(), IDS, keep=("attention", "rows", "logits"))


def test_a_trace_of_ids_says_what_went_in():
    trace = forward(random_model(), IDS)
    assert trace.tokens == tuple(f"#{i}" for i in IDS)
    assert trace.token_ids.tolist() == IDS
    assert trace.text is None
    assert trace.offsets is None
    assert trace.mask.tolist() == [True] * 7
    assert trace.visible.shape == (7, 7)
    assert trace.visible.all()
    assert np.flatnonzero(trace.sink_mask).tolist() == [0, 6]


def test_a_trace_of_a_text_keeps_the_text_its_offsets_and_its_notes():
    trace = forward(random_model(tokenizer=letter_tokenizer()), "ab [CLS]")
    assert trace.text == "ab [CLS]"
    assert trace.tokens == ("[CLS]", "a", "##b", "[CLS]", "[SEP]")
    assert trace.offsets == ((0, 0), (0, 1), (1, 2), (3, 8), (0, 0))
    assert len(trace.notes) == 1
    assert np.flatnonzero(trace.sink_mask).tolist() == [0, 3, 4]


def test_the_arrays_stay_out_of_the_representation():
    assert "array([[[" not in repr(forward(random_model(), IDS))
