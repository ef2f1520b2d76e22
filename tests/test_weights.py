"""Models told apart by their weights alone."""

from dataclasses import replace

from oracle_models import letter_tokenizer, random_model

from validation.weights import weights_hash


def test_weights_are_told_apart_by_every_array():
    model = random_model(0, tokenizer=letter_tokenizer())
    assert weights_hash(model) == weights_hash(random_model(0))
    assert weights_hash(model) != weights_hash(random_model(1))
    moved = model.layers[1].down.bias.copy()
    moved[3] += 1e-12
    layers = (model.layers[0], replace(model.layers[1], down=model.layers[1].down._replace(bias=moved)))
    assert weights_hash(model) != weights_hash(replace(model, layers=layers))
    assert weights_hash(model) != weights_hash(replace(model, layers=model.layers[::-1]))
    turned = replace(model.embeddings, words=model.embeddings.words.reshape(13, 61))
    assert weights_hash(model) != weights_hash(replace(model, embeddings=turned))
    assert weights_hash(model) != weights_hash(model.astype("float32"))
