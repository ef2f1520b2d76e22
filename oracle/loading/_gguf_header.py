"""The header of a GGUF file: its metadata, and where each tensor lies, every count checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle._checks import Unavailable, reject
from oracle.families._config import shown
from oracle.loading._files import one_line, require_file

__all__ = ["FLOATS", "GgufFile", "GgufTensor", "read_gguf"]

# Types whose values a safetensors file can hold as they are, under its own words for them.
FLOATS = {"F32": "F32", "F16": "F16", "BF16": "BF16", "F64": "F64"}

_DOWNLOAD_AGAIN = "The file is damaged or cut short: download it again."
_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?"}
_SCALARS |= {10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9
_LENGTH = 8  # bytes that say how long a string is
_LEAST_FIELD = _LENGTH + 1 + 4 + 1
_LEAST_TENSOR = _LENGTH + 1 + 4 + 8 + 4 + 8
_MOST_AXES = 4
_LARGEST_ALIGNMENT = 1 << 16
_MISSING_EXTRA = 'GGUF files need the package gguf: pip install "sinkscope[gguf]".'


class GgufTensor(NamedTuple):
    """A tensor as the file stores it: `kind` is the file's type ("F32", "Q4_1"), `shape` in NumPy's order."""

    kind: str
    shape: tuple[int, ...]
    raw: NDArray[np.uint8]  # (row, bytes of a row), a view of the mapped file; a row is the last axis


class GgufFile(NamedTuple):
    """What the header says. Arrays of numbers in `metadata` are NumPy arrays, strings lists of str."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def read_gguf(path: Path) -> GgufFile:
    """The header of a GGUF file (version 2 or 3, little-endian); of the tensors nothing is read yet.

    The file is taken for hostile: whatever is cut short, contradicts the file's size, comes twice, overlaps
    or is of an unknown kind raises InputError in one line. What is allocated grows with what has been read
    of the header, never with what it claims. Raises Unavailable where the package gguf is missing.
    """
    sizes = _type_sizes()
    require_file(path, "Name the GGUF file.")
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        found = "an empty file" if isinstance(error, ValueError) else one_line(error)
        reject(str(path), expected="a GGUF file", found=found, todo=_DOWNLOAD_AGAIN)
    cursor = _Cursor(path, mapped)
    _check_start(cursor)
    n_tensors, n_fields = cursor.count("tensors", _LEAST_TENSOR), cursor.count("fields", _LEAST_FIELD)
    metadata: dict[str, Any] = {}
    for key, value in _fields(cursor, n_fields):
        if key in metadata:
            cursor.refuse("each field once", f"{shown(key)} twice")
        metadata[key] = value
    entries = dict(_entries(cursor, n_tensors))
    tensors = _place(cursor, entries, sizes, _alignment(cursor, metadata))
    return GgufFile(path, metadata, tensors)


class _Cursor:
    """A place in a mapped file that never leaves it."""

    def __init__(self, path: Path, mapped: NDArray[np.uint8]) -> None:
        self.path, self.mapped, self.at = path, mapped, 0

    def refuse(self, expected: str, found: str, *, about: str = "", todo: str = _DOWNLOAD_AGAIN) -> NoReturn:
        """Raise InputError about the file, or about what in it has a name."""
        reject(": ".join(filter(None, (str(self.path), about))), expected=expected, found=found, todo=todo)

    def take(self, count: int) -> NDArray[np.uint8]:
        """The next `count` bytes, as a view."""
        left = self.mapped.size - self.at
        if count > left:
            self.refuse(f"{count} more bytes at byte {self.at} of its header", f"{left} until its end")
        self.at += count
        return self.mapped[self.at - count : self.at]

    def scalars(self, dtype: str, count: int) -> NDArray[Any]:
        raw = self.take(count * np.dtype(dtype).itemsize)
        return raw.view(np.dtype(dtype).newbyteorder("<")) if dtype != "?" else raw != 0

    def whole(self, dtype: str = "<u8") -> int:
        """The next unsigned integer."""
        return int.from_bytes(self.take(np.dtype(dtype).itemsize).tobytes(), "little")

    def count(self, what: str, least: int) -> int:
        """The next number, that of things which take at least `least` bytes each."""
        count, left = self.whole(), self.mapped.size - self.at
        if count * least > left:
            self.refuse(f"room for {count} {what}", f"{left} bytes until its end")
        return count

    def text(self, what: str, *, name: bool = False) -> str:
        """The next string; a `name` is printable, so that an error can say it."""
        raw = self.take(self.whole()).tobytes()
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            self.refuse("UTF-8", one_line(error), about=what)
        if name and not (text and text.isprintable()):
            self.refuse(f"printable {what}", ascii(text[:60]))
        return text


def _type_sizes() -> dict[int, tuple[str, int, int]]:
    """By the number of a type: its name, values in a block, bytes of a block."""
    try:
        from gguf.constants import GGML_QUANT_SIZES
    except ImportError as error:
        raise Unavailable(f"{_MISSING_EXTRA} ({one_line(error)})") from error
    return {int(kind): (kind.name, *size) for kind, size in GGML_QUANT_SIZES.items()}


def _check_start(cursor: _Cursor) -> None:
    if cursor.mapped.size < 24:
        cursor.refuse("a GGUF file", f"{cursor.mapped.size} bytes, fewer than a header has")
    start = cursor.take(8).tobytes()
    if start[:4] != _MAGIC:
        pointer = cursor.mapped[:14].tobytes() == b"version https:"
        if pointer:
            cursor.refuse(
                "a GGUF file", "a Git LFS pointer", todo="Fetch the file itself with `git lfs pull`."
            )
        cursor.refuse("a GGUF file, which begins with GGUF", ascii(start[:4])[1:])
    version = int.from_bytes(start[4:], "little")
    if version not in _VERSIONS:
        big_endian = int.from_bytes(start[4:], "big") in _VERSIONS
        found = "a big-endian file" if big_endian else f"version {version}"
        cursor.refuse(
            "GGUF version 2 or 3, little-endian", found, todo="Convert the model with current tools."
        )


def _fields(cursor: _Cursor, count: int) -> Iterator[tuple[str, Any]]:
    for _ in range(count):
        key = cursor.text("names of fields", name=True)
        kind = cursor.whole("<u4")
        yield key, _array(cursor, key) if kind == _ARRAY else _scalar(cursor, key, kind)


def _scalar(cursor: _Cursor, key: str, kind: int) -> Any:
    if kind == _STRING:
        return cursor.text(key)
    if kind not in _SCALARS:
        cursor.refuse("a known type", f"type {kind}", about=key)
    return cursor.scalars(_SCALARS[kind], 1)[0].item()


def _array(cursor: _Cursor, key: str) -> Any:
    kind = cursor.whole("<u4")
    if kind == _STRING:
        return [cursor.text(key) for _ in range(cursor.count(f"strings of {key}", _LENGTH))]
    if kind not in _SCALARS:
        cursor.refuse("an array of numbers or strings", f"elements of type {kind}", about=key)
    return cursor.scalars(_SCALARS[kind], cursor.whole())


def _entries(cursor: _Cursor, count: int) -> Iterator[tuple[str, tuple[tuple[int, ...], int, int]]]:
    """Name, and (shape, type, offset), of every tensor."""
    seen = set()
    for _ in range(count):
        name = cursor.text("tensor names", name=True)
        if name in seen:
            cursor.refuse("each tensor once", f"{shown(name)} twice")
        seen.add(name)
        axes = cursor.whole("<u4")
        if not 1 <= axes <= _MOST_AXES:
            cursor.refuse(f"1 to {_MOST_AXES} axes", f"{axes}", about=name)
        sizes = tuple(cursor.whole() for _ in range(axes))
        yield name, (sizes[::-1], cursor.whole("<u4"), cursor.whole())


def _alignment(cursor: _Cursor, metadata: Mapping[str, Any]) -> int:
    value = metadata.get("general.alignment", 32)
    if type(value) is not int or not 1 <= value <= _LARGEST_ALIGNMENT or value & (value - 1):
        cursor.refuse("a power of two", shown(value), about="general.alignment")
    return value


def _place(
    cursor: _Cursor,
    entries: Mapping[str, tuple[tuple[int, ...], int, int]],
    types: Mapping[int, tuple[str, int, int]],
    alignment: int,
) -> dict[str, GgufTensor]:
    """Every tensor's bytes. One follows the other, as the format asks, so that no two can overlap."""
    first = -(-cursor.at // alignment) * alignment
    tensors, offset, end = {}, 0, first
    for name, (shape, number, said) in entries.items():
        if number not in types:
            todo = "A newer gguf package may know it: pip install --upgrade gguf."
            cursor.refuse("a known quantisation type", f"type {number}", about=name, todo=todo)
        kind, block, width = types[number]
        if shape[-1] % block:
            cursor.refuse(f"rows of whole {kind} blocks of {block}", f"rows of {shape[-1]}", about=name)
        rows, row = math.prod(shape[:-1]), shape[-1] // block * width
        if said != offset:
            cursor.refuse(f"it at byte {offset} of the data", f"byte {said}", about=name)
        start, end = first + offset, first + offset + rows * row
        if end > cursor.mapped.size or not rows * row:
            found = f"bytes {start} to {end} of {cursor.mapped.size}"
            cursor.refuse(f"{shape} inside the file", found, about=name)
        tensors[name] = GgufTensor(kind, shape, cursor.mapped[start:end].reshape(rows, row))
        offset += -(-(rows * row) // alignment) * alignment
    if cursor.mapped.size - end >= max(alignment, 2) and tensors:
        cursor.refuse("an end after its last tensor", f"{cursor.mapped.size - end} more bytes")
    return tensors
