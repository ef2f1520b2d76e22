"""The cases that people in this field bring, each with the answer that was fixed for it."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from oracle_models import CLS, PAD, SEP, random_model, random_rows
from wording import refused

import oracle
from oracle import (
    forward,
    forward_batch,
    group_words,
    head_summed_norm,
    merge_words,
    norm_odds_ratio,
    open_rows,
    read_attention,
    sink_share,
    undeclared_sinks,
    value_norm_ratio,
    weight_share,
    weighted_rows,
)
from oracle.activations import gelu, gelu_tanh
from oracle.block import feed_forward
from oracle.trace import KEEP_ALL

# --- Numbers that can be checked by hand ----------------------------------------------------------


def test_a_row_that_is_all_sink_has_share_one_and_undefined_content():
    row, sinks = [[1.0, 0.0, 0.0]], [True, False, False]
    assert sink_share(row, sinks).tolist() == [1.0]
    assert sink_share(row, sinks, [0.6, 1.0, 1.0]).tolist() == [1.0]
    ratio = norm_odds_ratio(row, sinks, [0.6, 1.0, 1.0])
    assert np.isnan(ratio).sum() == 1


def test_share_95_with_sink_norm_06_is_919_not_73():
    row, sinks, norms = [[0.95, 0.03, 0.02]], [True, False, False], [0.6, 1.0, 1.0]
    share = sink_share(row, sinks, norms).item()
    assert share == pytest.approx(0.95 * 0.6 / (0.95 * 0.6 + 0.05), rel=1e-15)
    assert f"{share:.3f}" == "0.919"
    assert norm_odds_ratio(row, sinks, norms).item() == pytest.approx(0.6, rel=1e-15)


# --- Attention arrays from elsewhere ----------------------------------------------------------------


def hugging_face_bert(attn_implementation):
    """A tiny BERT of transformers with the attentions it gives for four tokens, dropout on under eager."""
    torch, transformers = (
        pytest.importorskip(name, reason='the reference needs pip install "sinkscope[reference]"')
        for name in ("torch", "transformers")
    )
    config = transformers.BertConfig(
        vocab_size=61,
        hidden_size=15,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=7,
        attention_probs_dropout_prob=0.3,
    )
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    model = transformers.BertModel._from_config(config, attn_implementation=attn_implementation)

    def attentions(train):
        model.train(train)
        return model(torch.tensor([[CLS, 9, 4, SEP]]), output_attentions=True).attentions

    return attentions


@pytest.mark.parametrize("given", [(None, None), (), None], ids=["version 4", "version 5", "not asked for"])
def test_hugging_face_under_sdpa_gives_no_rows(given):
    with refused("attention", 'attn_implementation="eager"', "sdpa and flash return no rows"):
        read_attention(given)


def test_hugging_face_itself_under_sdpa_and_eager():
    with refused("attention", 'attn_implementation="eager"'):
        read_attention(hugging_face_bert("sdpa")(train=False))
    attentions = hugging_face_bert("eager")
    read = read_attention(attentions(train=False))
    assert read.attention.shape == (1, 2, 3, 4, 4)
    with refused("attention", "the worst of", "eval mode (dropout"):
        read_attention(attentions(train=True))


def test_rows_with_dropout_on_are_refused_with_the_worst_row():
    rows = random_rows(np.random.default_rng(1), 2, 3, 5, 5)
    factors = np.random.default_rng(2).uniform(0.945, 1.055, (2, 3, 5, 1))
    factors[1, 2, 4] = 1.056
    with refused("attention", "a sum of 1.056 at layer 1, head 2, query 4", "eval mode"):
        sink_share(rows * factors, np.arange(5) == 0)
    with refused("attention", "a sum of 1.056 at text 0, layer 1, head 2, query 4", "eval mode"):
        read_attention(rows * factors)


def test_float16_rows_summing_to_10002_are_closed_and_counted():
    rows = random_rows(np.random.default_rng(3), 2, 3, 5, 5)
    half = (rows * 1.0002).astype(np.float16)
    sums = half.astype(np.float64).sum(axis=-1)
    assert (sums > 1.0001).any()
    read = read_attention(half)
    assert read.attention.dtype == np.float64
    assert read.closed == (sums != 1).sum() > 0
    assert any("rows closed to sum to one" in note for note in read.notes)
    np.testing.assert_allclose(read.attention.sum(axis=-1), 1, rtol=0, atol=1e-15)


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf], ids=["negative", "NaN", "infinity"])
def test_a_wrong_weight_names_layer_head_and_query(wrong):
    rows = random_rows(np.random.default_rng(4), 2, 3, 5, 5)
    rows[1, 2, 4, 0] = wrong
    for call in (lambda: sink_share(rows, np.arange(5) == 0), lambda: read_attention(rows)):
        with refused("attention", f"{wrong} at", "layer 1, head 2, query 4, key 0"):
            call()


def test_a_row_of_zeros_is_flagged_and_nothing_is_replaced():
    rows = np.array([[0, 0, 0, 0], [0, 0.5, 0.5, 0]])
    weights = weighted_rows(rows)
    assert np.isnan(weights[0]).all()
    np.testing.assert_array_equal(weights[1], rows[1])
    assert np.isnan(sink_share(rows, [1, 0, 0, 0])).tolist() == [True, False]
    square = np.vstack([rows, [0.25] * 4, [1, 0, 0, 0]])
    read = read_attention(square[None])
    assert read.undefined == 1
    np.testing.assert_array_equal(read.attention[0, 0, 0], square)


LEFT_PADDED = np.array([0, 0, 1, 1, 1], bool)


@pytest.mark.parametrize("filler", ["uniform", "NaN", "zeros"])
def test_left_padding_causal_padding_queries_are_invalid(filler):
    real = random_rows(np.random.default_rng(5), 2, 3, 3, 3) * np.tri(3)
    real /= real.sum(axis=-1, keepdims=True)
    rows = np.full((2, 3, 5, 5), {"uniform": 0.2, "NaN": np.nan, "zeros": 0.0}[filler])
    rows[..., 2:, :] = 0
    rows[..., 2:, 2:] = real
    visible = np.outer(LEFT_PADDED, LEFT_PADDED) & np.tri(5, dtype=bool)
    read = read_attention(rows, visible=visible)
    assert not read.visible[0, :2].any()
    assert read.undefined == 0
    np.testing.assert_allclose(read.attention[0, ..., 2:, 2:], real, rtol=1e-15)
    shares = sink_share(rows, np.arange(5) == 2, None, visible)
    assert np.isnan(shares[..., :2]).all()
    np.testing.assert_allclose(shares[..., 2:], sink_share(real, np.arange(3) == 0), rtol=1e-15)


def test_left_padding_real_rows_equal_the_unpadded_run():
    model = random_model()
    trace = forward(model, [PAD, PAD, CLS, 9, SEP], mask=LEFT_PADDED)
    alone = forward(model, [CLS, 9, SEP])
    np.testing.assert_allclose(trace.attention[..., 2:, 2:], alone.attention, rtol=0, atol=1e-14)
    shares = sink_share(trace.attention, trace.sink_mask, trace.value_norm, trace.visible)
    assert np.isnan(shares[..., :2]).all()
    expected = sink_share(alone.attention, alone.sink_mask, alone.value_norm)
    np.testing.assert_allclose(shares[..., 2:], expected, rtol=1e-12)


def measured(trace, count):
    """Every metric of one trace, at its first `count` tokens."""
    attention, sinks, seen = trace.attention, trace.sink_mask, trace.visible
    summed = head_summed_norm(attention, trace.transformed_gram)
    norms = {"value": trace.value_norm, "transformed": trace.transformed_norm}
    groups = [[0], [1, 2], *([i] for i in range(3, count))]
    merged = merge_words(weighted_rows(attention, trace.value_norm, seen), groups)
    return {
        "share": sink_share(attention, sinks, None, seen)[..., :count],
        **{f"share {k}": sink_share(attention, sinks, norm, seen)[..., :count] for k, norm in norms.items()},
        **{f"r {k}": norm_odds_ratio(attention, sinks, norm, seen)[..., :count] for k, norm in norms.items()},
        **{f"norm {k}": value_norm_ratio(norm, sinks, seen) for k, norm in norms.items()},
        "head-summed share": weight_share(summed, sinks, seen)[..., :count],
        "words": merged,
        "undeclared": np.array([item[2] for item in undeclared_sinks(attention, sinks, seen)]),
    }


def test_22_real_tokens_alone_and_followed_by_two_pads():
    model = random_model()
    ids = [CLS, *np.random.default_rng(6).integers(4, 61, 20), SEP]
    alone = measured(forward(model, ids, keep=KEEP_ALL), 22)
    (padded,) = forward_batch(model, [[*ids, PAD, PAD]], [[1] * 22 + [0] * 2], keep=KEEP_ALL)
    after = measured(padded, 22)
    assert len(alone) == len(after) == 10
    for name, expected in alone.items():
        assert after[name].shape == expected.shape, name
        np.testing.assert_allclose(after[name], expected, rtol=1e-11, err_msg=name)


@pytest.mark.parametrize("kind", ["numpy", "torch", "list", "nested list", "read-only", "not contiguous"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_arrays_of_every_kind_and_dtype_are_the_same_rows(kind, dtype):
    torch = pytest.importorskip("torch", reason='the reference needs pip install "sinkscope[reference]"')
    rows = random_rows(np.random.default_rng(7), 2, 1, 3, 5, 5)  # (layer, batch, head, query, key)
    rounded = rows.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    given = {
        "numpy": lambda: rounded,
        "torch": lambda: tuple(torch.tensor(rows).to(getattr(torch, dtype))),
        "list": lambda: list(rounded),
        "nested list": lambda: rounded.astype(np.float64).tolist(),
        "read-only": lambda: rounded.copy(),
        "not contiguous": lambda: np.asfortranarray(rounded)[::-1][::-1],
    }[kind]()
    if kind == "read-only":
        given.flags.writeable = False
    read = read_attention(given)
    wide = rounded.astype(np.float64).swapaxes(0, 1)
    np.testing.assert_allclose(read.attention, wide / wide.sum(axis=-1, keepdims=True), rtol=0, atol=1e-15)


def test_what_a_bare_4d_array_means_is_said_and_a_contradiction_is_refused_with_both_readings():
    rows = random_rows(np.random.default_rng(8), 14, 3, 5, 5)
    assert read_attention(rows).notes[0] == "axes read as (layer, head, query, key) from shape (14, 3, 5, 5)"
    both = "(layer, head, query, key) or (batch, head, query, key)"
    with refused("attention", "6 on the layer axis", "found 14", both):
        read_attention(rows, n_layers=6)
    with refused("attention", "7 on the key axis", "5", both):
        read_attention(rows, n_keys=7)
    assert read_attention(rows, layout="batch head query key", n_layers=1).attention.shape == (14, 1, 3, 5, 5)


# --- Models and files -------------------------------------------------------------------------------


def test_longer_than_the_positions_is_an_error_with_both_lengths_and_cutting_is_a_named_option():
    model = random_model(max_positions=11)
    with refused("text", "at most 11 tokens", "12 tokens", "truncate"):
        forward(model, [9] * 12)
    assert len(forward(model, [9] * 12, truncate=True).tokens) == 11


def test_gelu_and_its_tanh_form_differ_by_47e_4_and_the_config_decides():
    x = np.linspace(-6, 6, 200001)
    assert np.abs(gelu(x) - gelu_tanh(x)).max() == pytest.approx(4.7e-4, abs=0.05e-4)
    model = random_model()
    tanh = replace(model, config=replace(model.config, activation="gelu_new"))
    states = forward(model, [CLS, 9, SEP]).hidden_states, forward(tanh, [CLS, 9, SEP]).hidden_states
    np.testing.assert_array_equal(states[0][0], states[1][0])
    assert np.abs(states[0][1] - states[1][1]).max() > 1e-6
    hidden = np.random.default_rng(9).standard_normal((2, 13))
    assert not np.array_equal(
        *(feed_forward(hidden, model.layers[0], m.config.activation) for m in (model, tanh))
    )


# --- Text -------------------------------------------------------------------------------------------

TEXTS = {
    "nothing": ("", [], 0),
    "white space": ("   ", [], 0),
    "punctuation only": ("...!!!", ["~...!!!"], 0),
    "one word of 130 letters": ("x" * 130, ["x" * 130], 1),
    "emoji": ("😀 👩\u200d🚀 flew!", ["😀", "👩\u200d🚀", "flew", "~!"], 0),
    "emoji only": ("😀", ["😀"], 1),
    "CJK": ("你好，世界。", ["你好，世界", "~。"], 1),
    "combining marks": ("e\u0301te\u0301 cafe\u0301!", ["e\u0301te\u0301", "cafe\u0301", "~!"], 0),
    "zero-width joiner": ("a\u200db c", ["a\u200db", "c"], 0),
    "zero-width joiner only": ("\u200d", [], 0),
    "literal [SEP]": ("one [SEP] two", ["one", "@[SEP]", "two"], 0),
    "literal <s>": ("one <s> two", ["one", "~<", "s", "~>", "two"], 0),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(minilm, name):
    text, expected, undefined = TEXTS[name]
    trace = forward(minilm, text)
    marks = {"word": "", "punctuation": "~", "sink": "@"}
    units = group_words(trace)
    assert [marks[unit.kind] + unit.label for unit in units[1:-1]] == expected
    assert [unit.label for unit in (units[0], units[-1])] == ["[CLS]", "[SEP]"]
    shares = sink_share(trace.attention, trace.sink_mask, trace.value_norm, trace.visible)
    assert ((shares >= 0) & (shares <= 1)).all()
    opened = open_rows({"attention": trace.attention}, units, range(6))
    assert opened.undefined == undefined
    words = [label for label in expected if label[0] not in "~@"]
    assert list(opened.words) == ([] if undefined else words)
    assert bool(trace.notes) == (name == "literal [SEP]")


def test_a_literal_sep_is_reported(minilm):
    trace = forward(minilm, "one [SEP] two", keep=())
    assert trace.notes == ("the text itself contains [SEP] (token 2); it counts as a special token",)
    assert np.flatnonzero(trace.sink_mask).tolist() == [0, 2, 4]


def test_a_file_in_cp1252_read_as_utf8_is_refused(minilm):
    text = "caf\u00e9".encode("cp1252").decode("utf-8", errors="surrogateescape")
    with refused("text", "valid Unicode", "surrogates not allowed", "own encoding"):
        forward(minilm, text)


def test_a_line_of_100000_words_is_refused_and_cut_only_when_asked(minilm):
    text = "word " * 100_000
    with refused("text", "at most 512 tokens", "100002 tokens"):
        forward(minilm, text)
    trace = forward(minilm, text, truncate=True, keep=())
    assert trace.tokens == ("[CLS]", *["word"] * 510, "[SEP]")


@pytest.mark.parametrize("text", ["", "[SEP] [CLS] [SEP]"])
def test_special_tokens_only_have_no_content(minilm, text):
    trace = forward(minilm, text)
    assert trace.sink_mask.all()
    assert (sink_share(trace.attention, trace.sink_mask) == 1).all()
    count = trace.attention[..., 0].size
    assert np.isnan(norm_odds_ratio(trace.attention, trace.sink_mask, trace.value_norm)).sum() == count
    assert np.isnan(value_norm_ratio(trace.value_norm, trace.sink_mask)).all()
    opened = oracle.open_rows({"attention": trace.attention}, group_words(trace), [0])
    assert opened.words == ()
    assert opened.undefined == 0


def test_words_from_pieces_keys_summed_queries_averaged():
    rows = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.7, 0.1, 0.1, 0.1]]
    merged = merge_words(rows, [[0], [1, 2], [3]])
    np.testing.assert_allclose(merged, [[0.1, 0.5, 0.4], [0.325, 0.5, 0.175], [0.7, 0.2, 0.1]], rtol=1e-15)
