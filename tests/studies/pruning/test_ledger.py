"""The file that keeps results: whole lines of this run, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle_models import weights_of
from pruning_models import tiny_llama
from wording import refused

from validation.studies.pruning.ledger import Ledger, default_path, identity

ROOT = Path(__file__).parents[3]
IDS = [np.array([1, 2, 3]), np.array([4, 5]), np.array([6, 7])]


@pytest.fixture
def about() -> dict[str, Any]:
    return identity(tiny_llama(), IDS, 0)


def test_what_is_kept_comes_back_to_the_last_bit(tmp_path: Path, about: dict[str, Any]) -> None:
    path = tmp_path / "new" / "ledger.jsonl"
    ledger = Ledger(path, about, 20)
    assert ledger.found == {}
    assert path.read_bytes() == b""
    values = {(0, ()): 1 / 3, (1, (0, 19)): math.pi * 1e5, (0, (4,)): 0.1 + 0.2}
    for (text, heads), nll in values.items():
        ledger.add(text, heads, nll)
    ledger.add(1, (2,), math.inf)
    again = Ledger(path, about, 20).found
    assert math.isnan(again.pop((1, (2,))))
    assert again == values
    lines = path.read_text("ascii").splitlines()
    assert len(lines) == 4
    assert {tuple(json.loads(line)) for line in lines} == {
        ("study", "rule", "model", "texts", "seed", "text", "heads", "nll")
    }


def test_a_run_is_its_model_texts_seed_and_rule(
    about: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_llama()
    assert identity(tiny_llama(), [ids.copy() for ids in IDS], 0) == about
    found = [
        identity(tiny_llama(seed=1), IDS, 0),
        identity(model.astype("float64"), IDS, 0),
        identity(replace(model, config=replace(model.config, norm_epsilon=1e-6)), IDS, 0),
        identity(replace(model, sha256="0" * 64), IDS, 0),
        identity(replace(model, sha256="0" * 64).astype("float64"), IDS, 0),
        identity(model, [*IDS[:2], np.array([6, 8])], 0),
        identity(model, [IDS[0], np.array([4, 5, 6]), np.array([7])], 0),
        identity(model, IDS, 1),
    ]
    monkeypatch.setattr("validation.studies.pruning.ledger.RULE_VERSION", 2)
    found.append(identity(model, IDS, 0))
    assert len({json.dumps(one) for one in [about, *found]}) == 10
    paths = {default_path(model, one) for one in [about, *found]}
    assert len(paths) == 10
    assert {path.parent.name for path in paths} == {"pruning"}
    assert default_path(replace(model, name="/a/b c/Llama 2"), about).name.startswith("Llama-2-")


def test_a_model_from_a_file_is_known_by_its_hash_and_any_other_by_arrays_with_their_shapes() -> None:
    model = tiny_llama()
    loaded = replace(model, sha256="3" * 64)
    said = f"{'3' * 64}{model.config} {model.dtype}"
    assert identity(loaded, IDS, 0)["model"] == hashlib.sha256(said.encode()).hexdigest()
    turned = replace(model.embeddings, words=model.embeddings.words.reshape(22, 256))
    assert identity(replace(model, embeddings=turned), IDS, 0) != identity(model, IDS, 0)


def test_lines_by_the_hash_without_shapes_are_of_another_run(tmp_path: Path, about: dict[str, Any]) -> None:
    model, path = tiny_llama(), tmp_path / "ledger.jsonl"
    before = hashlib.sha256(b"".join(array.tobytes() for array in weights_of(model)))
    before.update(f"{model.config} {model.dtype}".encode())
    Ledger(path, about | {"model": before.hexdigest()}, 20).add(0, (1, 3), 1.5)
    kept = path.read_bytes()
    ledger = Ledger(path, about, 20)
    assert (ledger.found, ledger.notes()) == ({}, ())
    ledger.add(0, (1, 3), 2.5)
    assert Ledger(path, about, 20).found == {(0, (1, 3)): 2.5}
    assert path.read_bytes().startswith(kept)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"rule": 2},
        {"model": "x"},
        {"texts": "x"},
        {"study": "else"},
        {"text": True},
        {"text": "0"},
        {"heads": [3, 1]},
        {"heads": [1, 1]},
        {"heads": [20]},
        {"heads": [-1]},
        {"heads": [1.0]},
        {"heads": 3},
        {"nll": "1.5"},
        {"nll": 1},
        {"nll": True},
    ],
    ids=str,
)
def test_other_lines_are_passed_over(tmp_path: Path, about: dict[str, Any], change: dict[str, Any]) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path, about, 20).add(0, (1, 3), 1.5)
    line = json.loads(path.read_text())
    assert line | change != line
    path.write_text(json.dumps(line | change) + "\n")
    ours = {"text", "heads", "nll"} & change.keys()
    if path.read_text().startswith('{"study": "prune"'):
        assert Ledger(path, about, 20).found == {}
        assert len(Ledger(path, about, 20).notes()) == len(ours)  # another run's line is no damage
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n[1]\n\n" + "[" * 10000 + "\n\xff\x00\n")
    if "study" not in change:
        assert Ledger(path, about, 20).found == {(0, (1, 3)): 1.5}
        (note,) = Ledger(path, about, 20).notes()
        assert note.text.startswith(f"{3 + len(ours)} lines of ledger.jsonl cannot be read")


def test_a_line_that_was_cut_anywhere_is_passed_over_and_what_follows_is_whole(
    tmp_path: Path, about: dict[str, Any]
) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, about, 20)
    ledger.add(0, (1, 3), 1.25)
    ledger.add(1, (2,), 12345.678)
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    for end in range(len(data)):
        path.write_bytes(data[:end])
        again = Ledger(path, about, 20)
        whole = {(0, (1, 3)): 1.25} if end >= start - 1 else {}
        whole |= {(1, (2,)): 12345.678} if end == len(data) - 1 else {}
        assert again.found == whole, end
        again.add(0, (7,), 2.5)
        assert Ledger(path, about, 20).found == whole | {(0, (7,)): 2.5}, end


def test_the_first_of_two_lines_counts(tmp_path: Path, about: dict[str, Any]) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", about, 20)
    ledger.add(0, (1,), 1.5)
    ledger.add(0, (1,), 2.5)
    assert Ledger(ledger.path, about, 20).found == {(0, (1,)): 1.5}


@pytest.mark.parametrize(
    "data", [b"text\n", b"\n", b'{"study": "other"}\n', b'{"study": "prunes', b'{\n "a": 1}']
)
def test_a_file_of_another_kind_is_refused_and_left_alone(
    tmp_path: Path, about: dict[str, Any], data: bytes
) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(data)
    with refused("--out", f"found {str(path)!r} (a file of another kind, it begins b"):
        Ledger(path, about, 20)
    assert path.read_bytes() == data


def test_places_that_cannot_be_written(tmp_path: Path, about: dict[str, Any]) -> None:
    with refused("--out", "no plain file"):
        Ledger(tmp_path, about, 20)
    (tmp_path / "file").write_text("")
    with refused("--out", "file"):
        Ledger(tmp_path / "file" / "below", about, 20)
    with refused("--out", "null"):
        Ledger("a\0b", about, 20)
    ledger = Ledger(tmp_path / "gone" / "ledger.jsonl", about, 20)
    ledger.path.unlink()
    ledger.path.parent.rmdir()
    with refused("--out", "No such file"):
        ledger.add(0, (), 1.0)


def test_two_processes_do_not_mix_their_lines(tmp_path: Path, about: dict[str, Any]) -> None:
    path = tmp_path / "ledger.jsonl"
    code = (
        "import json, sys\n"
        "from validation.studies.pruning.ledger import Ledger\n"
        "about = json.loads(sys.argv[2]) | {'seed': int(sys.argv[3])}\n"
        "ledger = Ledger(sys.argv[1], about, 2000)\n"
        "for k in range(400):\n"
        "    ledger.add(0, tuple(range(k, 2000)), k + about['seed'] / 8)\n"
    )
    given = [sys.executable, "-c", code, str(path), json.dumps(about)]
    running = [
        subprocess.Popen([*given, seed], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
        for seed in ("0", "1")
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    for seed in (0, 1):
        found = Ledger(path, about | {"seed": seed}, 2000).found
        assert found == {(0, tuple(range(k, 2000))): k + seed / 8 for k in range(400)}
