"""Measured checkpoints in a file: every bit comes back, and nothing that is not whole is believed."""

import json

import numpy as np
import pytest
from checkpoint_series import figures, row
from wording import refused

from oracle import Unavailable
from validation.studies.collapse.measured import TAKEN, Measured
from validation.studies.collapse.store import Store, check_results, default_place

KEY = "a" * 64


def measured(seed=0, loss=1.25):
    rng = np.random.default_rng(seed)
    rows = {name: figures([row(share, rng.random(5)) for share in (*rng.random(6), 1.0)]) for name in TAKEN}
    return Measured(loss, np.arange(7, dtype=np.int32), rows, (17, 19), (("<s>", 0), ("\ud800", 3)), 4, 1)


def assert_same(found, wanted):
    assert (found.lengths, found.sinks, found.left_out, found.skipped) == (
        wanted.lengths,
        wanted.sinks,
        wanted.left_out,
        wanted.skipped,
    )
    np.testing.assert_array_equal(found.loss, wanted.loss)
    assert found.layer.dtype == np.int32
    np.testing.assert_array_equal(found.layer, wanted.layer)
    for name in TAKEN:
        for part, other in zip(found.rows[name], wanted.rows[name], strict=True):
            assert part.dtype == np.float64
            np.testing.assert_array_equal(part, other)


def test_what_is_put_there_comes_back_bit_for_bit(tmp_path):
    place = tmp_path / "new" / "found.jsonl"
    first = Store(place, KEY)
    assert first.get("w0") is None
    first.put("w0", measured(0))
    first.put("w1", measured(1, loss=float("nan")))
    for store in (first, Store(place, KEY)):
        assert_same(store.get("w0"), measured(0))
        assert_same(store.get("w1"), measured(1, loss=float("nan")))
        assert store.get("w2") is None
    assert len(place.read_text().splitlines()) == 2


def test_a_line_that_a_killed_run_cut_short_is_ignored_and_the_next_one_stands_apart(tmp_path):
    place = tmp_path / "found.jsonl"
    store = Store(place, KEY)
    store.put("w0", measured(0))
    store.put("w1", measured(1))
    data = place.read_bytes()
    for cut in (1, 2, 700, data.index(b"\n") - 1):
        place.write_bytes(data[:-cut])
        after = Store(place, KEY)
        assert_same(after.get("w0"), measured(0))
        # The line break alone is no part of what is hashed.
        assert (after.get("w1") is None) == (cut > 1)
        after.put("w2", measured(2))
        again = Store(place, KEY)
        assert_same(again.get("w0"), measured(0))
        assert_same(again.get("w2"), measured(2))


def test_lines_that_are_changed_or_something_else_are_passed_over(tmp_path):
    place = tmp_path / "found.jsonl"
    Store(place, KEY).put("w0", measured(0))
    whole = place.read_text()
    line = json.loads(whole)
    line["record"]["left_out"] += 1
    other = json.loads(whole)
    other["record"]["format"] = 0
    odd = ["", "nonsense", "[]", "{}", '{"sha256": 1, "record": 2}', json.dumps(line), json.dumps(other)]
    changed = json.dumps(line) + "\n"  # a file of ours by how it begins
    place.write_text(changed + "\n".join(odd) + "\n\x00\xff\n")
    store = Store(place, KEY)
    assert store.get("w0") is None
    (note,) = store.notes()
    assert note.text.startswith("8 lines of found.jsonl cannot be read")
    place.write_text(changed + "\n".join(odd) + "\n" + whole)
    assert_same(Store(place, KEY).get("w0"), measured(0))
    assert Store(place, "b" * 64).get("w0") is None


def test_a_place_that_cannot_be_used_is_refused(tmp_path):
    with refused("--results", "no plain file"):
        Store(tmp_path, KEY)
    (tmp_path / "file").write_text("")
    with refused("--results", "file"):
        Store(tmp_path / "file" / "found.jsonl", KEY)
    store = Store(tmp_path / "found.jsonl", KEY)
    (tmp_path / "found.jsonl").unlink()
    (tmp_path / "found.jsonl").mkdir()
    with refused("--results", "directory"):
        store.put("w0", measured())


@pytest.mark.parametrize(
    "data", [b"my notes\n", b"\n", b'{"study": "prune", "rule": 1}\n', b'{"record": 2}\n']
)
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path, data):
    place = tmp_path / "notes.txt"
    place.write_bytes(data)
    for look in (check_results, lambda path: Store(path, KEY)):
        with refused("--results", "another kind", "notes.txt"):
            look(place)
    assert place.read_bytes() == data


def test_an_early_look_makes_no_file_and_takes_one_of_ours(tmp_path):
    place = tmp_path / "found.jsonl"
    check_results(place)
    assert not place.exists()
    Store(place, KEY).put("w0", measured(0))
    check_results(place)


def test_a_file_that_was_cut_is_said_to_be_and_stays_readable(tmp_path):
    place = tmp_path / "found.jsonl"
    Store(place, KEY).put("w0", measured(0))
    assert Store(place, KEY).notes() == ()
    place.write_bytes(place.read_bytes()[:300])
    store = Store(place, KEY)
    assert store.get("w0") is None
    (note,) = store.notes()
    assert note.text.startswith("1 line of found.jsonl cannot be read")
    store.put("w0", measured(0))
    again = Store(place, KEY)
    assert_same(again.get("w0"), measured(0))
    assert again.notes() == (note,)


def test_the_default_place_is_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path))
    assert default_place(KEY) == tmp_path / "collapse" / f"{'a' * 32}.jsonl"
    assert default_place(KEY) != default_place("b" * 64)
    monkeypatch.delenv("SINKSCOPE_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: "relative")
    with pytest.raises(Unavailable):
        default_place(KEY)
