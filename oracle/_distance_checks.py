"""What both layers check before rows are compared, worded once; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from oracle._checks import as_array, check_axes, check_key_range, check_mask, first_place, reject, row_place
from oracle._results import KeyRange

__all__ = [
    "AITCHISON",
    "CONVENTIONS",
    "METRICS",
    "Text",
    "broadcast_pair",
    "check_delta",
    "check_groups",
    "check_margin",
    "check_matrices",
    "check_metrics",
    "check_zeros",
    "read_texts",
    "reject_replacement",
    "reject_score",
    "reject_zeros",
]

METRICS = ("cosine", "jsd", "root_jsd", "hellinger", "l1", "entropy", "aitchison", "aitchison_sink")
AITCHISON = frozenset({"aitchison", "aitchison_sink"})
CONVENTIONS = ("keep", "drop")
_ZEROS = ("refuse", "common-support", "replace")


class Text(NamedTuple):
    """One text as it came, its masks checked against its rows."""

    argument: str  # what an error about the rows calls them
    rows: NDArray[Any]  # (layer, head, query, key) or (head, query, key), in its own dtype
    sink_mask: NDArray[np.bool_]  # broadcasts against (query, key)
    visible: NDArray[np.bool_] | KeyRange | None  # a mask broadcasts against (query, key)
    queries: NDArray[np.bool_]  # (query,), the rows that count
    scores: NDArray[Any] | None  # the shape of rows


def broadcast_pair(x: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """X and y (..., query, key) as arrays of one shape, each in its own dtype."""
    arrays = [as_array(name, value) for name, value in (("x", x), ("y", y))]
    for name, array in zip("xy", arrays, strict=True):
        check_axes(name, array.shape)
    try:
        if arrays[0].shape[-2:] != arrays[1].shape[-2:]:
            raise ValueError
        first, second = np.broadcast_arrays(*arrays)
    except ValueError:
        reject(
            "y",
            expected=f"rows that go with those of x, {arrays[0].shape}",
            found=f"shape {arrays[1].shape}",
            todo="Give both (..., query, key) with the same queries and keys.",
        )
    return first, second


def check_metrics(
    metrics: str | Iterable[str], conventions: str | Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """All (metric, convention) that exist, in the order given; what has no name here is refused.

    There is no "aitchison_sink" under "drop"; asked for by itself it is refused, among others it is left out.
    """
    asked = _names("metric", metrics, METRICS), _names("convention", conventions, CONVENTIONS)
    pairs = [(metric, convention) for metric in asked[0] for convention in asked[1]]
    found = tuple(pair for pair in pairs if pair != ("aitchison_sink", "drop"))
    if pairs and not found:
        reject(
            "convention",
            expected="keep with the metric aitchison_sink",
            found="drop, which leaves no sink term",
            todo="Ask for aitchison under drop, or aitchison_sink under keep.",
        )
    return found


def _names(argument: str, value: str | Iterable[str], known: Sequence[str]) -> list[str]:
    names = [value] if isinstance(value, str) else list(value)
    for name in names:
        if name not in known:
            reject(
                argument, expected=f"one of {', '.join(known)}", found=repr(name), todo="Choose one of these."
            )
    return names


def check_zeros(zeros: str, delta: float | None) -> None:
    """Refuse a choice for zeros that there is not, and a delta without its choice or out of range."""
    if zeros not in _ZEROS:
        reject(
            "zeros", expected=f"one of {', '.join(_ZEROS)}", found=repr(zeros), todo="Choose one of these."
        )
    if zeros == "replace":
        check_delta(delta)
    elif delta is not None:
        reject(
            "delta",
            expected=f'none with zeros="{zeros}"',
            found=f"{delta}",
            todo='Leave it out, or ask for zeros="replace".',
        )


def check_delta(delta: float | None) -> None:
    """Refuse a replacement for zeros that is no number between zero and one."""
    number = isinstance(delta, (int, float, np.integer, np.floating)) and not isinstance(delta, bool)
    if not number or not 0 < delta < 1:  # type: ignore[operator]  # `number` says that it is one
        reject(
            "delta",
            expected="a number above zero and below one that takes the place of zeros",
            found=f"{delta!r}",
            todo="State it, such as delta=1e-6, and try others: the distances depend on it.",
        )


def reject_zeros(
    argument: str, index: tuple[int, ...], key: int | None, count: int, todo: str | None = None
) -> NoReturn:
    """Refuse zeros where a logarithm is due, the first of `count` in row `index` at `key`, or in its sink."""
    reject(
        argument,
        expected="no exact zeros among visible keys where logarithms are taken",
        found=f"zero at {row_place(index)}, {'the sink' if key is None else f'key {key}'} ({count} in all)",
        todo=todo
        or 'Say what is masked with visible=, give scores, or choose zeros="common-support" or "replace".',
    )


def reject_replacement(delta: float, count: int, index: tuple[int, ...], argument: str) -> NoReturn:
    """Refuse a delta whose `count` copies in row `index` would leave nothing to the other parts."""
    reject(
        "delta",
        expected="a number that leaves something to the parts that are not zero",
        found=f"{delta} for each of {count} zeros at {row_place(index)} of {argument}",
        todo="Choose a smaller delta.",
    )


def reject_score(argument: str, value: float, index: tuple[int, ...], key: int, count: int) -> NoReturn:
    """Refuse the score `value` of row `index` at a visible `key`, the first of `count` wrong ones."""
    reject(
        argument,
        expected="finite scores at visible keys",
        found=f"{value} at {row_place(index)}, key {key} ({count} in all)",
        todo="Say which keys are masked with visible=, such as trace.visible.",
    )


def check_matrices(first: Any, second: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two sets of distances (head, head) as they came: of one shape, square, finite or NaN."""
    matrices = as_array("first", first), as_array("second", second)
    for argument, matrix in zip(("first", "second"), matrices, strict=True):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape != matrices[0].shape:
            reject(
                argument,
                expected="distances (head, head), as many heads in both",
                found=f"shape {matrix.shape}"
                + (f" with {matrices[0].shape}" if argument == "second" else ""),
                todo="Pass what head_distances gives, or scipy's squareform of a condensed vector.",
            )
        infinite = np.isinf(matrix)
        if infinite.any():
            row, column = first_place(infinite)
            reject(
                argument,
                expected="finite distances, or NaN where there is none",
                found=f"{matrix[row, column]} between heads {row} and {column} ({infinite.sum()} in all)",
                todo="Mark what is undefined with NaN.",
            )
    return matrices


def check_groups(groups: Any, heads: int) -> NDArray[Any]:
    """One label for each head, (head,); without groups all the same."""
    labels = np.zeros(heads, dtype=np.int64) if groups is None else as_array("groups", groups)
    if labels.shape != (heads,):
        reject(
            "groups",
            expected=f"one label for each of {heads} heads",
            found=f"shape {labels.shape}",
            todo="Give the layer of each head: numpy.repeat(numpy.arange(n_layers), n_heads).",
        )
    return labels


def check_margin(margin: float) -> None:
    """Refuse a margin that is negative or not finite."""
    if not 0 <= margin < np.inf:
        reject(
            "margin",
            expected="a fraction of the anchor's median distance, at least zero",
            found=f"{margin}",
            todo="Give 0.1 for a tenth, or leave it out.",
        )


def read_texts(
    rows: Any, sink_mask: Any, visible: Any = None, scores: Any = None, queries: Any = None
) -> list[Text]:
    """The texts of a call: `rows` as one array or as a list of arrays, the rest as one for all or as a list.

    A list or tuple of arrays or tensors of three axes or more is one text each; anything else is one array.
    All texts have the same heads; a sink mask of None is an empty sink set. The values of rows and scores are
    not looked at.
    """
    listed = isinstance(rows, (list, tuple)) and all(len(getattr(item, "shape", ())) > 2 for item in rows)
    arrays = list(rows) if listed else [rows]
    if not arrays:
        reject("rows", expected="at least one text", found="an empty list", todo="Give the rows of a text.")
    parts = [
        _for_each(argument, value, len(arrays), depth) if listed else [value]
        for argument, value, depth in (
            ("sink_mask", sink_mask, 1),
            ("visible", visible, 2),
            ("scores", scores, 3),
            ("queries", queries, 1),
        )
    ]
    texts = [
        _read_text(f"rows[{place}]" if listed else "attention", *text)
        for place, text in enumerate(zip(arrays, *parts, strict=True))
    ]
    for text in texts:
        if text.rows.shape[:-2] != texts[0].rows.shape[:-2]:
            reject(
                text.argument,
                expected=f"the heads of the first text, {texts[0].rows.shape[:-2]}",
                found=f"{text.rows.shape[:-2]}",
                todo="Give the rows of one model, one array for each text.",
            )
    return texts


def _for_each(argument: str, value: Any, count: int, depth: int) -> list[Any]:
    """`value` for each of `count` texts: a list of things at least `depth` deep is one each, else for all."""
    if isinstance(value, KeyRange) or not isinstance(value, (list, tuple)):
        return [value] * count
    if not all(_depth(item) >= depth for item in value):
        return [value] * count
    if len(value) != count:
        reject(
            argument,
            expected=f"one for each of {count} texts, or one for all",
            found=f"a list of {len(value)}",
            todo="Give a list as long as that of the rows.",
        )
    return list(value)


def _depth(item: Any) -> int:
    """How deep `item` nests; None, ranges and arrays of any axes are things by themselves."""
    if item is None or isinstance(item, KeyRange) or len(getattr(item, "shape", "")):
        return 3
    return 1 + max(map(_depth, item), default=0) if isinstance(item, (list, tuple)) else 0


def _read_text(argument: str, rows: Any, sink_mask: Any, visible: Any, scores: Any, queries: Any) -> Text:
    array = as_array(argument, rows)
    if array.ndim not in (3, 4):
        reject(
            argument,
            expected="(layer, head, query, key) or (head, query, key)",
            found=f"shape {array.shape}",
            todo="Give texts as a list, one array each.",
        )
    shape = array.shape[-2:]
    is_range = isinstance(visible, KeyRange)
    seen = visible if visible is None or is_range else check_mask("visible", visible, shape)
    logits = None if scores is None else as_array("scores", scores)
    if logits is not None and logits.shape != array.shape:
        reject(
            "scores",
            expected=f"the shape of {argument}, {array.shape}",
            found=f"{logits.shape}",
            todo="Give the scores that these rows are the softmax of, such as trace.scores.",
        )
    return Text(
        argument,
        array,
        np.zeros(shape[-1], bool) if sink_mask is None else check_mask("sink_mask", sink_mask, shape),
        check_key_range(visible, shape) if is_range else seen,
        _read_queries(queries, shape[0]),
        logits,
    )


def _read_queries(queries: Any, count: int) -> NDArray[np.bool_]:
    if queries is None:
        return np.ones(count, dtype=bool)
    chosen = as_array("queries", queries)
    if chosen.shape != (count,) or (chosen.dtype != bool and not np.isin(chosen, (0, 1)).all()):
        reject(
            "queries",
            expected=f"True or False for each of {count} queries",
            found=f"{chosen.dtype} of shape {chosen.shape}",
            todo="Give a boolean mask over queries, not positions.",
        )
    return chosen.astype(bool)
