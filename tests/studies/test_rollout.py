"""Attention rollout against closed forms, by hand, and what the study says of it."""

import numpy as np
import pytest
from wording import refused

import oracle
from validation.report.document import Note, Table
from validation.studies.rollout import attention_rollout, normalised_entropy, run

ALL = np.ones((5, 5), bool)


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_of_uniform_rows_a_part_stays_that_halves_with_each_layer(layers):
    """A uniform row times a uniform row is uniform, so A^l = 2^-l I + (1 - 2^-l) / n."""
    keys = 5
    rolled = attention_rollout(np.full((layers, 3, keys, keys), 1 / keys))
    stays = 0.5**layers
    assert np.allclose(rolled[-1], stays * np.eye(keys) + (1 - stays) / keys, rtol=0, atol=1e-15)
    own, other = stays + (1 - stays) / keys, (1 - stays) / keys
    entropy = -(own * np.log(own) + (keys - 1) * other * np.log(other)) / np.log(keys)
    assert normalised_entropy(rolled[-1], ALL) == pytest.approx([entropy] * keys, abs=1e-14)


def test_two_layers_by_hand():
    """The later layer stands on the left: what its token takes, it takes of what the earlier one made."""
    first, second = np.array([[0, 1], [0, 1]]), np.array([[1, 0], [1, 0]])
    rolled = attention_rollout(np.array([[first], [second]], dtype=np.float32))
    assert rolled.dtype == np.float64
    assert np.array_equal(rolled[0], [[0.5, 0.5], [0, 1]])
    assert np.array_equal(rolled[1], [[0.5, 0.5], [0.25, 0.75]])


def test_heads_are_averaged_before_they_are_multiplied():
    swapped, kept = np.array([[0.0, 1], [1, 0]]), np.eye(2)
    assert np.array_equal(attention_rollout(np.array([[swapped, kept]]))[0], [[0.75, 0.25], [0.25, 0.75]])


def test_rows_of_a_mask_keep_to_it():
    visible = np.tril(np.ones((4, 4), bool))
    rows = visible / visible.sum(axis=1, keepdims=True)
    rolled = attention_rollout(np.broadcast_to(rows, (3, 2, 4, 4)))
    assert not rolled[:, ~visible].any()
    assert np.allclose(rolled.sum(axis=-1), 1, rtol=0, atol=1e-15)
    entropy = normalised_entropy(rolled[-1], visible)
    assert np.isnan(entropy[0])
    assert ((entropy[1:] > 0) & (entropy[1:] < 1)).all()


def test_part_of_a_text_is_refused():
    with refused("attention", "as many queries as keys", "shape (1, 1, 2, 3)"):
        attention_rollout(np.ones((1, 1, 2, 3)))


def test_the_study_on_a_real_model(minilm):
    (table,) = run(minilm, ["The doctor told the nurse.", "", "She paid and left the shop."])
    assert isinstance(table, Table)
    records = table.records()
    assert [row["layers"] for row in records] == ["0", "0-1", "0-2", "0-3", "0-4", "0-5"]
    assert {row["rows"] for row in records} == {6 + 7}
    assert all(0 < row["least"] <= row["median"] <= row["most"] <= 1 for row in records)


def test_its_figures_are_those_of_the_product_of_layers(minilm):
    """One text, written out: sums over paths through the layers, entropies term by term."""
    text = "The doctor told the nurse."
    trace = oracle.forward(minilm, text, keep=("attention",))
    rows = trace.attention.astype(np.float64).mean(axis=1) / 2 + np.eye(len(trace.tokens)) / 2
    rolled = np.einsum("fe,ed,dc,cb,ba,ak->fk", *rows[::-1])
    content = rolled[1:-1]
    entropy = -(content * np.log(content)).sum(axis=1) / np.log(len(trace.tokens))
    (table,) = run(minilm, [text])
    last = table.records()[-1]
    assert [last[name] for name in ("least", "median", "most")] == pytest.approx(
        [entropy.min(), np.median(entropy), entropy.max()], abs=1e-6
    )


def test_texts_without_content_give_no_row(minilm):
    (note,) = run(minilm, ["", "  "])
    assert isinstance(note, Note)
    assert "no row" in note.text
