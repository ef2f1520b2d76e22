"""The JSON report: strict, complete, written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import threading

import numpy as np
import pytest

from oracle import InputError
from validation.report import files
from validation.report.as_json import as_data, check_target, dumps, write
from validation.report.document import Check, Column, Document, Note, Table

TABLE = Table(
    "shares",
    "Shares",
    (Column("layer", "layer", "d"), Column("share", "share of the row", ".1%")),
    ((0, 1 / 3), (np.int64(1), float("nan")), (None, np.float32(0.1))),
    ("a note",),
)
DOCUMENT = Document(
    "measure",
    {"T": (9, np.int32(12)), "model_sha256": None, "array": np.array([0.5, np.nan]), "truth": np.True_},
    (TABLE, Check("rows", "1", "2", False), Check("sums", "1", "1", True), Note("verdict", "‖v‖ is short")),
)


def strict(text):
    def refuse(token):
        raise AssertionError(token)

    return json.loads(text, parse_constant=refuse)


def test_the_document_is_there_with_every_digit_and_nan_as_null():
    data = strict(dumps(DOCUMENT))
    assert data["format"] == 1
    assert data["command"] == "measure"
    assert data["provenance"] == {"T": [9, 12], "model_sha256": None, "array": [0.5, None], "truth": True}
    assert data["checks"] == {"held": 1, "failed": 1, "not_run": 0}
    assert data["parts"] == [
        {
            "kind": "table",
            "key": "shares",
            "title": "Shares",
            "shown": True,
            "columns": [
                {"key": "layer", "heading": "layer", "format": "d"},
                {"key": "share", "heading": "share of the row", "format": ".1%"},
            ],
            "rows": [
                {"layer": 0, "share": 1 / 3},
                {"layer": 1, "share": None},
                {"layer": None, "share": float(np.float32(0.1))},
            ],
            "undefined": [[1, "share"]],
            "intro": [],
            "notes": ["a note"],
        },
        {"kind": "check", "key": "rows", "expected": "1", "found": "2", "ok": False},
        {"kind": "check", "key": "sums", "expected": "1", "found": "1", "ok": True},
        {"kind": "note", "key": "verdict", "text": "‖v‖ is short"},
    ]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("inf"), "Infinity"),
        (-np.inf, "-Infinity"),
        (np.longdouble("0.5"), 0.5),
        (np.longdouble("nan"), None),
        (np.array([[True], [False]]), [[True], [False]]),
        ({1: (2, 3)}, {"1": [2, 3]}),
        ("\ud800", "\ud800"),
    ],
)
def test_values_take_a_form_that_json_has(value, plain):
    data = strict(dumps(Document("measure", {"value": value})))
    assert data["provenance"]["value"] == plain


def test_what_has_no_form_is_refused_and_not_guessed():
    with pytest.raises(TypeError, match="no JSON form for object"):
        as_data(Document("measure", {"value": object()}))


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    target.chmod(0o640)
    write(DOCUMENT, str(target))
    assert strict(target.read_text()) == as_data(DOCUMENT)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_new_file_gets_the_permissions_that_the_user_gives_new_files(tmp_path):
    old = os.umask(0o027)
    try:
        write(DOCUMENT, str(tmp_path / "out.json"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real" / "out.json")
    write(DOCUMENT, str(link))
    assert link.is_symlink()
    assert strict((tmp_path / "real" / "out.json").read_text()) == as_data(DOCUMENT)


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(DOCUMENT, str(pipe))
    reader.join(10)
    assert read == [dumps(DOCUMENT)]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("", "an empty name"),
        (".", "a directory"),
        ("missing/out.json", "no such directory"),
        ("file/out.json", "no such directory"),
        ("nul\0.json", "null byte"),
        ("x" * 300, "name too long"),
    ],
)
def test_impossible_places_are_refused_before_and_at_writing(tmp_path, monkeypatch, name, found):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=rf"(?i)--json: expected a file .* found .*{found}"):
        check_target(name)
    with pytest.raises(InputError):
        write(DOCUMENT, name)
    assert os.listdir(tmp_path) == ["file"]


def test_a_place_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda *_: False)
    with pytest.raises(InputError, match="no permission to write there"):
        check_target(str(tmp_path / "out.json"))


def test_a_failure_in_the_middle_keeps_the_old_file_and_leaves_no_other(tmp_path, monkeypatch):
    target = tmp_path / "out.json"
    target.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write(DOCUMENT, str(target))
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_two_writers_at_once_leave_one_whole_result(tmp_path):
    target = tmp_path / "out.json"
    documents = [Document("measure", {"who": who, "filling": [who] * 2000}) for who in range(2)]

    def work(document):
        for _ in range(8):
            write(document, str(target))

    threads = [threading.Thread(target=work, args=(document,)) for document in documents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if target.exists():
            assert strict(target.read_text()) in [as_data(document) for document in documents]
    for thread in threads:
        thread.join()
    assert os.listdir(tmp_path) == ["out.json"]
