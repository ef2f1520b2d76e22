"""One safetensors file: its header checked, its tensors mapped into memory or converted piece by piece."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oracle._checks import reject
from oracle.loading._files import one_line, require_file

__all__ = ["StoredTensor", "open_tensors"]

# How a file spells a dtype, and how its bytes are read. bfloat16 is the upper half of a float32.
_BFLOAT16 = "BF16"
_READ_AS = {"F16": "<f2", _BFLOAT16: "<u2", "F32": "<f4", "F64": "<f8"}
_PIECE = 1 << 20  # values converted at once: a few MB beside the result

_DOWNLOAD_AGAIN = "The file is damaged or cut short: download or save it again."


class StoredTensor:
    """A tensor in a file. `numpy.asarray(tensor, dtype)` reads it; `shape` and `dtype` are known before that.

    Asked for in the dtype it is stored in, it is a read-only view of the mapped file, so the file must not
    be overwritten in place meanwhile. Otherwise it is widened (exactly) or rounded (once) piece by piece.
    """

    def __init__(
        self, path: Path, name: str, dtype: str, shape: tuple[int, ...], start: int, mapped: NDArray[Any]
    ) -> None:
        """`mapped` holds the tensor's bytes, from `start` in the file; `dtype` is the file's word for it."""
        self.path, self.name, self.dtype, self.shape = path, name, dtype, shape
        self._start, self._mapped = start, mapped

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """The values; float32 for bfloat16 unless a dtype is named."""
        if self.dtype not in _READ_AS:
            reject(
                f"{self.path}: {self.name}",
                expected="float16, bfloat16, float32 or float64",
                found=self.dtype,
                todo="Save the model dequantised, in one of these.",
            )
        raw = self._mapped.view(_READ_AS[self.dtype])
        own = np.dtype(np.float32) if self.dtype == _BFLOAT16 else raw.dtype
        target = own if dtype is None else np.dtype(dtype)
        # BLAS would copy an array that is not aligned at every product.
        if self.dtype != _BFLOAT16 and raw.dtype == target and raw.flags.aligned and not copy:
            return raw.reshape(self.shape)
        values = np.empty(raw.size, target)
        for start in range(0, raw.size, _PIECE):
            values[start : start + _PIECE] = self._piece(raw.dtype, start, min(_PIECE, raw.size - start))
        return values.reshape(self.shape)

    def _piece(self, dtype: np.dtype[Any], start: int, count: int) -> NDArray[Any]:
        """`count` values from `start`, read: pages of the map would stay in memory beside the result."""
        piece = np.fromfile(self.path, dtype, count, offset=self._start + start * dtype.itemsize)
        if piece.size != count:
            reject(str(self.path), expected="the file as it was", found="a shorter one", todo=_DOWNLOAD_AGAIN)
        return (piece.astype(np.uint32) << 16).view(np.float32) if self.dtype == _BFLOAT16 else piece


def open_tensors(path: Path) -> dict[str, StoredTensor]:
    """Every tensor of one safetensors file by name, none of them read yet.

    A file that is cut short, whose header contradicts its size, or that is no safetensors file (a pickle, a
    zip archive) raises InputError; nothing in it is ever executed.
    """
    from safetensors import SafetensorError, safe_open

    require_file(path, "Put the file that was saved with the model there.")
    try:
        with safe_open(path, framework="numpy"):  # the library's own checks of the header
            pass
        mapped = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    except (SafetensorError, OSError, ValueError) as error:
        _explain(path, error)
    start = 8 + int(mapped[:8].view("<u8")[0])
    try:
        header = json.loads(mapped[8:start].tobytes())
    except (ValueError, RecursionError) as error:
        _explain(path, error)
    header.pop("__metadata__", None)
    return {name: _stored(path, name, entry, mapped, start) for name, entry in header.items()}


def _stored(path: Path, name: str, entry: dict[str, Any], mapped: NDArray[Any], start: int) -> StoredTensor:
    """One header entry; its offsets count from `start`. What a view depends on is checked again here."""
    if not name.isprintable():
        reject(str(path), expected="printable tensor names", found=ascii(name[:60]), todo=_DOWNLOAD_AGAIN)
    (begin, end), shape = entry["data_offsets"], tuple(entry["shape"])
    stored_as = _READ_AS.get(entry["dtype"])
    size = math.prod(shape) * (np.dtype(stored_as).itemsize if stored_as else 0)
    if not 0 <= begin <= end <= mapped.size - start or (stored_as and size != end - begin):
        reject(
            f"{path}: {name}",
            expected=f"{size} bytes inside the file",
            found=f"bytes {begin} to {end} of {mapped.size - start}",
            todo=_DOWNLOAD_AGAIN,
        )
    return StoredTensor(path, name, entry["dtype"], shape, start + begin, mapped[start + begin : start + end])


def _explain(path: Path, error: BaseException) -> NoReturn:
    """Say what a file is that safetensors refused, by its first bytes (they are read, never run)."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError:
        start = b""
    found, todo = one_line(error), _DOWNLOAD_AGAIN
    convert = "Pickled weights are never opened: convert them with transformers' save_pretrained."
    if start.startswith(b"PK\x03\x04"):
        found, todo = "a zip archive (as torch.save writes)", convert
    elif start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05" and len(start) > 1:
        found, todo = "a pickle", convert
    elif start.startswith(b"version https:"):
        found, todo = "a Git LFS pointer", "Fetch the file itself with `git lfs pull`."
    elif not start and path.exists() and path.stat().st_size == 0:
        found = "an empty file"
    reject(str(path), expected="a safetensors file", found=found, todo=todo)
