"""One checkpoint measured: rows by definition under three choices of the sink, loss, texts without rows."""

from math import log

import numpy as np
import pytest
from checkpoint_series import TEXTS, write_checkpoint
from text_models import small_model

import fastpath
from oracle import InputError, entropy_split, forward, load_model, perplexity
from validation.studies.collapse.measured import CONTROLS, SINK, TAKEN, Setting, measure_checkpoint

ALL = Setting((0, 1))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load_model(write_checkpoint(tmp_path_factory.mktemp("one") / "step0", 5))


def of_row(weights, taken):
    """Share, H, h and Hc of one row with one key taken as the sink, written out."""
    parts = np.delete(weights, taken)
    inner = parts / parts.sum()
    share = weights[taken]
    binary = -share * log(share) - (1 - share) * log(1 - share)
    return share, -(weights * np.log(weights)).sum(), binary, -(inner * np.log(inner)).sum()


def test_every_row_has_its_four_figures_under_each_choice(model):
    found = measure_checkpoint(model, TEXTS, ALL)
    wanted = {name: [] for name in TAKEN}
    layers = []
    for text in TEXTS:
        attention = forward(model, text).attention.astype(np.float64)
        for layer in range(2):
            for head in range(2):
                for query in range(8, len(text) + 1):
                    weights = attention[layer, head, query, : query + 1]
                    weights = weights / weights.sum()
                    layers.append(layer)
                    for name, key in zip(TAKEN, (0, query, query - 1), strict=True):
                        wanted[name].append(of_row(weights, key))
    assert found.layer.tolist() == layers
    assert TAKEN == (SINK, *CONTROLS)
    for name in TAKEN:
        np.testing.assert_allclose(np.array(found.rows[name]).T, wanted[name], rtol=0, atol=1e-12)
    assert found.lengths == (17, 15, 21)
    assert found.left_out == 3 * 2 * 2 * 7
    assert found.sinks == (("<s>", 0),)
    assert found.skipped == 0


def test_the_entropy_is_the_same_whichever_single_key_is_taken(model):
    rows = measure_checkpoint(model, TEXTS, ALL).rows
    for name in CONTROLS:
        np.testing.assert_allclose(rows[name].total, rows[SINK].total, rtol=0, atol=1e-12)
        assert np.abs(rows[name].share - rows[SINK].share).max() > 0.1


def test_both_layers_measure_the_same(model):
    ours, fast = (measure_checkpoint(model, TEXTS, ALL, **how) for how in ({}, {"measures": fastpath}))
    for name in TAKEN:
        np.testing.assert_allclose(fast.rows[name], ours.rows[name], rtol=0, atol=1e-12)


def test_the_loss_is_that_of_every_predicted_token(model):
    losses = [log(perplexity(model, text)) * len(text) for text in TEXTS]
    found = measure_checkpoint(model, TEXTS, ALL).loss
    assert found == pytest.approx(sum(losses) / sum(map(len, TEXTS)), rel=1e-6)


def test_layers_rows_and_sinks_are_those_of_the_setting(model):
    one = measure_checkpoint(model, TEXTS[:1], Setting((1,), sink="0,3", min_content_keys=12))
    assert set(one.layer.tolist()) == {1}
    assert len(one.layer) == 2 * 4  # queries 13 to 16 see 12 to 15 content keys
    assert one.sinks == (("<s>", 0), ("c", 3))
    attention = forward(model, TEXTS[0]).attention[1, :, 13:].astype(np.float64)
    split = entropy_split(attention, np.isin(np.arange(17), (0, 3)))
    np.testing.assert_allclose(one.rows[SINK].binary, split.binary.ravel(), rtol=0, atol=1e-6)


def test_texts_without_tokens_are_skipped_and_too_short_ones_leave_no_row(model):
    found = measure_checkpoint(model, ["", *TEXTS], ALL)
    assert found.skipped == 1
    assert found.lengths == (17, 15, 21)
    with pytest.raises(InputError, match="see at least 8 content keys; found none in 2 texts"):
        measure_checkpoint(model, ["abc", ""], ALL)


def test_errors_name_the_text(model):
    with pytest.raises(InputError, match="text 2 of 2: text: expected at most 32 tokens"):
        measure_checkpoint(model, [TEXTS[0], "ab" * 30], ALL)
    cut = measure_checkpoint(model, ["ab" * 30], Setting((0,), truncate=True))
    assert cut.lengths == (32,)
    with pytest.raises(InputError, match="text 1 of 1: tokenizer: expected the tokenizer"):
        measure_checkpoint(model, ["abcXdefgh"], ALL)


def test_a_token_that_some_texts_lack_is_no_sink_there(model):
    found = measure_checkpoint(model, ["aaaabbbbccccd", "aaaabbbbcccca"], Setting((0,), sink="token:d"))
    assert found.sinks == (("d", 13),)
    assert (found.rows[SINK].share == 0).sum() >= 2 * 6
    with pytest.raises(InputError, match="no token spelled 'z' in 1 text"):
        measure_checkpoint(model, ["aaaabbbbcccc"], Setting((0,), sink="token:z"))


def test_an_encoder_has_no_loss_and_all_its_rows():
    found = measure_checkpoint(small_model(), ["the doctor saw the nurse"], Setting((0, 1)))
    assert np.isnan(found.loss)
    assert len(found.layer) == 2 * 3 * 5
    assert found.sinks == (("[CLS]", 0), ("[SEP]", 6))
