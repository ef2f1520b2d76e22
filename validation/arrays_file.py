"""Attention arrays from an .npz file or from memory, with what may stand beside them."""

from __future__ import annotations

import lzma
import os
import re
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracle._checks import InputError, at_least_float64, reject
from oracle.arrays import AttentionArrays, read_attention
from oracle.sinks import choose_sinks
from validation.sink_report import is_token, lacks_token, refuse_token
from validation.wording import counted

__all__ = ["SPECIAL_SPELLINGS", "ReadArrays", "precision_of", "read_arrays"]

Array = NDArray[Any]

_NORMS = ("value_norm", "transformed_norm")
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    MemoryError,
    SyntaxError,  # NumPy reads the header of an array as Python
    tokenize.TokenError,
)
_KNOWN = ("attention", *_NORMS, "tokens", "visible")
# Arrays carry no token ids, so that special tokens can only be known by their spelling.
SPECIAL_SPELLINGS = ("[CLS]", "[SEP]", "<s>", "</s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>")
_LOOKS_SPECIAL = re.compile(r"<\|.+\|>")


class ReadArrays(NamedTuple):
    """Rows with every axis named, and for each text of the batch its norms, tokens and sinks."""

    rows: AttentionArrays
    norms: Mapping[str, Array]  # (batch, layer, head, key), float64
    tokens: tuple[tuple[str, ...], ...]  # positions in words where no tokens were given
    sinks: NDArray[np.bool_]  # (batch, key)
    layout: str  # the axes of `attention` as it was read
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()  # notes that must stand above the numbers
    precision: float = 2.0**-52  # the epsilon of `attention` as it came
    empty: tuple[int, ...] = ()  # texts, from 0, without a visible key: they are skipped


def read_arrays(source: Any, *, sink: Any = "special", layout: str | None = None) -> ReadArrays:
    """Read `source`: the path of an .npz file, a mapping with the same names, or attention rows alone.

    `attention` is read by `oracle.read_attention` with `layout`. Optional: `value_norm` and
    `transformed_norm`, with the axes of `attention` less the query; `tokens`, strings or integers, (token,)
    or (batch, token); `visible`, (query, key), (batch, query, key), or a mask of real tokens, (key,) or
    (batch, key), as `oracle.read_attention` reads it. Other names are ignored and listed.
    `sink` is read by `oracle.choose_sinks`; "special" needs token spellings, and a text without the token of
    "token:TEXT" has no sink, unless all texts lack it. A text without visible keys (all of it padding) has no
    sink either, and is named in `empty`. A note names tokens that look special and are content. Nothing
    pickled is ever loaded. Raises InputError for a file that is no .npz, for a missing array, for sizes that
    contradict each other, and where no text has a visible key.
    """
    arrays = _load(source)
    if "attention" not in arrays:
        reject(
            "attention",
            expected="an array of that name",
            found=", ".join(arrays) or "no arrays",
            todo="Save the rows with np.savez(path, attention=rows).",
        )
    names = _tokens(arrays.get("tokens"))
    given = {name: at_least_float64(name, arrays[name]) for name in _NORMS if name in arrays}
    named, shape = _axes(arrays["attention"], layout)
    axes = [axis for axis in named if axis != "query"]  # those of norms
    known = dict(zip(named, shape, strict=False))
    for name, norm in given.items():
        if norm.ndim == len(axes) + 1 and norm.shape[:-1] == tuple(known.get(axis) for axis in axes):
            reject(
                name,
                expected=f"norms, ({', '.join(axes)})",
                found=f"shape {norm.shape}, the vectors themselves",
                todo="Save their norms: np.linalg.norm(vectors, axis=-1).",
            )
    sizes = {name: norm.shape[-1] for name, norm in given.items() if norm.ndim}
    if names is not None:
        sizes["tokens"] = names.shape[-1]
    reading = f"attention read as ({', '.join(named)}) from shape {shape}"
    if len(named) == len(shape) and "key" in known:
        wrong = [f"{name} has {counted(size, 'key')}" for name, size in sizes.items() if size != known["key"]]
        if wrong:
            _contradiction("one number of keys", f"{', '.join(wrong)}, attention {known['key']} ({reading})")
    rows = read_attention(arrays["attention"], visible=arrays.get("visible"), layout=layout)
    for axis, size in zip(("text", "layer", "head", "query", "key"), rows.attention.shape, strict=False):
        if not size:
            reject(
                "attention",
                expected=f"at least one {axis}",
                found=f"none ({reading})",
                todo="Save the rows of a whole run.",
            )
    batch, _, _, _, count = rows.attention.shape
    norms = {name: _to_four(name, norm, axes, rows.attention.shape) for name, norm in given.items()}
    texts = _per_text(names, batch, count, rows.notes[0])
    real: NDArray[np.bool_] = np.any(rows.visible, axis=1)  # (batch, key)
    empty = tuple(np.flatnonzero(~real.any(axis=1)).tolist())
    if len(empty) == batch:
        reject(
            "attention",
            expected="at least one text with tokens",
            found=f"no weight on any visible key in {counted(batch, 'text')} ({reading})",
            todo="Give the rows of a text with words.",
        )
    if is_token(sink) and all(lacks_token(sink, texts[text]) for text in range(batch) if text not in empty):
        refuse_token(sink, batch - len(empty))
    masks = np.zeros((batch, count), bool)
    for text, tokens in enumerate(texts):
        if text in empty:
            continue
        chosen = "none" if lacks_token(sink, tokens) else sink
        try:
            masks[text] = _sinks(chosen, tokens, real[text], names)
        except InputError as error:
            raise InputError(f"{error} (text {text + 1})" if batch > 1 else str(error)) from None
    ignored = [name for name in arrays if name not in _KNOWN]
    notes = [*rows.notes, *([f"ignored arrays: {', '.join(ignored)}"] if ignored else [])]
    if names is not None and not (isinstance(sink, str) and sink == "none"):
        notes += _special_content(texts, real, masks)
    calm, warnings = (
        tuple(note for note in notes if note.startswith("WARNING") == loud) for loud in (False, True)
    )
    precision = precision_of(arrays["attention"])
    return ReadArrays(rows, norms, texts, masks, " ".join(named), calm, warnings, precision, empty)


def precision_of(values: Any) -> float:
    """The epsilon of the type of an array or a tensor; that of float64 for whole numbers and lists."""
    dtype = getattr(values, "dtype", None)
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    return {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23}.get(name, 2.0**-52)


def _load(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    if not isinstance(source, (str, os.PathLike)):
        return {"attention": source}
    name, todo = os.fspath(source), "Save the arrays with np.savez(path, attention=rows)."
    expected = "an .npz file with an array `attention`"
    try:
        with open(source, "rb") as handle:  # opened here, because np.load leaves a damaged file open
            start = handle.read(6)
            if start and not start.startswith((b"PK", b"\x93NUMPY", b"\x80")):  # NumPy takes it for a pickle
                reject(
                    name, expected=expected, found=f"a file of another kind, it begins {start!r}", todo=todo
                )
            handle.seek(0)
            file = np.load(handle, allow_pickle=False)
            if isinstance(file, np.lib.npyio.NpzFile):
                return {key: file[key] if key in _KNOWN else None for key in file.files}
        found = "a single array (.npy)"
    except FileNotFoundError:
        found = "no such file"
    except InputError:
        raise
    except _DAMAGE as error:
        found = f"a damaged file ({error})"
    except (RuntimeError, NotImplementedError) as error:
        found = f"an archive that cannot be unpacked ({error})"
    except OSError as error:
        found = error.strerror or str(error)
    except ValueError as error:
        if "allow_pickle" in str(error):
            found = "pickled data, which is never loaded"
            todo = "Save arrays of numbers and strings with np.savez, no objects."
        else:
            found = f"a file that NumPy cannot read ({error})"
    reject(name, expected=expected, found=" ".join(found.split()), todo=todo)


def _tokens(tokens: Any) -> Array | None:
    """Token names (token,) or (batch, token), as strings."""
    if tokens is None:
        return None
    try:
        array = np.asarray(tokens)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind not in "UTiu" or array.ndim not in (1, 2):
        reject(
            "tokens",
            expected="strings or token ids, (token,) or (batch, token)",
            found=f"dtype {array.dtype}, shape {array.shape}",
            todo="Pad texts to one length.",
        )
    return array.astype(str)


def _axes(attention: Any, layout: str | None) -> tuple[list[str], tuple[int, ...]]:
    """The axes of attention as `read_attention` reads it, and its shape."""
    if isinstance(attention, (list, tuple)) and len(attention) > 0 and hasattr(attention[0], "shape"):
        shape = (len(attention), *attention[0].shape)
    elif isinstance(attention, (list, tuple)) and (not attention or attention[0] is None):
        shape = (0,)  # `read_attention` says what is wrong
    else:
        shape = tuple(attention.shape) if hasattr(attention, "shape") else np.shape(attention)
    default = {3: "head query key", 4: "layer head query key"}.get(len(shape), "layer batch head query key")
    return (layout or default).split(), shape


def _to_four(name: str, norm: Array, axes: list[str], shape: tuple[int, ...]) -> Array:
    """Norms in the order (batch, layer, head, key), sizes checked against attention's."""
    batch, layer, head, _, key = shape
    sizes = {"batch": batch, "layer": layer, "head": head, "key": key}
    if norm.shape != tuple(sizes[axis] for axis in axes):
        wanted = ", ".join(f"{axis} {sizes[axis]}" for axis in axes)
        _contradiction(f"{name} of axes ({wanted}), as attention was read", f"shape {norm.shape}")
    present = [axis for axis in ("batch", "layer", "head", "key") if axis in axes]
    return norm.transpose([axes.index(axis) for axis in present]).reshape(batch, layer, head, key)


def _per_text(names: Array | None, batch: int, count: int, reading: str) -> tuple[tuple[str, ...], ...]:
    if names is None:
        return (tuple(f"position {place}" for place in range(count)),) * batch
    if names.ndim == 2 and len(names) != batch:
        _contradiction(f"tokens for {counted(batch, 'text')} ({reading})", f"tokens for {len(names)}")
    rows = names if names.ndim == 2 else np.broadcast_to(names, (batch, count))
    return tuple(tuple(row.tolist()) for row in rows)


def _sinks(
    sink: Any, tokens: Sequence[str], real: NDArray[np.bool_], names: Array | None
) -> NDArray[np.bool_]:
    special = [place for place, token in enumerate(tokens) if token in SPECIAL_SPELLINGS]
    if isinstance(sink, str) and sink == "special" and not special:
        reject(
            "sink",
            expected="first, none, token:TEXT or positions",
            found="special, but no " + ("token names" if names is None else "known special token"),
            todo="Choose --sink first or --sink 0,7, or save `tokens` with [CLS], [SEP] or the like.",
        )
    return choose_sinks(sink, tokens, np.arange(len(tokens)), real, special)


def _special_content(
    texts: Sequence[Sequence[str]], real: NDArray[np.bool_], sinks: NDArray[np.bool_]
) -> list[str]:
    """A note on tokens that look special and are content; of one text, with the sink that takes them too."""
    places = [
        (text, key)
        for text, key in np.argwhere(real & ~sinks).tolist()
        if texts[text][key] in SPECIAL_SPELLINGS or _LOOKS_SPECIAL.fullmatch(texts[text][key])
    ]
    if not places:
        return []
    times = Counter(texts[text][key] for text, key in places)
    listed = [f"{token} at {counted(times[token], 'place')}" for token in list(times)[:8]]
    more = f" and {len(times) - 8} more" if len(times) > 8 else ""
    keys = sorted({key for _, key in places} | set(np.flatnonzero(sinks[0]).tolist()))
    todo = "name their positions to take them as sink"
    if len(texts) == 1 and len(keys) <= 8:
        todo = f"--sink {','.join(map(str, keys))} takes such tokens as sink too"
    elif set(times) <= set(SPECIAL_SPELLINGS):
        todo = "--sink special takes such tokens as sink"
    return [f"tokens that look special are content here: {', '.join(listed)}{more}; {todo}"]


def _contradiction(expected: str, found: str) -> None:
    reject(
        "attention",
        expected=expected,
        found=found,
        todo='Make the sizes agree, or say what the axes are with layout= ("batch head query key", ...).',
    )
