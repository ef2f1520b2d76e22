"""Attention arrays from files and from memory: read as they say, or refused in one line."""

import io
import zipfile

import numpy as np
import pytest

from oracle import InputError, InputTypeError
from validation.arrays_file import read_arrays

TOKENS = ["[CLS]", "a", "b", "[SEP]", "[PAD]"]


def rows(*shape, seed=0):
    drawn = np.random.default_rng(seed).random(shape) + 0.01
    return drawn / drawn.sum(axis=-1, keepdims=True)


def norms(*shape):
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


def refused(match, source, **options):
    with pytest.raises((InputError, InputTypeError), match=match) as caught:
        read_arrays(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_npz_file_with_everything(tmp_path):
    attention, norm = rows(2, 3, 5, 5), norms(2, 3, 5)
    file = tmp_path / "rows.npz"
    visible = np.ones((5, 5), bool)
    arrays = {
        "value_norm": norm,
        "transformed_norm": 2 * norm,
        "tokens": TOKENS,
        "visible": visible,
        "extra": [1],
    }
    np.savez(file, attention=attention, **arrays)
    for source in (file, str(file), {"attention": attention, **arrays}):
        read = read_arrays(source)
        np.testing.assert_allclose(read.rows.attention, attention[None], rtol=1e-15)
        np.testing.assert_array_equal(read.norms["value_norm"], norm[None])
        np.testing.assert_array_equal(read.norms["transformed_norm"], 2 * norm[None])
        assert read.tokens == (tuple(TOKENS),)
        assert read.sinks.tolist() == [[True, False, False, True, False]]
        assert "axes read as (layer, head, query, key) from shape (2, 3, 5, 5)" in read.notes
        assert "ignored arrays: extra" in read.notes


def test_bare_rows_need_a_sink_that_they_can_name():
    read = read_arrays(rows(2, 3, 5, 5), sink="first")
    assert read.sinks.tolist() == [[True, False, False, False, False]]
    assert read.tokens[0][4] == "position 4"
    assert read.norms == {}
    assert read_arrays(rows(2, 3, 5, 5), sink="1,4").sinks.sum() == 2
    refused("special, but no token names. Choose --sink first", rows(2, 3, 5, 5))
    refused("special, but no known special token", {"attention": rows(2, 3, 2, 2), "tokens": ["a", "b"]})
    refused("positions from 0 to 4", rows(2, 3, 5, 5), sink="7")


def test_axes_of_norms_follow_those_of_attention():
    five = rows(2, 4, 3, 5, 5)  # (layer, batch, head, query, key)
    read = read_arrays({"attention": five, "value_norm": norms(2, 4, 3, 5)}, sink="first")
    assert read.rows.attention.shape == (4, 2, 3, 5, 5)
    np.testing.assert_array_equal(read.norms["value_norm"][3, 1], norms(2, 4, 3, 5)[1, 3])
    per_layer = {"attention": list(five), "value_norm": norms(2, 4, 3, 5)}
    np.testing.assert_array_equal(
        read_arrays(per_layer, sink="first").norms["value_norm"], read.norms["value_norm"]
    )
    batch = {"attention": rows(4, 3, 5, 5), "value_norm": norms(4, 3, 5)}
    read = read_arrays(batch, sink="first", layout="batch head query key")
    assert read.norms["value_norm"].shape == (4, 1, 3, 5)
    np.testing.assert_array_equal(read.norms["value_norm"][:, 0], batch["value_norm"])
    one = read_arrays({"attention": rows(3, 5, 5), "value_norm": norms(3, 5)}, sink="first")
    np.testing.assert_array_equal(one.norms["value_norm"][0, 0], norms(3, 5))


def test_padding_of_a_batch_by_visible_or_by_a_mask_of_tokens():
    attention = rows(1, 2, 3, 5, 5)
    attention[:, 1, :, :, 4] = 0
    attention /= attention.sum(axis=-1, keepdims=True)
    real = np.array([[True] * 5, [True] * 4 + [False]])
    visible = real[:, :, None] & real[:, None, :]
    tokens = [["[CLS]", "a", "b", "c", "[SEP]"], TOKENS]
    read = read_arrays({"attention": attention, "visible": visible, "tokens": tokens})
    assert read.sinks.tolist() == [[True, False, False, False, True], [True, False, False, True, False]]
    np.testing.assert_array_equal(read.rows.visible, visible)
    one = read_arrays({"attention": attention[:, 1], "visible": real[1], "tokens": TOKENS})
    np.testing.assert_array_equal(one.rows.visible[0], visible[1])


def test_a_mask_of_real_tokens_of_a_batch():
    """Hugging Face's own attention_mask, (batch, key), where it cannot be a mask (query, key)."""
    attention = rows(1, 2, 3, 5, 5)
    real = np.array([[1] * 5, [1, 1, 1, 1, 0]])
    attention *= real[None, :, None, None, :]
    attention /= attention.sum(axis=-1, keepdims=True)
    read = read_arrays({"attention": attention, "visible": real}, sink="first")
    np.testing.assert_array_equal(read.rows.visible, (real[:, :, None] * real[:, None, :]).astype(bool))
    assert read.layout == "layer batch head query key"
    message = refused("visible: expected a mask", {"attention": attention[0], "visible": real}, sink="first")
    assert "for 1 text; found shape (2, 5)" in message
    assert "batch head query key" in message
    square = rows(1, 5, 1, 5, 5)  # five texts of five tokens: the mask could be either
    causal = np.tri(5)
    square *= causal
    square /= square.sum(axis=-1, keepdims=True)
    refused("could|one way", {"attention": square, "visible": causal}, sink="first")
    read = read_arrays({"attention": square, "visible": causal[None]}, sink="first")
    np.testing.assert_array_equal(read.rows.visible, np.broadcast_to(causal.astype(bool), (5, 5, 5)))


def test_a_mask_of_real_tokens_leaves_causal_rows_causal():
    attention = rows(2, 3, 5, 5) * np.tri(5)
    attention /= attention.sum(axis=-1, keepdims=True)
    bare = read_arrays(attention, sink="first")
    read = read_arrays({"attention": attention, "visible": np.ones(5)}, sink="first")
    np.testing.assert_array_equal(read.rows.visible, bare.rows.visible)
    assert read.notes == bare.notes


def test_vectors_in_place_of_norms_are_named():
    for name in ("value_norm", "transformed_norm"):
        source = {"attention": rows(2, 3, 5, 5), name: np.ones((2, 3, 5, 8))}
        message = refused(f"{name}: expected norms, .layer, head, key", source, sink="first")
        assert "np.linalg.norm" in message
        assert "vectors" in message


@pytest.mark.parametrize(
    ("shape", "axis"), [((0, 3, 5, 5), "layer"), ((2, 0, 5, 5), "head"), ((2, 0, 3, 5, 5), "text")]
)
def test_arrays_of_nothing_are_refused(shape, axis):
    refused(f"at least one {axis}; found none", np.zeros(shape), sink="first")


def test_a_sink_at_padding_names_its_text():
    attention = rows(1, 2, 3, 5, 5)
    real = np.array([[1] * 5, [0, 1, 1, 1, 1]])
    attention *= real[None, :, None, None, :]
    attention /= attention.sum(axis=-1, keepdims=True)
    source = {"attention": attention, "visible": real}
    message = refused("position 0, which is padding; the first real token is 1", source, sink="0")
    assert "(text 2)" in message


def test_tokens_may_be_bytes_or_ids():
    read = read_arrays({"attention": rows(1, 1, 2, 2), "tokens": np.array([b"[CLS]", b"a"])})
    assert read.sinks.tolist() == [[True, False]]
    read = read_arrays({"attention": rows(1, 1, 2, 2), "tokens": [101, 7]}, sink="token:101")
    assert read.sinks.tolist() == [[True, False]]


def special_notes(attention, tokens, sink):
    read = read_arrays({"attention": attention, "tokens": tokens}, sink=sink)
    return [note.partition(": ")[2] for note in read.notes if note.startswith("tokens that look special")]


def test_tokens_that_look_special_and_are_content_are_named():
    one, tokens = rows(2, 3, 5, 5), ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    said = special_notes(one, tokens, "0")
    assert said == ["[SEP] at 2 places; --sink 0,2,4 takes such tokens as sink too"]
    assert special_notes(one, tokens, "token:[SEP]") == [
        "[CLS] at 1 place; --sink 0,2,4 takes such tokens as sink too"
    ]
    for sink in ("special", "0,2,4", "none"):
        assert special_notes(one, tokens, sink) == []
    tokens = ["<s>", "a", "<|im_end|>", "<b>", "</s>"]
    said = special_notes(one, tokens, "special")
    assert said == ["<|im_end|> at 1 place; --sink 0,2,4 takes such tokens as sink too"]
    assert special_notes(one, ["a", "b", "<|", "|>", "<||>"], "first") == []


def test_special_content_of_a_batch_is_counted_over_its_texts_without_padding():
    attention = rows(1, 2, 3, 5, 5)
    attention[:, 1, :, :, 4] = attention[:, 1, :, 4] = 0
    attention[:, 1, :, :4] /= attention[:, 1, :, :4].sum(axis=-1, keepdims=True)
    tokens = [["<s>", "a", "b", "c", "</s>"], ["<s>", "a", "b", "</s>", "</s>"]]
    said = special_notes(attention, tokens, "first")
    assert said == ["</s> at 2 places; --sink special takes such tokens as sink"]
    tokens[0][2] = "<|x|>"
    said = special_notes(attention, tokens, "first")
    assert said == [
        "<|x|> at 1 place, </s> at 2 places; name their positions to take them as sink",
    ]


@pytest.mark.parametrize("tokens", [[0.5, 1.5], [["a", "b"], ["c"]], "ab", [[["a", "b"]]]])
def test_odd_tokens_are_refused(tokens):
    refused("tokens: expected strings or token ids", {"attention": rows(1, 1, 2, 2), "tokens": tokens})


def test_sizes_that_contradict_are_refused_with_both_readings():
    attention = rows(2, 3, 5, 5)
    message = refused("tokens has 4 keys, attention 5", {"attention": attention, "tokens": TOKENS[:4]})
    assert "(layer, head, query, key)" in message
    message = refused(
        "value_norm has 4 keys, attention 5",
        {"attention": attention, "value_norm": norms(2, 3, 4)},
        sink="first",
    )
    assert "layout=" in message
    refused("as many queries as keys, 5; found 1 queries", rows(2, 3, 1, 5), sink="first")
    refused(
        "tokens has 4 keys, attention 5",
        {"attention": attention, "tokens": TOKENS[:4], "value_norm": norms(2, 3, 5)},
    )
    message = refused("found shape", {"attention": attention, "value_norm": norms(3, 2, 5)}, sink="first")
    assert "value_norm of axes (layer 2, head 3, key 5)" in message
    assert "found shape (3, 2, 5)" in message
    assert "layout=" in message
    batch = {"attention": attention, "tokens": [TOKENS] * 2}
    message = refused("tokens for 1 text ", batch)
    assert "(layer, head, query, key)" in message
    assert len(read_arrays(batch, layout="batch head query key").tokens) == 2
    refused("expected", {"attention": attention, "value_norm": 3.0}, sink="first")


def test_a_missing_array_is_refused_with_what_is_there(tmp_path):
    np.savez(tmp_path / "rows.npz", rows=rows(1, 1, 2, 2), other=[1])
    refused("attention: expected an array of that name; found rows, other", tmp_path / "rows.npz")
    refused("found no arrays", {})


def test_nothing_pickled_is_loaded(tmp_path):
    file = tmp_path / "objects.npz"
    np.savez(file, attention=np.array([rows(1, 1, 2, 2), None], dtype=object))
    refused("pickled data, which is never loaded", file)
    pickled = tmp_path / "pickled.npz"
    pickled.write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07no data\x94.")
    refused("pickled data, which is never loaded", pickled)


def test_files_that_are_no_npz_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", rows(1, 1, 2, 2))
    refused(r"a single array \(.npy\)", tmp_path / "rows.npy")
    refused("no such file", tmp_path / "missing.npz")
    refused("directory", tmp_path)
    (tmp_path / "text.npz").write_text("layer head query key")
    refused("a file of another kind, it begins b'layer '", tmp_path / "text.npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    refused("damaged", tmp_path / "empty.npz")
    np.savez_compressed(tmp_path / "whole.npz", attention=rows(2, 3, 50, 50))
    data = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    refused("damaged", tmp_path / "cut.npz")
    spoiled = bytearray(data)
    spoiled[len(data) // 2] ^= 0xFF
    (tmp_path / "spoiled.npz").write_bytes(spoiled)
    refused("damaged|cannot read", tmp_path / "spoiled.npz")


def _npz(path, header=None, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        data = io.BytesIO()
        np.save(data, rows(1, 1, 9, 9))
        archive.writestr("attention.npy", header or data.getvalue())
    return bytearray(path.read_bytes())


def test_archives_that_cannot_be_unpacked_are_refused(tmp_path):
    file = tmp_path / "rows.npz"
    for place, value in ((6, 1), (8, 99)):  # flag "encrypted"; a compression that nobody knows
        data = _npz(file)
        central = data.index(b"PK\x01\x02")
        data[place] = data[central + place + 2] = value
        file.write_bytes(data)
        refused("cannot be unpacked", file)
    data = _npz(file, compression=zipfile.ZIP_LZMA)
    start = 30 + len("attention.npy") + 9
    data[start : start + 40] = b"\xff" * 40
    file.write_bytes(data)
    refused("damaged", file)
    for text in (b"{'descr': '<f8', (", b"{'descr': [(", b"{'a': 1 2}\n"):
        text = text.ljust(118)
        _npz(file, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        refused("damaged|cannot read", file)


def test_wrong_rows_are_refused_by_the_oracle():
    wrong = rows(1, 2, 3, 3)
    wrong[0, 1, 2] *= 1.05
    refused("a sum of 1.05 at .*head 1, query 2", {"attention": wrong}, sink="first")
    refused('attn_implementation="eager"', {"attention": [None, None]}, sink="first")
