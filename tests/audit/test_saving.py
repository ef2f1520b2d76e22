"""The saved distances: what is in the file, and that it is there as a whole or not at all."""

import json

import numpy as np
import pytest
from audit_rows import sink_and_content_apart

import oracle
from oracle import InputError
from validation.audit import audit_arrays
from validation.audit.saving import check_save, save_distances
from validation.report import files


@pytest.fixture(scope="module")
def distances():
    rows = sink_and_content_apart(texts=2)
    rows[1, 1, 3, 4] = np.eye(7)[0]
    return audit_arrays(rows, sink="0", layout="batch layer head query key").distances


def test_the_file_holds_every_matrix_with_its_rows_and_labels(distances, tmp_path):
    save_distances(distances, str(tmp_path / "d.npz"), {"sink": "0", "T": [7, 7], "layers": None})
    with np.load(tmp_path / "d.npz", allow_pickle=False) as file:
        held = dict(file)
    names = held["distances"].tolist()
    assert len(names) == 15
    assert "aitchison_sink_keep" in names
    assert "aitchison_sink_drop" not in names
    for name in names:
        metric, _, convention = name.rpartition("_")
        assert np.array_equal(held[name], distances.mean(metric, convention), equal_nan=True)
        assert held[f"{name}_rows"].shape == (16, 16)
    assert held["jsd_keep_rows"][11, 0] == 12
    assert held["jsd_drop_rows"][11, 0] == 11
    assert held["label"].tolist()[9] == "L1 H1"
    assert (held["layer"][9], held["head"][9]) == (1, 1)
    assert held["sink_share"].shape == held["content_entropy"].shape == (16,)
    about = json.loads(str(held["metadata"]))
    assert about["T"] == [7, 7]
    assert about["layers"] is None
    assert not any(array.dtype.hasobject for array in held.values())
    again = oracle.verdict_flips(held["jsd_keep"], held["jsd_drop"])
    assert again.triples == 16 * 105


def test_a_failure_in_the_middle_keeps_the_old_file(distances, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    place = tmp_path / "d.npz"
    place.write_bytes(b"old")
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InputError, match=r"--save: expected a file .* \(No space left on device\)"):
        save_distances(distances, str(place), {})
    assert place.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize(
    ("name", "found"), [("", "an empty name"), ("none/d.npz", "no such directory"), (".", "a directory")]
)
def test_impossible_places_are_refused_before_the_work(tmp_path, monkeypatch, name, found):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"--save: expected a file .*{found}"):
        check_save(name)


def test_what_is_read_is_never_replaced(tmp_path):
    rows = tmp_path / "rows.npz"
    rows.write_bytes(b"rows")
    with pytest.raises(InputError, match="a file that is read"):
        check_save(str(rows), [rows])
    for around in ("none/../rows.npz", "none/./../../" + tmp_path.name + "/rows.npz"):
        with pytest.raises(InputError, match="a file that is read"):
            check_save(str(tmp_path / around), [rows])
