"""The cases that start from attention rows: shares in one pass, with entropies, and transformed norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastpath
import oracle
from oracle._results import EntropySplit, RowMeasures
from oracle.attention import transformed_vectors
from validation import peers
from validation.bench.case import FLOAT32_PEER, Case, Contender
from validation.bench.goals import find_goal, judge
from validation.bench.inputs import draw_rows
from validation.bench.limits import read_only
from validation.bench.timing import peak_bytes
from validation.registry import bound_for
from validation.report.document import Column, Table

__all__ = ["entropy_case", "norm_memory", "rows_case", "transformed_case", "transformed_share"]

Array = NDArray[Any]

_KINDS = {"share": "share", "r": "ratio", "entropy": "entropy"}
_OURS = {name: bound_for(kind, np.float32, 512) for name, kind in _KINDS.items()}


def rows_case(shape: tuple[int, ...], missing: str | None, judged: bool = True) -> Case:
    """Shares under three weightings and two r from float32 rows of `shape`, (text, head, query, key)."""
    return _row_case("rows", f"Three shares and r, float32 rows {shape}", shape, missing, judged, False)


def entropy_case(shape: tuple[int, ...], missing: str | None, judged: bool = True) -> Case:
    """The same with the three entropies of each row."""
    return _row_case("entropies", f"The same with three entropies, {shape}", shape, missing, judged, True)


def transformed_case(sizes: tuple[int, int, int, int], missing: str | None, judged: bool = True) -> Case:
    """Transformed-norm shares of a layer of `sizes` (head, token, d_head, d_model) from rows, values and W_O.

    Both sides begin with the values; the einsum is given the transformed vectors and is not timed for them.
    """
    n_heads, n_tokens, _, d_model = sizes
    attention, sinks, _ = draw_rows((n_heads, n_tokens, n_tokens))
    values, weight = _layer(sizes)
    vectors = transformed_vectors(values, weight).astype(values.dtype)  # as a float32 model hands them on
    return Case(
        "transformed",
        f"Transformed-norm shares of a layer: {n_heads} heads, {n_tokens} tokens, {d_model} wide",
        lambda: oracle.sink_share(attention, sinks, _norms(values.astype(np.float64), weight)),
        (
            Contender("fastpath", lambda: transformed_share(attention, values, weight, sinks), _OURS),
            Contender(
                "torch, einsum",
                lambda: peers.torch_einsum(attention, vectors, sinks),
                FLOAT32_PEER,
                missing,
            ),
        ),
        (f"the einsum is run head by head: {n_tokens}² pairs x {d_model} numbers at once",),
        judged,
    )


def transformed_share(attention: Array, values: Array, weight: Array, sink_mask: Array) -> Array:
    """Sink shares under ‖a f‖ = a ‖f‖ by the fast path: (head, query)."""
    return fastpath.sink_share(attention, sink_mask, _norms(values, weight))


def norm_memory(sizes: tuple[int, int, int, int], judged: bool = True) -> Table:
    """Bytes that each way to the transformed-norm shares takes on top of its inputs."""
    n_heads, n_tokens, _, d_model = sizes
    attention, sinks, _ = draw_rows((n_heads, n_tokens, n_tokens))
    values, weight = _layer(sizes)
    transformed_share(attention, values, weight, sinks)  # compiled before it is watched
    ours = peak_bytes(lambda: transformed_share(attention, values, weight, sinks))
    head = n_tokens * n_tokens * d_model * 4
    goal = find_goal("transformed memory", "torch, einsum")
    times = head * n_heads / ours
    verdict = judge(goal, times, judged) if goal else ""
    columns = (
        Column("contender", "contender"),
        Column("mib", "MiB", ",.1f"),
        Column("times", "times ours", ",.0f"),
        Column("goal", "goal"),
        Column("verdict", ""),
    )
    rows = (
        ("fastpath, peak", ours / 2**20, None, "", ""),
        ("torch, einsum", head * n_heads / 2**20, times, goal.words if goal else "", verdict),
        ("torch, einsum, head by head", head / 2**20, head / ours, "", ""),
    )
    notes = (
        "fastpath: tracemalloc's peak during a call; einsum: the bytes of the array that it builds, computed",
        "the goal is for the published form, a layer at once, which is not run; head by head it is timed",
    )
    return Table("transformed memory", "Memory of transformed-norm shares", columns, rows, notes)


def _row_case(
    key: str, title: str, shape: tuple[int, ...], missing: str | None, judged: bool, entropies: bool
) -> Case:
    attention, sinks, norms = draw_rows(shape)

    def by_oracle() -> RowMeasures:
        return _joined(
            [
                oracle.row_measures(
                    rows, sinks, {name: norm[text] for name, norm in norms.items()}, entropies=entropies
                )
                for text, rows in enumerate(attention)
            ]
        )

    def peer(
        name: str, function: Callable[..., RowMeasures], missing: str | None = None, **options: Any
    ) -> Contender:
        slow = entropies and function is peers.numpy_rows
        return Contender(
            name, lambda: function(attention, sinks, norms, entropies, **options), FLOAT32_PEER, missing, slow
        )

    contenders = [
        Contender(
            "fastpath",
            lambda: fastpath.row_measures(attention, sinks, norms, entropies=entropies),
            _OURS,
        ),
        Contender("read-only loop", lambda: read_only(attention)),
        peer("numpy, one line each", peers.numpy_rows),
        peer("torch, eager", peers.torch_rows, missing),
        Contender("oracle, float64", by_oracle, slow=True),
    ]
    if entropies:
        contenders.insert(-1, peer("torch, eager, clever", peers.torch_rows, missing, clever=True))
    else:
        contenders.insert(2, peer("numpy, one product", peers.numpy_product))
    notes = (
        f"{attention.nbytes / 2**20:.0f} MiB of rows; the read-only loop adds them up and does nothing else",
        "clever: the entropy of the content by the chain rule, from one logarithm of the rows"
        if entropies
        else "one product: the rows times six columns (ones, norms, and each times the sink mask)",
    )
    return Case(key, title, by_oracle, contenders, notes, judged)


def _joined(texts: list[RowMeasures]) -> RowMeasures:
    """One result from those of the texts, which the oracle takes one by one to spare memory."""
    first = texts[0]
    shares = {name: np.stack([text.shares[name] for text in texts]) for name in first.shares}
    ratios = {name: np.stack([text.ratios[name] for text in texts]) for name in first.ratios}
    splits = [text.entropy for text in texts if text.entropy is not None]
    entropy = EntropySplit(*(np.stack(parts) for parts in zip(*splits, strict=True))) if splits else None
    return RowMeasures(shares, ratios, entropy)


def _layer(sizes: tuple[int, int, int, int]) -> tuple[Array, Array]:
    """Values (head, key, d_head) and the output weight (head * d_head, d_model), float32."""
    n_heads, n_tokens, d_head, d_model = sizes
    rng = np.random.default_rng(1)
    values = rng.standard_normal((n_heads, n_tokens, d_head), dtype=np.float32)
    weight = rng.standard_normal((n_heads * d_head, d_model), dtype=np.float32)
    return values, weight / np.float32(np.sqrt(d_model))


def _norms(values: Array, weight: Array) -> Array:
    """‖f_j‖ of each head, (head, key): head by head, so that one head's vectors stand at a time."""
    n_heads, n_tokens, d_head = values.shape
    norms = np.empty((n_heads, n_tokens))
    for head, part in enumerate(weight.reshape(n_heads, d_head, -1)):
        (vectors,) = transformed_vectors(values[head : head + 1], part)
        norms[head] = np.sqrt(np.einsum("kd,kd->k", vectors, vectors))
    return norms
