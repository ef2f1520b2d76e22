"""A GGUF file -> Model, by way of a dequantised copy in the user's cache that transformers could read too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oracle._checks import Unavailable, reject
from oracle.loading import _cache
from oracle.loading._directory import WEIGHTS, load_directory
from oracle.loading._files import one_line, require_file, sha256_of
from oracle.loading._gguf_header import FLOATS, GgufFile, GgufTensor, read_gguf
from oracle.loading._gguf_llama import configuration, rotary_rows, tensors_by_name
from oracle.loading._gguf_tokenizer import rebuild_tokenizer, tokenizer_settings
from oracle.loading._progress import Progress
from oracle.model import Model

__all__ = [
    "DequantisedCopy",
    "copy_name",
    "dequantise",
    "dequantised_copies",
    "load_gguf",
    "only_gguf",
    "remove_copy",
]

_PREFIX = "gguf-"
_NAME = re.compile(rf"{_PREFIX}[0-9a-f]{{16}}")
_MADE_BY = 2  # raised when a copy made today would differ from one made before, or would be refused
_PIECE = 1 << 20  # values converted at once
_WIDTHS = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8}


class DequantisedCopy(NamedTuple):
    """A GGUF file's weights in the cache: `name` removes them; `state` is "cached", "outdated" or "damaged".

    `file` is the name of the GGUF file they were made from, or "" where a damaged copy does not say.
    """

    name: str
    file: str
    state: str
    size: int  # bytes on disk
    path: Path


def load_gguf(
    path: Path, *, dtype: DTypeLike, name: str, sha256: str | None = None, progress: Progress
) -> Model:
    """The Model in a GGUF file; `sha256` of the file is computed unless it is given.

    The first time its weights are dequantised into the user's cache, tensor by tensor, under the file's
    hash; the copy is read from then on. `Model.sha256` is that of the GGUF file, `Model.source` the copy.
    Errors as `load_model`; Unavailable where the cache cannot be written or the package gguf is missing.
    """
    folder, digest = dequantise(path, sha256, progress)
    return load_directory(folder, dtype=dtype, name=name, sha256=digest)


def dequantise(path: Path, sha256: str | None, progress: Progress) -> tuple[Path, str]:
    """The directory of the dequantised copy of a GGUF file (made at need), and the SHA-256 of the file."""
    require_file(path, "Name the GGUF file.")
    try:
        digest = sha256 or sha256_of(path)
    except OSError as error:
        reject(str(path), expected="a readable file", found=one_line(error), todo="Check its permissions.")
    folder, about = _folder(digest), _about(digest)
    if _cache.files_of(folder, about) is None:
        _make(read_gguf(path), folder, {**about, "file": path.name}, progress)
    return folder, digest


def dequantised_copies() -> list[DequantisedCopy]:
    """The dequantised copies in the cache, by name; all but a cached one are made again when needed."""
    found = []
    for folder in sorted(_cache.models_folder().glob(f"{_PREFIX}*")):
        manifest = _cache.manifest_of(folder)
        whole = _cache.files_of(folder, _about(str(manifest.get("gguf_sha256")))) is not None
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        older = manifest.get("made_by") in range(1, _MADE_BY)
        state = "cached" if whole else "outdated" if older else "damaged"
        found.append(DequantisedCopy(folder.name, str(manifest.get("file", "")), state, size, folder))
    return found


def copy_name(digest: str) -> str:
    """The name of the dequantised copy of the GGUF file with this SHA-256."""
    return f"{_PREFIX}{digest[:16]}"


def remove_copy(name: str) -> bool | None:
    """Delete a dequantised copy; False where there is none, None where `name` is no name of one."""
    return _cache.remove(_cache.models_folder() / name) if _NAME.fullmatch(name) else None


def _folder(digest: str) -> Path:
    return _cache.models_folder() / copy_name(digest)


def _about(digest: str) -> dict[str, Any]:
    return {"gguf_sha256": digest, "made_by": _MADE_BY}


def _make(file: GgufFile, folder: Path, about: dict[str, Any], progress: Progress) -> None:
    """Put the dequantised copy into the cache, unless another process does so meanwhile."""
    config = configuration(file)
    tensors = tensors_by_name(file, config)
    tokenizer = rebuild_tokenizer(file.metadata, str(file.path), most=config["vocab_size"])
    _check_types(file)
    with _cache.workshop() as place:
        made = place / "model"
        try:
            made.mkdir()
            (made / "config.json").write_text(json.dumps({**config, "dtype": "float32"}, indent=1))
            if tokenizer is not None:
                tokenizer.save(str(made / "tokenizer.json"))
                settings = tokenizer_settings(file.metadata, str(file.path))
                (made / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
            _write_tensors(made / "model.safetensors", file, tensors, config, progress)
            _cache.write_manifest(made, about)
        except OSError as error:
            raise Unavailable(
                f"{file.path} could not be dequantised into the cache at {folder} ({one_line(error)}). Make "
                f"room there, or set {_cache.CACHE_VARIABLE} to a folder that can be written."
            ) from error
        if _cache.files_of(folder, about) is None:
            _cache.install(made, folder)


def _check_types(file: GgufFile) -> None:
    """Refuse types that hold no weights, or that gguf cannot dequantise, before anything is written."""
    for name, tensor in file.tensors.items():
        try:
            _values(tensor._replace(raw=tensor.raw[:1]))
        except NotImplementedError as error:
            reject(
                f"{file.path}: {name}",
                expected="a type that the package gguf dequantises",
                found=f"{tensor.kind} ({one_line(error)})",
                todo="Take a file of another quantisation.",
            )


def _values(tensor: GgufTensor) -> NDArray[Any]:
    """Rows of a tensor, widened exactly to float32 where they are quantised; floats as their bytes."""
    if tensor.kind in FLOATS:
        return tensor.raw
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    with np.errstate(all="ignore"):  # what is not finite is refused by name
        return dequantize(tensor.raw, GGMLQuantizationType[tensor.kind])


def _write_tensors(
    path: Path,
    file: GgufFile,
    tensors: dict[str, tuple[str, GgufTensor]],
    config: dict[str, Any],
    progress: Progress,
) -> None:
    """Write one safetensors file, piece by piece; the data begins at a multiple of 64 bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (_, tensor) in tensors.items():
        stored_as = FLOATS.get(tensor.kind, "F32")
        begin, end = end, end + int(np.prod(tensor.shape)) * _WIDTHS[stored_as]
        header[name] = {"dtype": stored_as, "shape": tensor.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    start = f"Dequantising {file.path.name} once, into the cache: {end / 1e6:.0f} MB"
    progress(start)
    with path.open("wb") as output:
        output.write(len(text).to_bytes(8, "little") + text)
        done = said = 0
        for name, (stored, tensor) in tensors.items():
            for piece in _pieces(tensor, rotary_rows(name, config)):
                _check_finite(f"{file.path}: {stored}", tensor.kind, piece)
                done += _write(output, piece)
            if done - said > 1e8:
                progress(f"{start}, {done / end:.0%} done")
                said = done


def _pieces(tensor: GgufTensor, order: NDArray[np.int64] | None) -> Iterator[NDArray[Any]]:
    """A tensor's values, rows in `order`, some rows at a time."""
    rows = max(1, _PIECE // tensor.shape[-1])
    for start in range(0, len(tensor.raw), rows):
        chosen: Any = slice(start, start + rows) if order is None else order[start : start + rows]
        yield _values(tensor._replace(raw=tensor.raw[chosen]))


def _check_finite(what: str, kind: str, piece: NDArray[Any]) -> None:
    if kind not in FLOATS and not np.isfinite(piece).all():
        reject(
            what,
            expected=f"finite numbers in {kind}",
            found="infinite ones or NaN",
            todo="The file is damaged: download it again.",
        )


def _write(output: BinaryIO, piece: NDArray[Any]) -> int:
    wide = piece if piece.dtype == np.uint8 else piece.astype("<f4", copy=False)
    return output.write(np.ascontiguousarray(wide).view(np.uint8).data)


def only_gguf(folder: Path) -> Path | None:
    """The one GGUF file of a directory without safetensors weights; None where there is no such file."""
    if any(os.path.lexists(folder / name) for name in WEIGHTS):
        return None
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".gguf")
    except OSError:  # the directory's own loader says why
        return None
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        reject(str(folder), expected="one GGUF file", found=ascii(names)[1:-1], todo="Name one of them.")
    return found[0] if found else None
