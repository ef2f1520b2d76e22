"""The bundled sentences keep their promise; files of every kind are read or refused in one line."""

import os

import pytest

from oracle import InputError
from validation.texts import SENTENCES, TextLines, read_texts


def test_sentences_are_fourteen_of_six_to_fourteen_words():
    assert len(SENTENCES) == len(set(SENTENCES)) == 14
    assert all(6 <= len(sentence.split()) <= 14 for sentence in SENTENCES)


@pytest.mark.parametrize(
    "words", [("doctor", "nurse", " she "), ("scissors",), ("trophy", "suitcase", " it ")]
)
def test_the_three_asked_kinds_are_there(words):
    assert any(all(word in sentence for word in words) for sentence in SENTENCES)


@pytest.mark.parametrize(
    ("data", "texts", "blank"),
    [
        (b"one two\nthree\n", ["one two", "three"], 0),
        (b"one\r\n\r\n  \r\ntwo", ["one", "two"], 2),
        (b"one\rtwo\r", ["one", "two"], 0),
        (b"\n\none\n", ["one"], 2),
        ("\ufeffein Schluß\n".encode(), ["ein Schluß"], 0),
        ("a\u2028b\x0cc\x85d\n".encode(), ["a\u2028b\x0cc\x85d"], 0),
        ("日本語\n👩‍🔬 e\u0301\n".encode(), ["日本語", "👩‍🔬 e\u0301"], 0),
    ],
)
def test_lines_become_texts(tmp_path, data, texts, blank):
    file = tmp_path / "texts.txt"
    file.write_bytes(data)
    read = read_texts(file)
    assert read == texts
    assert isinstance(read, TextLines)
    assert read.blank_lines == blank
    assert read_texts(str(file)) == texts


def test_other_encodings_are_read_when_named(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_bytes("naïve “quotes”\n".encode("cp1252"))
    assert read_texts(file, encoding="cp1252") == ["naïve “quotes”"]
    file.write_bytes("zwei Wörter\n".encode("utf-16"))
    assert read_texts(file, encoding="utf-16") == ["zwei Wörter"]


def test_a_file_in_cp1252_names_byte_position_and_the_way_on(tmp_path):
    file = tmp_path / "old.txt"
    file.write_bytes(b"fine\nan na\xefve line\n")
    with pytest.raises(InputError) as caught:
        read_texts(file)
    message = str(caught.value)
    for part in (str(file), "utf-8", "0xef at position 10 (line 2)", "--encoding cp1252"):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (b" \n\n\t\n", "only blank lines"),
        (b"text\0more", "a NUL character at position 4"),
        (b"\xff\xfea\0b\0", "--encoding utf-16"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, data, found):
    file = tmp_path / "odd.txt"
    file.write_bytes(data)
    with pytest.raises(InputError, match=found) as caught:
        read_texts(file)
    assert "\n" not in str(caught.value)


def test_paths_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_texts(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="a directory"):
        read_texts(tmp_path)
    with pytest.raises(InputError, match="expected a readable text file"):
        read_texts("nul\0inside.txt")
    with pytest.raises(InputError, match="expected a readable text file"):
        read_texts(os.fspath(tmp_path / ("x" * 5000)))


def test_an_unknown_encoding_is_refused(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_bytes(b"text\n")
    for encoding in ("klingon", "rot13"):
        with pytest.raises(InputError, match="encoding: expected a text encoding"):
            read_texts(file, encoding=encoding)
